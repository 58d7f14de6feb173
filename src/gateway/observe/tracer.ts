import type { Span, SpanStatusCode } from '@opentelemetry/api';
import type { Call } from '../call.ts';
import type { Config } from '../config.ts';
import { statusOf } from './call-log.ts';
import { OPERATIONS } from './metrics.ts';
import type { CallSink } from './observer.ts';
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

const CLOSE_MS = 3000;
const ATTRIBUTE_TEXT_MAX = 256;

/**
 * Traces of calls, sent as OTLP over HTTP in batches by a timer. Without a configured endpoint nothing of OpenTelemetry is loaded,
 * and a consumer's `traceparent` is passed on to the provider as it came. Sampling is the SDK's: as the caller decided, else OTEL_TRACES_SAMPLER.
 */
export async function createTracer(config: Pick<Config, 'otlpEndpoint'>, options: TracerOptions = {}): Promise<Tracer> {
  if (config.otlpEndpoint === null) return { sink: { upstreamHeaders: passOn }, close: async () => {} };
  const [{ ROOT_CONTEXT, SpanKind, trace }, { BatchSpanProcessor, TracerProvider }, { OTLPTraceExporter }, { resourceFromAttributes }] =
    await Promise.all([
      import('@opentelemetry/api'),
      import('@opentelemetry/sdk-trace'),
      import('@opentelemetry/exporter-trace-otlp-http'),
      import('@opentelemetry/resources'),
    ]);
  const statusError: SpanStatusCode.ERROR = 2;

  const exporter = new OTLPTraceExporter({ url: `${config.otlpEndpoint.replace(/\/+$/, '')}/v1/traces`, timeoutMillis: CLOSE_MS });
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
  const spans = new Map<string, Span>();

  return {
    sink: {
      started(call) {
        const parent = parseTraceParent(call.traceparent);
        const context = parent
          ? trace.setSpanContext(ROOT_CONTEXT, { traceId: parent.traceId, spanId: parent.spanId, traceFlags: parent.flags, isRemote: true })
          : ROOT_CONTEXT;
        const operation = OPERATIONS[call.primitive];
        const service = call.candidates[0]?.offer.service ?? call.service;
        const attributes = {
          'gen_ai.operation.name': operation,
          'gen_ai.request.model': service,
          'tollgate.generation.id': call.id,
          'tollgate.request.id': call.requestId,
          'tollgate.account': call.caller.account,
          'tollgate.stream': call.stream,
        };
        spans.set(call.id, tracer.startSpan(`${operation} ${service}`, { kind: SpanKind.CLIENT, startTime: call.startedAt, attributes }, context));
      },
      attemptFailed(call, offer, failure) {
        spans.get(call.id)?.addEvent('attempt failed', {
          'gen_ai.provider.name': offer.provider.name,
          'http.response.status_code': failure.status ?? 0,
          reason: failure.message,
        });
      },
      flagged(call, offer, flags) {
        spans.get(call.id)?.addEvent('provider flagged', { 'gen_ai.provider.name': offer.provider.name, flags: [...flags] });
      },
      finished(call, outcome) {
        const span = spans.get(call.id);
        if (!span) return;
        spans.delete(call.id);
        const { resolution, offer } = outcome;
        const [code, status] = statusOf(outcome);
        if (offer) {
          span.setAttribute('gen_ai.provider.name', offer.provider.name);
          if (offer.model) span.setAttribute('gen_ai.response.model', offer.model.upstreamModel);
        }
        if (resolution) {
          const { settlement } = resolution;
          const usage = resolution.end?.usage;
          if (usage?.prompt !== undefined) span.setAttribute('gen_ai.usage.input_tokens', Number(usage.prompt));
          if (usage?.completion !== undefined) span.setAttribute('gen_ai.usage.output_tokens', Number(usage.completion));
          span.setAttribute('tollgate.cost_micro_usd', Number(settlement.charged));
          span.setAttribute('tollgate.lock', resolution.state);
        }
        if (outcome.firstByteMs !== null) span.setAttribute('tollgate.first_byte_ms', outcome.firstByteMs);
        span.setAttribute('tollgate.attempts', outcome.attempts);
        span.setAttribute('http.response.status_code', status);
        if (code !== null) {
          span.setAttribute('error.type', code);
          span.setStatus({ code: statusError, message: outcome.error instanceof Error ? outcome.error.message : code });
        }
        span.end(call.startedAt + outcome.durationMs);
      },
      upstreamHeaders(call) {
        const context = spans.get(call.id)?.spanContext();
        return context
          ? { traceparent: formatTraceParent({ traceId: context.traceId, spanId: context.spanId, flags: context.traceFlags }) }
          : passOn(call);
      },
    },
    async close() {
      await Promise.race([provider.shutdown().catch(() => {}), new Promise((resolve) => setTimeout(resolve, CLOSE_MS).unref())]);
    },
  };
}

function passOn(call: Call): Readonly<Record<string, string>> | null {
  const parent = parseTraceParent(call.traceparent);
  return parent ? { traceparent: formatTraceParent(parent) } : null;
}
