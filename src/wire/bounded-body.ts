/** Reads the bytes of a body to its end. Throws the error that `tooLong` makes, and cancels the body, above `bytesMax`. */
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

export interface JsonRequest {
  readonly headers?: Readonly<Record<string, string>>;
  /** Posted as JSON; a request without it is a GET. */
  readonly body?: unknown;
  /** Bytes of the answer, unpacked. */
  readonly bytesMax: number;
  readonly signal: AbortSignal;
}

/** The answer of an HTTP server, of any status. */
export interface JsonReply {
  readonly status: number;
  readonly body: unknown;
}

/** The answer has more bytes than were asked for. */
export class AnswerTooLong extends Error {
  override readonly name = 'AnswerTooLong';
}

/** The answer is not JSON. */
export class AnswerNotJson extends Error {
  override readonly name = 'AnswerNotJson';
  readonly status: number;
  constructor(status: number, cause: unknown) {
    super(`answers ${status} with text that is not JSON`, { cause });
    this.status = status;
  }
}

/**
 * Asks for JSON at an address that the operator named, without following redirects. Rejects with AnswerTooLong,
 * AnswerNotJson, or the error of `fetch`. Addresses that strangers name are for createGuardedFetch.
 */
export async function fetchJson(
  url: string | URL,
  { headers, body, bytesMax, signal }: JsonRequest,
): Promise<JsonReply> {
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
  const tooLong = () => new AnswerTooLong(`answers with more than ${bytesMax} bytes`);
  const bytes = await readBounded(response.body as AsyncIterable<Uint8Array> | null, bytesMax, tooLong);
  try {
    return { status: response.status, body: JSON.parse(bytes.toString('utf8')) };
  } catch (error) {
    throw new AnswerNotJson(response.status, error);
  }
}
