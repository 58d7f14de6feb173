import { withoutCredentials } from '#security';
import { otlpHeaderPairs, type Config } from '#config';

/** The attributes that identify this process to a collector. They go with everything that is sent. */
export const otlpResource = (version: string | undefined): Readonly<Record<string, string>> => ({
  'service.name': 'tollgate',
  ...(version === undefined ? {} : { 'service.version': version }),
});

export interface OtlpReceiver {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

export function otlpReceiver(
  endpoint: string,
  headers: Config['otlpHeaders'],
  signal: 'traces' | 'logs',
): OtlpReceiver {
  const { url, headers: credentials } = withoutCredentials(`${endpoint.replace(/\/+$/, '')}/v1/${signal}`);
  return { url, headers: { ...credentials, ...Object.fromEntries(otlpHeaderPairs(headers)) } };
}

/** Severity numbers of OpenTelemetry's data model for logs. */
const SEVERITIES: Readonly<Record<string, number>> = { trace: 1, debug: 5, info: 9, warn: 13, error: 17, fatal: 21 };

interface OtlpLogRecord {
  readonly timeUnixNano: string;
  readonly observedTimeUnixNano: string;
  readonly severityNumber: number;
  readonly severityText: string;
  readonly body: { readonly stringValue: string };
  readonly attributes: readonly OtlpAttribute[];
  readonly traceId?: string;
  readonly spanId?: string;
}

interface OtlpAttribute {
  readonly key: string;
  readonly value: object;
}

/** Converts a finished log line without secrets. If masking of secrets broke its JSON, it is sent as text. */
export function toLogRecord(line: string): OtlpLogRecord {
  const { level, time, msg, trace_id: traceId, span_id: spanId, ...facts } = parse(line);
  const nanos = `${Number(time)}000000`;
  return {
    timeUnixNano: nanos,
    observedTimeUnixNano: nanos,
    severityNumber: SEVERITIES[String(level)] ?? 0,
    severityText: String(level).toUpperCase(),
    body: { stringValue: typeof msg === 'string' ? msg : '' },
    attributes: otlpAttributes(facts),
    ...(typeof traceId === 'string' ? { traceId } : {}),
    ...(typeof spanId === 'string' ? { spanId } : {}),
  };
}

export const otlpAttributes = (facts: Readonly<Record<string, unknown>>): readonly OtlpAttribute[] =>
  Object.entries(facts).map(([key, value]) => ({ key, value: toValue(value) }));

function toValue(value: unknown): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number') return Number.isSafeInteger(value) ? { intValue: `${value}` } : { doubleValue: value };
  if (Array.isArray(value)) return { arrayValue: { values: value.map(toValue) } };
  // An empty value is OTLP's null.
  return value === null ? {} : { kvlistValue: { values: otlpAttributes(value as Readonly<Record<string, unknown>>) } };
}

function parse(line: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(line) as Readonly<Record<string, unknown>>;
  } catch {
    const [, level, time] = /^\{"level":"(\w+)","time":(\d+)/.exec(line) ?? [];
    return { level, time: Number(time ?? Date.now()), msg: line.trimEnd() };
  }
}
