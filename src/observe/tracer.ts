import type { Span, SpanStatusCode } from '@opentelemetry/api';
import type { Config } from '#config';
import { OWN_ACCOUNT, type Call } from '#gateway';
import { labelOfFailure } from './answer-error.ts';
import { statusOf } from './call-log.ts';
import { mcpErrorAttributes, mcpSpanName, mcpSpanOf, type McpSpan } from './mcp-span.ts';
import { OPERATIONS } from './offer-series.ts';
import type { AttemptTime, CallSink } from './observer.ts';
import { formatTraceParent, parseTraceParent } from './trace-context.ts';

export interface Tracer {
  readonly sink: CallSink;
  /** Sends what is buffered; waits at most a few seconds for a receiver that is gone. Never rejects. */
  close(): Promise<void>;
}

export interface TracerOptions {
  readonly version?: string;
  /** Told when an export fails, so that it is seen in the logs. */
  readonly onError?: (error: Error) => void;
}

/** A call that runs. */
interface Traced {
  readonly span: Span;
  /** null where the call is none of MCP. */
  readonly mcp: McpSpan | null;
  /** Of the attempt that runs; null outside MCP. */
  attempt: Span | null;
}

const CLOSE_MS = 3000;
const ATTRIBUTE_TEXT_MAX = 256;

/**
 * Traces of calls, sent as OTLP over HTTP in batches by a timer. Without a configured endpoint nothing of
 * OpenTelemetry is loaded, and a consumer's `traceparent` is passed on to the provider as it came. Sampling is the
 * SDK's: as the caller decided, else OTEL_TRACES_SAMPLER. A call has one span, of the kind CLIENT. One of MCP has
 * two, as its conventions are: a gateway is a server to its client, with sessions, ids and errors of its own, so it
 * has a SERVER span; and below that each attempt has a CLIENT span, which the provider's SERVER span goes below.
 */
export async function createTracer(config: Pick<Config, 'otlpEndpoint'>, options: TracerOptions = {}): Promise<Tracer> {
  if (config.otlpEndpoint === null) return { sink: { upstreamHeaders: passOn }, close: async () => {} };
  const [
    { ROOT_CONTEXT, SpanKind, trace },
    { BatchSpanProcessor, TracerProvider },
    { OTLPTraceExporter },
    { resourceFromAttributes },
  ] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
  ]);
  const statusError: SpanStatusCode.ERROR = 2;

  const exporter = new OTLPTraceExporter({
    url: `${config.otlpEndpoint.replace(/\/+$/, '')}/v1/traces`,
    timeoutMillis: CLOSE_MS,
  });
  const send = exporter.export.bind(exporter);
  exporter.export = (spans, done) =>
    send(spans, (result) => {
      if (result.error) options.onError?.(result.error);
      // A failed batch is dropped and reported above; the processor has no better use for the failure.
      done({ code: 0 });
    });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      'service.name': 'tollgate',
      ...(options.version === undefined ? {} : { 'service.version': options.version }),
    }),
    spanLimits: { attributeValueLengthLimit: ATTRIBUTE_TEXT_MAX },
    spanProcessors: [new BatchSpanProcessor({ exporter, scheduledDelayMillis: 1000, maxQueueSize: 8192 })],
  });
  const tracer = provider.getTracer('tollgate', options.version);
  const calls = new Map<string, Traced>();
  const endAttempt = (
    traced: Traced,
    { beganMs, durationMs }: AttemptTime,
    call: Call,
    errorType: string | null,
    message?: string,
  ) => {
    const { attempt } = traced;
    if (!attempt) return;
    traced.attempt = null;
    if (errorType !== null) {
      attempt.setAttributes(mcpErrorAttributes(errorType));
      attempt.setStatus({ code: statusError, ...(message === undefined ? {} : { message }) });
    }
    attempt.end(call.startedAt + beganMs + durationMs);
  };

  return {
    sink: {
      started(call) {
        const parent = parseTraceParent(call.traceparent);
        const context = parent
          ? trace.setSpanContext(ROOT_CONTEXT, {
              traceId: parent.traceId,
              spanId: parent.spanId,
              traceFlags: parent.flags,
              isRemote: true,
            })
          : ROOT_CONTEXT;
        const operation = OPERATIONS[call.primitive];
        const service = call.candidates[0]?.offer.service ?? call.service;
        const mcp = mcpSpanOf(call);
        const attributes = {
          ...(mcp ? mcp.server : { 'gen_ai.operation.name': operation }),
          'gen_ai.request.model': service,
          'tollgate.generation.id': call.id,
          'tollgate.request.id': call.requestId,
          'tollgate.account': call.caller.account,
          'tollgate.stream': call.stream,
        };
        const own = call.caller.account === OWN_ACCOUNT;
        const kind = mcp ? (own ? SpanKind.INTERNAL : SpanKind.SERVER) : SpanKind.CLIENT;
        const span = tracer.startSpan(
          mcp?.name ?? `${operation} ${service}`,
          { kind, startTime: call.startedAt, attributes },
          context,
        );
        calls.set(call.id, { span, mcp, attempt: null });
      },
      attemptStarted(call, offer, beganMs) {
        const traced = calls.get(call.id);
        if (!traced?.mcp) return;
        const { name, client } = traced.mcp;
        const attributes = {
          ...client,
          'gen_ai.request.model': offer.service,
          'gen_ai.provider.name': offer.provider.name,
        };
        const options = { kind: SpanKind.CLIENT, startTime: call.startedAt + beganMs, attributes };
        traced.attempt = tracer.startSpan(name, options, trace.setSpan(ROOT_CONTEXT, traced.span));
      },
      attemptFailed(call, offer, failure, time) {
        const traced = calls.get(call.id);
        if (!traced) return;
        traced.span.addEvent('attempt failed', {
          'gen_ai.provider.name': offer.provider.name,
          'http.response.status_code': failure.status ?? 0,
          reason: failure.message,
        });
        endAttempt(
          traced,
          time,
          call,
          failure.status === null ? labelOfFailure(failure) : String(failure.status),
          failure.message,
        );
      },
      flagged(call, offer, flags) {
        calls
          .get(call.id)
          ?.span.addEvent('provider flagged', { 'gen_ai.provider.name': offer.provider.name, flags: [...flags] });
      },
      finished(call, outcome) {
        const traced = calls.get(call.id);
        if (!traced) return;
        calls.delete(call.id);
        const { span, mcp } = traced;
        const { resolution, offer, answerError, error } = outcome;
        const [code, status] = statusOf(outcome);
        if (mcp) {
          const name = mcpSpanName(mcp, outcome);
          span.updateName(name);
          traced.attempt?.updateName(name);
          // What is no answer and no failure of the provider ended the attempt with the call.
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
          if (usage?.prompt !== undefined) span.setAttribute('gen_ai.usage.input_tokens', Number(usage.prompt));
          if (usage?.completion !== undefined)
            span.setAttribute('gen_ai.usage.output_tokens', Number(usage.completion));
          span.setAttribute('tollgate.cost_micro_usd', Number(settlement.charged));
          span.setAttribute('tollgate.lock', resolution.state);
        }
        if (outcome.firstByteMs !== null) span.setAttribute('tollgate.first_byte_ms', outcome.firstByteMs);
        span.setAttribute('tollgate.attempts', outcome.attempts);
        // An answer of MCP has a status of its protocol's choice.
        if (!mcp) span.setAttribute('http.response.status_code', status);
        if (code !== null) {
          span.setAttributes(mcpErrorAttributes(code));
          span.setStatus({ code: statusError, message: error instanceof Error ? error.message : code });
        }
        span.end(call.startedAt + outcome.durationMs);
      },
      upstreamHeaders(call) {
        const traced = calls.get(call.id);
        const context = (traced?.attempt ?? traced?.span)?.spanContext();
        return context
          ? {
              traceparent: formatTraceParent({
                traceId: context.traceId,
                spanId: context.spanId,
                flags: context.traceFlags,
              }),
            }
          : passOn(call);
      },
    },
    async close() {
      await Promise.race([
        provider.shutdown().catch(() => {}),
        new Promise((resolve) => setTimeout(resolve, CLOSE_MS).unref()),
      ]);
    },
  };
}

function passOn(call: Call): Readonly<Record<string, string>> | null {
  const parent = parseTraceParent(call.traceparent);
  return parent ? { traceparent: formatTraceParent(parent) } : null;
}
