import type { Context, Span, SpanStatusCode, Tracer as SpanTracer } from '@opentelemetry/api';
import type { SpanExporter } from '@opentelemetry/sdk-trace';
import { completionTokens, promptTokens } from '#billing/amounts';
import type { Config } from '#config';
import { OWN_ACCOUNT } from '#accounts';
import type { Call } from '#call';
import { labelOfFailure, type AttemptTime, type CallOutcome, type CallSink, reasonOf, statusOf } from './observer.ts';
import { mcpErrorAttributes, mcpSpanName, mcpSpanOf, type McpSpan } from './mcp-span.ts';
import { OPERATIONS } from './offer-series.ts';
import { otlpReceiver, otlpResource, type OtlpReceiver } from './otlp.ts';

interface Tracer {
  readonly sink: CallSink;
  /** The span of a running call; null if the call has none. */
  readonly spanOf: SpanOf;
  readonly close: SpanExport['close'];
}

/** The ids of a call's span in lower-case hex, for log lines about the call. */
export type SpanOf = (call: Call) => { readonly trace_id: string; readonly span_id: string } | null;

interface TracerOptions {
  readonly version?: string;
  readonly onError?: (error: Error) => void;
}

interface Traced {
  readonly span: Span;
  /** null for primitives other than tools. */
  readonly mcp: McpSpan | null;
  /** The span of the current attempt; null outside MCP. */
  attempt: Span | null;
}

const STATUS_ERROR: SpanStatusCode.ERROR = 2;

/**
 * Traces of calls. Without a configured endpoint nothing of OpenTelemetry is loaded, and a valid `traceparent` of the
 * consumer is passed on to the provider, as version 00. The SDK decides about sampling: as the caller decided,
 * otherwise by OTEL_TRACES_SAMPLER.
 */
export async function createTracer(
  config: Pick<Config, 'otlpEndpoint'> & Partial<Pick<Config, 'otlpHeaders'>>,
  options: TracerOptions = {},
): Promise<Tracer> {
  if (config.otlpEndpoint === null)
    return { sink: { upstreamHeaders: passOn }, spanOf: () => null, close: async () => {} };
  const [api, spans] = await Promise.all([
    import('@opentelemetry/api'),
    createSpanExport(
      otlpReceiver(config.otlpEndpoint, config.otlpHeaders ?? null, 'traces'),
      options.version,
      options.onError,
    ),
  ]);
  return { ...traceCalls(api, spans.tracer), close: spans.close };
}

/**
 * A call has one span of the kind CLIENT. An MCP call has more, as its conventions require. The gateway is a server for
 * its client, with its own sessions, ids and errors, so the call has a SERVER span (INTERNAL for the gateway's own
 * calls). Below it each attempt has a CLIENT span. The provider's SERVER span is below that.
 */
function traceCalls(
  api: typeof import('@opentelemetry/api'),
  tracer: SpanExport['tracer'],
): Pick<Tracer, 'sink' | 'spanOf'> {
  const { ROOT_CONTEXT, SpanKind, trace } = api;
  const calls = new Map<string, Traced>();
  const contextOf = ({ traceparent }: Call): Context => {
    const parent = parseTraceParent(traceparent);
    if (!parent) return ROOT_CONTEXT;
    const { traceId, spanId, flags: traceFlags } = parent;
    return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
  };

  const spanOf: SpanOf = (call) => {
    const context = calls.get(call.id)?.span.spanContext();
    return context ? { trace_id: context.traceId, span_id: context.spanId } : null;
  };

  const sink: CallSink = {
    started(call) {
      const mcp = mcpSpanOf(call);
      const own = call.caller.account === OWN_ACCOUNT;
      const kind = mcp ? (own ? SpanKind.INTERNAL : SpanKind.SERVER) : SpanKind.CLIENT;
      const { name, attributes } = openingOf(call, mcp);
      const span = tracer.startSpan(name, { kind, startTime: call.startedAt, attributes }, contextOf(call));
      calls.set(call.id, { span, mcp, attempt: null });
    },
    attemptStarted(call, offer, beganMs) {
      const traced = calls.get(call.id);
      if (!traced?.mcp) return;
      const { name, client } = traced.mcp;
      const provider = { 'gen_ai.request.model': offer.service, 'gen_ai.provider.name': offer.provider.name };
      const startTime = call.startedAt + beganMs;
      traced.attempt = tracer.startSpan(
        name,
        { kind: SpanKind.CLIENT, startTime, attributes: { ...client, ...provider } },
        trace.setSpan(ROOT_CONTEXT, traced.span),
      );
    },
    attemptFailed(call, offer, failure, time) {
      const traced = calls.get(call.id);
      if (!traced) return;
      const { status, message } = failure;
      traced.span.addEvent('attempt failed', {
        'gen_ai.provider.name': offer.provider.name,
        'http.response.status_code': status ?? 0,
        reason: message,
      });
      endAttempt(traced, time, call, status === null ? labelOfFailure(failure) : String(status), message);
    },
    flagged(call, offer, { flags }) {
      const facts = { 'gen_ai.provider.name': offer.provider.name, flags: [...flags] };
      calls.get(call.id)?.span.addEvent('provider flagged', facts);
    },
    finished(call, outcome) {
      const traced = calls.get(call.id);
      if (!traced) return;
      calls.delete(call.id);
      finishSpans(traced, call, outcome);
    },
    upstreamHeaders(call) {
      const traced = calls.get(call.id);
      const context = (traced?.attempt ?? traced?.span)?.spanContext();
      if (!context) return passOn(call);
      const { traceId, spanId, traceFlags: flags } = context;
      return { traceparent: formatTraceParent({ traceId, spanId, flags }) };
    },
  };
  return { sink, spanOf };
}

/** The name and the attributes of the span of a new call. */
function openingOf(call: Call, mcp: McpSpan | null) {
  const operation = OPERATIONS[call.primitive];
  const service = call.candidates[0]?.offer.service ?? call.service;
  const attributes = {
    ...(mcp ? mcp.server : { 'gen_ai.operation.name': operation }),
    'gen_ai.request.model': service,
    'tollgate.generation.id': call.id,
    'tollgate.request.id': call.requestId,
    'tollgate.account': call.caller.account,
    'tollgate.stream': call.stream,
  };
  return { name: mcp?.name ?? `${operation} ${service}`, attributes };
}

function endAttempt(
  traced: Traced,
  { beganMs, durationMs }: AttemptTime,
  call: Call,
  errorType: string | null,
  message?: string,
): void {
  const { attempt } = traced;
  if (!attempt) return;
  traced.attempt = null;
  if (errorType !== null) {
    attempt.setAttributes(mcpErrorAttributes(errorType));
    attempt.setStatus({ code: STATUS_ERROR, ...(message === undefined ? {} : { message }) });
  }
  attempt.end(call.startedAt + beganMs + durationMs);
}

function finishSpans(traced: Traced, call: Call, outcome: CallOutcome): void {
  const { span, mcp } = traced;
  const { resolution, offer, answerError } = outcome;
  const [code, status] = statusOf(outcome);
  if (mcp) {
    const name = mcpSpanName(mcp, outcome);
    span.updateName(name);
    traced.attempt?.updateName(name);
    // An attempt without an answer and without a failure of the provider ended together with the call.
    const whole = { beganMs: 0, durationMs: outcome.durationMs };
    endAttempt(traced, outcome.served ?? whole, call, outcome.served ? answerError : code);
  }
  if (offer) {
    span.setAttribute('gen_ai.provider.name', offer.provider.name);
    if (offer.model) span.setAttribute('gen_ai.response.model', offer.model.upstreamModel);
  }
  if (resolution) {
    const { settlement } = resolution;
    const usage = resolution.end?.usage;
    if (usage?.prompt !== undefined) span.setAttribute('gen_ai.usage.input_tokens', Number(promptTokens(usage)));
    if (usage?.completion !== undefined)
      span.setAttribute('gen_ai.usage.output_tokens', Number(completionTokens(usage)));
    span.setAttribute('tollgate.cost_micro_usd', Number(settlement.charged));
    span.setAttribute('tollgate.lock', resolution.state);
  }
  if (outcome.firstByteMs !== null) span.setAttribute('tollgate.first_byte_ms', outcome.firstByteMs);
  span.setAttribute('tollgate.attempts', outcome.attempts);
  // MCP answers have the status that their protocol chooses, so it is not set for them.
  if (!mcp) span.setAttribute('http.response.status_code', status);
  if (code !== null) {
    span.setAttributes(mcpErrorAttributes(code));
    span.setStatus({ code: STATUS_ERROR, message: reasonOf(outcome) ?? code });
  }
  span.end(call.startedAt + outcome.durationMs);
}

function passOn(call: Call): Readonly<Record<string, string>> | null {
  const parent = parseTraceParent(call.traceparent);
  return parent ? { traceparent: formatTraceParent(parent) } : null;
}

interface SpanExport {
  readonly tracer: SpanTracer;
  /** Sends the buffered spans. Waits at most a few seconds for an unavailable receiver. Never rejects. */
  close(): Promise<void>;
}

const CLOSE_MS = 3000;
const ATTRIBUTE_TEXT_MAX = 256;

/** Sends spans as OTLP over HTTP, in batches by a timer. `onError`: called with the errors of failed batches. */
async function createSpanExport(
  { url, headers }: OtlpReceiver,
  version: string | undefined,
  onError?: (error: Error) => void,
): Promise<SpanExport> {
  const [{ BatchSpanProcessor, TracerProvider }, { OTLPTraceExporter }, { resourceFromAttributes }] = await Promise.all(
    [
      import('@opentelemetry/sdk-trace'),
      import('@opentelemetry/exporter-trace-otlp-http'),
      import('@opentelemetry/resources'),
    ],
  );
  const otlp = new OTLPTraceExporter({
    url,
    headers: { ...headers },
    timeoutMillis: CLOSE_MS,
  });
  const exporter: SpanExporter = {
    export: (spans, done) =>
      otlp.export(spans, (result) => {
        if (result.error) onError?.(result.error);
        // A failed batch is dropped and was reported above, so the processor gets a success.
        done({ code: 0 });
      }),
    forceFlush: () => otlp.forceFlush(),
    shutdown: () => otlp.shutdown(),
  };
  const provider = new TracerProvider({
    resource: resourceFromAttributes(otlpResource(version)),
    spanLimits: { attributeValueLengthLimit: ATTRIBUTE_TEXT_MAX },
    spanProcessors: [new BatchSpanProcessor({ exporter, scheduledDelayMillis: 1000, maxQueueSize: 8192 })],
  });
  return {
    tracer: provider.getTracer('tollgate', version),
    async close() {
      await Promise.race([
        provider.shutdown().catch(() => {}),
        new Promise((resolve) => setTimeout(resolve, CLOSE_MS).unref()),
      ]);
    },
  };
}

/** The parts of a W3C `traceparent`. Ids are lower-case hex. */
interface TraceParent {
  readonly traceId: string;
  readonly spanId: string;
  readonly flags: number;
}

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** null for a header that is invalid by the W3C recommendation. Such a header is ignored and never causes an error. */
function parseTraceParent(header: string | null | undefined): TraceParent | null {
  if (!header || header.length > 256) return null;
  const match = TRACEPARENT.exec(header);
  if (!match || (match[4] !== undefined && header.startsWith('00'))) return null;
  const [, traceId, spanId, flags] = match;
  if (!traceId || !spanId || !flags || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return null;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) };
}

function formatTraceParent({ traceId, spanId, flags }: TraceParent): string {
  return `00-${traceId}-${spanId}-${flags.toString(16).padStart(2, '0')}`;
}
