import type { JsonObject } from '#wire';
import type { ServerHttp2Stream } from 'node:http2';
import type {
  Experimental_VideoModelV4 as VideoModelV4,
  ProviderV4,
  SpeechModelV4,
  TranscriptionModelV4,
} from '@ai-sdk/provider';

export interface Loaded {
  readonly provider: ProviderV4;
  /** `fetch` for addresses that consumers name. It reaches the public internet alone. */
  readonly strangeFetch: typeof fetch;
}

export interface WorkerCall {
  readonly body: JsonObject;
  readonly stream: ServerHttp2Stream;
  /** The text of CONSUMER_HEADER. Undefined at a provider's proxy, which does not know its consumers. */
  readonly consumer: string | undefined;
  readonly signal: AbortSignal;
}

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

interface Models {
  readonly speech: SpeechModelV4;
  readonly transcription: TranscriptionModelV4;
  readonly video: VideoModelV4;
}

/**
 * A model of a kind that not every package has; null if this one does not have it. Some packages have the method under
 * its short name alone, and the interface does not name that for videos.
 */
export function modelOf<K extends keyof Models>(provider: ProviderV4, kind: K, modelId: string): Models[K] | null {
  const own = provider as unknown as Readonly<Record<string, unknown>>;
  const make = own[`${kind}Model`] ?? own[kind];
  return typeof make === 'function' ? (make.call(provider, modelId) as Models[K]) : null;
}
