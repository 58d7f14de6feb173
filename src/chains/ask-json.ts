import { ChainUnavailable } from './chain.ts';

/** An HTTP answer that is JSON. */
export interface JsonAnswer {
  readonly status: number;
  readonly body: unknown;
}

export interface AskLimits {
  readonly timeoutMs: number;
  /** Of the answer. */
  readonly bytesMax: number;
  readonly signal: AbortSignal;
}

/** An answer longer than was asked for: a smaller question may be answered. */
export class AnswerTooLong extends ChainUnavailable {}

/**
 * Posts JSON (or gets, where there is no body) and reads a JSON answer of any status. Follows no redirect. Rejects
 * with ChainUnavailable for everything else that may happen, naming the host only: an address of a node often
 * carries a key.
 */
export async function askJson(url: URL, body: unknown, limits: AskLimits): Promise<JsonAnswer> {
  const signal = AbortSignal.any([limits.signal, AbortSignal.timeout(limits.timeoutMs)]);
  const { address, headers } = withoutCredentials(url);
  let status: number;
  let text: string;
  try {
    const response = await fetch(address, {
      ...(body === null ? {} : { method: 'POST', body: JSON.stringify(body) }),
      headers: {
        ...(body === null ? {} : { 'content-type': 'application/json' }),
        accept: 'application/json',
        ...headers,
      },
      redirect: 'error',
      signal,
    });
    status = response.status;
    text = await readText(response, limits.bytesMax, url);
  } catch (error) {
    if (error instanceof ChainUnavailable) throw error;
    const why = limits.signal.aborted
      ? 'the chain was closed'
      : signal.aborted
        ? `no answer within ${limits.timeoutMs} ms`
        : 'the connection failed';
    throw new ChainUnavailable(`${url.host}: ${why}`, { cause: error });
  }
  try {
    return { status, body: JSON.parse(text) as unknown };
  } catch (error) {
    throw new ChainUnavailable(`${url.host} answered ${status} with text that is no JSON`, { cause: error });
  }
}

/** `https://user:password@host`: fetch refuses such an address, and writes it into its error. */
function withoutCredentials(url: URL): { readonly address: URL; readonly headers: Readonly<Record<string, string>> } {
  if (!url.username && !url.password) return { address: url, headers: {} };
  const address = new URL(url);
  address.username = '';
  address.password = '';
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  return { address, headers: { authorization: `Basic ${Buffer.from(credentials, 'utf8').toString('base64')}` } };
}

async function readText(response: Response, bytesMax: number, url: URL): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    // Leaving the loop cancels the body.
    if (bytes > bytesMax) throw new AnswerTooLong(`${url.host} answered with more than ${bytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
