import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

interface OtlpValue {
  readonly stringValue?: string;
  readonly intValue?: number | string;
  readonly doubleValue?: number;
  readonly boolValue?: boolean;
}

export interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  /** 2 SERVER, 3 CLIENT. */
  readonly kind: number;
  readonly attributes: readonly { readonly key: string; readonly value: OtlpValue }[];
  readonly status: { readonly code: number; readonly message?: string };
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
}

interface OtlpLog {
  readonly timeUnixNano: string;
  readonly severityNumber: number;
  readonly severityText: string;
  readonly body: OtlpValue;
  readonly attributes: readonly { readonly key: string; readonly value: object }[];
  readonly traceId?: string;
  readonly spanId?: string;
}

export interface OtlpPost {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: {
    readonly resourceSpans: readonly {
      readonly resource: { readonly attributes: OtlpSpan['attributes'] };
      readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
    }[];
    readonly resourceLogs: readonly {
      readonly resource: { readonly attributes: OtlpSpan['attributes'] };
      readonly scopeLogs: readonly { readonly logRecords: readonly OtlpLog[] }[];
    }[];
  };
}

/**
 * A receiver of OTLP over HTTP, as a collector is one. Closed at the end of the test. `answers` are given first, each
 * once, with 200 and `{}` after them.
 */
export async function startReceiver(
  answer = 200,
  answers: (readonly [status: number, body: string])[] = [],
): Promise<{ readonly endpoint: string; readonly posts: readonly OtlpPost[] }> {
  const posts: OtlpPost[] = [];
  const server = createServer((request: IncomingMessage, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      posts.push({
        path: `${request.method} ${request.url}`,
        headers: request.headers,
        body: JSON.parse(Buffer.concat(chunks).toString()) as OtlpPost['body'],
      });
      const [status, body] = answers.shift() ?? [answer, '{}'];
      response.writeHead(status, { 'content-type': 'application/json' }).end(body);
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  return { endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, posts };
}

export const spansOf = (posts: readonly OtlpPost[]): readonly OtlpSpan[] =>
  posts
    .filter(({ path }) => path === 'POST /v1/traces')
    .flatMap(({ body }) => body.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)));

export const logsOf = (posts: readonly OtlpPost[]): readonly OtlpLog[] =>
  posts
    .filter(({ path }) => path === 'POST /v1/logs')
    .flatMap(({ body }) => body.resourceLogs.flatMap(({ scopeLogs }) => scopeLogs.flatMap((one) => one.logRecords)));

export function attribute(span: OtlpSpan, key: string): string | number | boolean | undefined {
  const value = span.attributes.find((each) => each.key === key)?.value;
  return (
    value?.stringValue ??
    (value?.intValue === undefined ? (value?.doubleValue ?? value?.boolValue) : Number(value.intValue))
  );
}

export const attributesOf = (span: OtlpSpan): Readonly<Record<string, unknown>> =>
  Object.fromEntries(span.attributes.map(({ key }) => [key, attribute(span, key)]));

/** Milliseconds. */
export const durationOf = ({ startTimeUnixNano, endTimeUnixNano }: OtlpSpan): number =>
  Number((BigInt(endTimeUnixNano) - BigInt(startTimeUnixNano)) / 1_000_000n);
