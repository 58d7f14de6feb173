export { type RefusalLog, createCallLog, createRefusalLog, createTaskLog } from './call-log.ts';
export type { FundFigures } from './fund-metrics.ts';
export { type CallsNow, readCallsNow } from './calls-now.ts';
export {
  createGatewayReports,
  type GatewayReports,
  type ReportedGateway,
  type ReportedOutage,
} from './gateway-reports.ts';
export { createDatabaseCheck, healthRoutes, type Readiness } from './health.ts';
export { watchLateAttempts } from './late-attempts.ts';
export { type ServiceFailure, type LastFailures, createLastFailures } from './last-failures.ts';
export { type AlikeRefusals, type LastRefusals, createLastRefusals } from './last-refusals.ts';
export { createLogReceivers } from './log-receivers.ts';
export { type Logger, createLogger } from './logger.ts';
export { type Metrics, countAnswers, createMetrics, linesLostSnapshot } from './metrics.ts';
export { type GatewayObserver, createCallObserver } from './observer.ts';
export { type OutageLog, createOutageLog } from './outage-log.ts';
export type { RaisedAlert, RaisedAlerts } from './raised-alerts.ts';
export { createRunningAttempts, type RunningAttempts } from './running-attempts.ts';
export { type MetricSnapshot, createMergedMetrics, metricsRoutes, shareText } from './scrape.ts';
export { createTracer } from './tracer.ts';
export { createTunnelObserver } from './tunnel-observer.ts';
