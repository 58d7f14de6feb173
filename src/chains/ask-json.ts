import { fetchText } from '#wire';
import { ChainUnavailable } from './chain.ts';

/** An HTTP answer that is JSON. */
interface JsonAnswer {
  readonly status: number;
  readonly body: unknown;
}

interface AskLimits {
  readonly timeoutMs: number;
  /** The maximum size of the answer. */
  readonly bytesMax: number;
  readonly signal: AbortSignal;
}

/** The answer is larger than `bytesMax`. A smaller request may succeed. */
export class AnswerTooLong extends ChainUnavailable {}

/**
 * Sends a POST with JSON (or a GET without a body) and reads a JSON answer of any status. Follows no redirect. Rejects
 * with ChainUnavailable for every other failure. Its message names only the host, because the URL of a node often
 * contains a key.
 */
export async function askJson(url: URL, body: unknown, limits: AskLimits): Promise<JsonAnswer> {
  const signal = AbortSignal.any([limits.signal, AbortSignal.timeout(limits.timeoutMs)]);
  let status: number;
  let text: string;
  try {
    ({ status, text } = await fetchText(url, {
      body: body ?? undefined,
      bytesMax: limits.bytesMax,
      signal,
      tooLong: () => new AnswerTooLong(`${url.host} answered with more than ${limits.bytesMax} bytes`),
    }));
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
