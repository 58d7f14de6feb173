/** The parts of a W3C `traceparent`. Ids are lower-case hex. */
interface TraceParent {
  readonly traceId: string;
  readonly spanId: string;
  readonly flags: number;
}

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** null for a header that is invalid by the W3C recommendation. Such a header is ignored and never causes an error. */
export function parseTraceParent(header: string | null | undefined): TraceParent | null {
  if (!header || header.length > 256) return null;
  const match = TRACEPARENT.exec(header);
  if (!match || (match[4] !== undefined && header.startsWith('00'))) return null;
  const [, traceId, spanId, flags] = match;
  if (!traceId || !spanId || !flags || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return null;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) };
}

export function formatTraceParent({ traceId, spanId, flags }: TraceParent): string {
  return `00-${traceId}-${spanId}-${flags.toString(16).padStart(2, '0')}`;
}
