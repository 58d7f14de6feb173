import type { ServerHttp2Stream } from 'node:http2';
import type { ProviderV4 } from '@ai-sdk/provider';
import type { Json } from './json.ts';

/** The parts that answers are made with. */
export interface Loaded {
  readonly provider: ProviderV4;
  /** `fetch` for addresses that consumers name. It reaches the public internet alone. */
  readonly strangeFetch: typeof fetch;
}

/** One call: its body, and the stream that its reply goes to. */
export interface WorkerCall {
  readonly body: Json;
  readonly stream: ServerHttp2Stream;
  /** Aborted when the gateway gives the call up. */
  readonly signal: AbortSignal;
}

/** Sends a whole reply. */
export function sendJson(
  stream: ServerHttp2Stream,
  body: unknown,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): void {
  const bytes = Buffer.from(JSON.stringify(body));
  stream.respond({
    ...headers,
    ':status': status,
    'content-type': 'application/json',
    'content-length': bytes.byteLength,
  });
  stream.end(bytes);
}
