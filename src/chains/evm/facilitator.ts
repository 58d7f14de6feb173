import type { Hex } from 'viem';
import { ChainUnavailable, PaymentProblem, type SignedPayment } from '../chain.ts';
import type { FacilitatorClient } from '../facilitator-client.ts';
import { plainWords } from './rpc.ts';

/**
 * Submits a payment to an external facilitator. Its answer is never proof of payment. It only gets payments that are
 * already stored, because it could submit one in its own name. Resolves with the transaction id in its answer. Rejects
 * with PaymentProblem only if it certainly sent nothing.
 */
export async function settleElsewhere(facilitator: FacilitatorClient, payment: SignedPayment): Promise<Hex | null> {
  const { success, transaction, errorReason, errorMessage } = await facilitator.settle(payment);
  const named =
    typeof transaction === 'string' && /^0x[0-9a-f]{64}$/i.test(transaction)
      ? (transaction.toLowerCase() as Hex)
      : null;
  if (success || named) return named;
  // Reasons of x402 with these prefixes mean that nothing was sent. Any other reason may come after a broadcast.
  if (typeof errorReason === 'string' && /^(?:invalid|insufficient)_/.test(errorReason))
    throw refused(errorReason, errorMessage);
  throw new ChainUnavailable(
    `The facilitator did not settle the payment: ${plainWords(errorReason) || 'it gave no reason'}`,
  );
}

function refused(reason: unknown, message: unknown): PaymentProblem {
  const words = [plainWords(reason), plainWords(message)].filter(Boolean).join(': ') || 'no reason given';
  const code = /expired|valid_before/.test(words) ? 'payment_expired' : 'payment_verification_failed';
  return new PaymentProblem(code, `The facilitator refuses the payment: ${words}`);
}
