import { BOUNDS, fetchText, readForeign } from '#wire';
import { ChainUnavailable, type SignedPayment } from './chain.ts';

const FACILITATOR_BYTES_MAX = 64 * 1024;

/** The answer of an x402 facilitator. Its members are not yet checked. */
type FacilitatorAnswer = Readonly<Record<string, unknown>>;

/** An x402 facilitator over HTTP. Rejects with ChainUnavailable if its answer is not usable. */
export interface FacilitatorClient {
  /** The kinds of payments that it settles, in `kinds`. */
  supported(): Promise<FacilitatorAnswer>;
  /** Submits a payment. The answer has `success`. */
  settle(payment: SignedPayment): Promise<FacilitatorAnswer & { readonly success: boolean }>;
}

/**
 * Creates a client. It replaces the `HTTPFacilitatorClient` of @x402/core, which reads answers of any length, follows
 * redirects with the signed payment, and prints a header of the answer to the standard output.
 */
export function createFacilitatorClient(options: {
  readonly url: URL;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}): FacilitatorClient {
  const { url, timeoutMs, signal } = options;
  const base = url.href.replace(/\/+$/, '');

  async function ask(operation: 'settle' | 'supported', question: unknown): Promise<FacilitatorAnswer> {
    const { status, body } = await askJson(new URL(`${base}/${operation}`), question, {
      timeoutMs,
      bytesMax: FACILITATOR_BYTES_MAX,
      signal,
    });
    // A payment that is refused has a status such as 400, and the reason in its body.
    const isFailed = status >= 500 || status === 429 || (operation === 'supported' && status >= 400);
    if (isFailed || typeof body !== 'object' || body === null || Array.isArray(body)) throw useless(operation, status);
    return body as FacilitatorAnswer;
  }
  const useless = (operation: string, status: number) =>
    new ChainUnavailable(
      `the x402 facilitator at ${url.host} answered ${operation} with ${status} and nothing that can be used`,
    );

  return {
    supported: () => ask('supported', null),
    async settle({ requirements, payload }) {
      const paymentPayload = { x402Version: 2, accepted: requirements, payload };
      const answer = await ask('settle', { x402Version: 2, paymentPayload, paymentRequirements: requirements });
      const { success } = answer;
      if (typeof success !== 'boolean') throw useless('settle', 200);
      return { ...answer, success };
    },
  };
}

interface JsonAnswer {
  readonly status: number;
  readonly body: unknown;
}

interface AskLimits {
  readonly timeoutMs: number;
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
    return { status, body: await readForeign(text, BOUNDS.chain) };
  } catch (error) {
    throw new ChainUnavailable(`${url.host} answered ${status} with text that is no JSON`, { cause: error });
  }
}
