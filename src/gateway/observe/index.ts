export * from './call-log.ts';
export * from './health.ts';
export * from './logger.ts';
export type { McpCounts } from './mcp-metrics.ts';
export * from './metrics.ts';
export * from './observer.ts';
export * from './redaction.ts';
export * from './tracer.ts';
export { createMergedMetrics, type MergedMetrics, type MetricSnapshot } from './merged-metrics.ts';
