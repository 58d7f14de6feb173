import { withoutCredentials } from '#security';

/** Reads a body to its end. If it is longer than `bytesMax`, cancels it and throws the error of `tooLong`. */
export async function readBounded(
  body: AsyncIterable<Uint8Array> | null,
  bytesMax: number,
  tooLong: () => Error,
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  // A throw inside the loop cancels the body.
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > bytesMax) throw tooLong();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Reads about the first `bytesMax` bytes of a body as text, and cancels the rest. */
export async function readStart(body: AsyncIterable<Uint8Array>, bytesMax: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    chunks.push(chunk);
    if (bytes > bytesMax) break;
  }
  return Buffer.concat(chunks).toString('utf8');
}

interface TextRequest {
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON by POST. Without a body the request is a GET. */
  readonly body?: unknown;
  /** The most bytes of the answer, after decompression. */
  readonly bytesMax: number;
  readonly signal: AbortSignal;
  readonly tooLong?: () => Error;
}

interface TextReply {
  readonly status: number;
  readonly text: string;
}

/**
 * Fetches JSON from an address that the operator configured, without following redirects. Credentials in the address
 * become a header. Rejects with the error of `tooLong` or of `fetch`. For untrusted addresses use createGuardedFetch.
 */
export async function fetchText(
  url: string | URL,
  {
    headers,
    body,
    bytesMax,
    signal,
    tooLong = () => new Error(`answers with more than ${bytesMax} bytes`),
  }: TextRequest,
): Promise<TextReply> {
  const address = withoutCredentials(url);
  const response = await fetch(address.url, {
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    headers: {
      accept: 'application/json',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...address.headers,
      ...headers,
    },
    redirect: 'error',
    signal,
  });
  const bytes = await readBounded(response.body as AsyncIterable<Uint8Array> | null, bytesMax, tooLong);
  return { status: response.status, text: bytes.toString('utf8') };
}

/**
 * The bytes of a body by its content-length; Infinity if it has none.
 *
 * A connection must not be paused after the last of these bytes. undici reads the end of the message only when it
 * continues. If the upstream closes the idle connection before that, undici takes the whole reply for a broken one.
 */
export function bodyLengthOf(headers: Readonly<Record<string, string | string[] | undefined>>): number {
  const length = Number(headers['content-length'] ?? NaN);
  return Number.isNaN(length) ? Infinity : length;
}
