/**
 * Reads the bytes of a body to its end. Throws the error that `tooLong` makes, and cancels the body, above `bytesMax`.
 */
export async function readBounded(
  body: AsyncIterable<Uint8Array> | null,
  bytesMax: number,
  tooLong: () => Error,
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop cancels the body.
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > bytesMax) throw tooLong();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Reads the text of a body up to about `bytesMax` bytes, and cancels the rest of it. */
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
  /** Posted as JSON; a request without it is a GET. */
  readonly body?: unknown;
  /** Bytes of the answer, unpacked. */
  readonly bytesMax: number;
  readonly signal: AbortSignal;
  /** Makes the error of an answer above `bytesMax`. */
  readonly tooLong?: () => Error;
}

/** The answer of an HTTP server, of any status. */
interface TextReply {
  readonly status: number;
  readonly text: string;
}

/**
 * Asks for JSON at an address that the operator named, without following redirects. Rejects with the error of
 * `tooLong` or of `fetch`. Addresses that strangers name are for createGuardedFetch.
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
  const response = await fetch(url, {
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    headers: {
      accept: 'application/json',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    redirect: 'error',
    signal,
  });
  const bytes = await readBounded(response.body as AsyncIterable<Uint8Array> | null, bytesMax, tooLong);
  return { status: response.status, text: bytes.toString('utf8') };
}
