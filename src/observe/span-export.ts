import type { Tracer as SpanTracer } from '@opentelemetry/api';
import { otlpResource, type OtlpReceiver } from './otlp.ts';

export interface SpanExport {
  readonly tracer: SpanTracer;
  /** Sends the buffered spans. Waits at most a few seconds for an unavailable receiver. Never rejects. */
  close(): Promise<void>;
}

const CLOSE_MS = 3000;
const ATTRIBUTE_TEXT_MAX = 256;

/** Sends spans as OTLP over HTTP, in batches by a timer. `onError`: called with the errors of failed batches. */
export async function createSpanExport(
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
  const exporter = new OTLPTraceExporter({
    url,
    headers: { ...headers },
    timeoutMillis: CLOSE_MS,
  });
  const send = exporter.export.bind(exporter);
  exporter.export = (spans, done) =>
    send(spans, (result) => {
      if (result.error) onError?.(result.error);
      // A failed batch is dropped and was reported above, so the processor gets a success.
      done({ code: 0 });
    });
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
