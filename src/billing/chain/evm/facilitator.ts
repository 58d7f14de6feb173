import type { Hex } from 'viem';
import { ChainUnavailable, PaymentProblem } from '../chain.ts';
import type { SignedPayment } from '../chain.ts';
import { postJson } from './post.ts';
import { plainWords } from './rpc.ts';

const ANSWER_BYTES_MAX = 64 * 1024;

/** An x402 facilitator that is somebody else's. What it says is never proof of payment, and what it is shown is a payment that is kept already: it could bring it in its own name. */
export interface Facilitator {
  /** Hands the payment over. Resolves with the transaction that it names; rejects with PaymentProblem only where it surely sent nothing. */
  settle(payment: SignedPayment): Promise<Hex | null>;
  close(): void;
}

/**
 * Not the `HTTPFacilitatorClient` of @x402/core: that reads answers of any length, follows redirects with the signed payment in its hands, and prints what a header
 * of the answer says to the standard output.
 */
export function createFacilitator(options: { readonly url: URL; readonly timeoutMs: number }): Facilitator {
  const { url, timeoutMs } = options;
  const closing = new AbortController();
  const base = url.href.replace(/\/+$/, '');

  async function askToSettle(payment: SignedPayment): Promise<Readonly<Record<string, unknown>>> {
    const { requirements, payload } = payment;
    const paymentPayload = { x402Version: 2, accepted: requirements, payload };
    const answer = await postJson(
      new URL(`${base}/settle`),
      { x402Version: 2, paymentPayload, paymentRequirements: requirements },
      { timeoutMs, bytesMax: ANSWER_BYTES_MAX, signal: closing.signal },
    );
    const { status, body } = answer;
    if (
      status >= 500 ||
      status === 429 ||
      typeof body !== 'object' ||
      body === null ||
      typeof (body as Record<string, unknown>)['success'] !== 'boolean'
    )
      throw new ChainUnavailable(`The facilitator answered with ${status} and nothing that can be used`);
    return body as Record<string, unknown>;
  }

  return {
    async settle(payment) {
      const { success, transaction, errorReason, errorMessage } = await askToSettle(payment);
      const named = typeof transaction === 'string' && /^0x[0-9a-f]{64}$/i.test(transaction) ? (transaction.toLowerCase() as Hex) : null;
      if (success === true || named) return named;
      // x402's reasons for what it found wrong before it sent anything begin so. Any other may come after a broadcast.
      if (typeof errorReason === 'string' && /^(?:invalid|insufficient)_/.test(errorReason)) throw refused(errorReason, errorMessage);
      throw new ChainUnavailable(`The facilitator did not settle: ${plainWords(errorReason) || 'it does not say why'}`);
    },
    close: () => closing.abort(),
  };
}

function refused(reason: unknown, message: unknown): PaymentProblem {
  const words = [plainWords(reason), plainWords(message)].filter(Boolean).join(': ') || 'no reason given';
  const code = /expired|valid_before/.test(words) ? 'payment_expired' : 'payment_verification_failed';
  return new PaymentProblem(code, `The facilitator refuses the payment: ${words}`);
}
