import type { Hex } from 'viem';
import { ChainUnavailable, PaymentProblem, type SignedPayment } from '../chain.ts';
import type { FacilitatorClient } from '../facilitator-client.ts';
import { plainWords } from './rpc.ts';

/**
 * Hands a payment to a facilitator that is somebody else's. What it says is never proof of payment, and what it is
 * shown is a payment that is kept already: it could bring it in its own name. Resolves with the transaction that it
 * names; rejects with PaymentProblem only where it surely sent nothing.
 */
export async function settleElsewhere(facilitator: FacilitatorClient, payment: SignedPayment): Promise<Hex | null> {
  const { success, transaction, errorReason, errorMessage } = await facilitator.settle(payment);
  const named =
    typeof transaction === 'string' && /^0x[0-9a-f]{64}$/i.test(transaction)
      ? (transaction.toLowerCase() as Hex)
      : null;
  if (success || named) return named;
  // x402's reasons for what it found wrong before it sent anything begin so. Any other may come after a broadcast.
  if (typeof errorReason === 'string' && /^(?:invalid|insufficient)_/.test(errorReason))
    throw refused(errorReason, errorMessage);
  throw new ChainUnavailable(`The facilitator did not settle: ${plainWords(errorReason) || 'it does not say why'}`);
}

function refused(reason: unknown, message: unknown): PaymentProblem {
  const words = [plainWords(reason), plainWords(message)].filter(Boolean).join(': ') || 'no reason given';
  const code = /expired|valid_before/.test(words) ? 'payment_expired' : 'payment_verification_failed';
  return new PaymentProblem(code, `The facilitator refuses the payment: ${words}`);
}
