import { askJson } from './ask-json.ts';
import { ChainUnavailable, type SignedPayment } from './chain.ts';

const ANSWER_BYTES_MAX = 64 * 1024;

/** The answer of an x402 facilitator. Each member is still to be checked. */
type FacilitatorAnswer = Readonly<Record<string, unknown>>;

/**
 * An x402 facilitator at an address, over HTTP. Rejects with ChainUnavailable where it answers nothing that can be
 * used.
 */
export interface FacilitatorClient {
  /** The payments that it settles, and how: `kinds`. */
  supported(): Promise<FacilitatorAnswer>;
  /** Hands a payment over. The answer has `success`. */
  settle(payment: SignedPayment): Promise<FacilitatorAnswer & { readonly success: boolean }>;
}

/**
 * Not the `HTTPFacilitatorClient` of @x402/core: that reads answers of any length, follows redirects with the
 * signed payment in its hands, and prints what a header of the answer says to the standard output.
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
      bytesMax: ANSWER_BYTES_MAX,
      signal,
    });
    if (status >= 500 || status === 429 || typeof body !== 'object' || body === null || Array.isArray(body))
      throw useless(operation, status);
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
