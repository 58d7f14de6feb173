import type { Address } from '@solana/kit';
import { MICRO_USD_MAX } from '#billing/amounts';
import { PaymentProblem, type PaymentPayload, type PaymentRequirements, type SignedPayment } from '../chain.ts';
import { addressOf, type TreasuryKey } from './address.ts';
import { MEMO_BYTES_MAX, readExact, withFeeSignature, type ExactTerms } from './exact.ts';
import type { Sought } from './payment-observation.ts';

interface PaymentReaderOptions {
  readonly network: string;
  readonly asset: Address;
  readonly treasuryAccount: Address;
  readonly key: TreasuryKey;
  /** Whether the treasury pays the fees of payments. */
  readonly paysFees: boolean;
  readonly now: () => number;
}

/** Reads x402 payments. All functions throw PaymentProblem if a payment does not match the requirements. */
interface PaymentReader {
  read(payment: PaymentPayload): SignedPayment;
  /** The terms for a payment that is accepted now. */
  termsNow(requirements: PaymentRequirements): ExactTerms;
  /**
   * The data to find a payment on the chain. The treasury's signature is computed only for a transaction that it would
   * co-sign anyway, because a node that sees the signature could send the transaction.
   */
  soughtOf(payment: SignedPayment): Sought;
}

export function createPaymentReader(options: PaymentReaderOptions): PaymentReader {
  const { network, asset, treasuryAccount, key, paysFees, now } = options;
  const treasury = key.address;

  function termsOf({ extra, amount }: PaymentRequirements): ExactTerms {
    const feePayer = addressOf(extra['feePayer']);
    if (feePayer === null)
      throw invalid("accepted.extra.feePayer must be the fee payer's address, as the requirements say");
    const memo = extra['memo'] ?? null;
    if (memo !== null && (typeof memo !== 'string' || Buffer.byteLength(memo) > MEMO_BYTES_MAX))
      throw invalid(
        `accepted.extra.memo must be the text that the requirements say, of at most ${MEMO_BYTES_MAX} bytes`,
      );
    return {
      asset,
      treasury,
      treasuryAccount,
      feePayer,
      amount: BigInt(amount),
      memo: memo === '' ? null : memo,
    };
  }

  function termsNow(requirements: PaymentRequirements): ExactTerms {
    const terms = termsOf(requirements);
    if (paysFees && terms.feePayer !== treasury)
      throw invalid(`accepted.extra.feePayer must be ${treasury}, as the requirements say`);
    return terms;
  }

  function read({ x402Version, accepted, payload }: PaymentPayload): SignedPayment {
    if (x402Version !== 2) throw invalid('x402Version must be 2');
    if (!isObject(accepted) || !isObject(accepted.extra))
      throw invalid('accepted must be the requirements that are paid, with their extra');
    if (!isObject(payload)) throw invalid('payload must be {transaction}');
    const wrong = (field: string, value: string) =>
      new PaymentProblem('payment_verification_failed', `accepted.${field} must be ${value}, as the requirements say`);
    if (accepted.scheme !== 'exact') throw wrong('scheme', 'exact');
    if (accepted.network !== network) throw wrong('network', network);
    if (accepted.asset !== asset) throw wrong('asset', asset);
    if (accepted.payTo !== treasury) throw wrong('payTo', treasury);
    if (
      typeof accepted.amount !== 'string' ||
      !/^[1-9]\d{0,19}$/.test(accepted.amount) ||
      BigInt(accepted.amount) > MICRO_USD_MAX
    )
      throw invalid(`accepted.amount must be micro-USD in decimal digits, 1 to ${MICRO_USD_MAX}`);
    const terms = termsNow(accepted);
    const { payer, messageHash, memo } = readExact(payload['transaction'], terms);
    return {
      id: `${network}/${messageHash}`,
      network,
      payerAccount: `solana:${payer}`,
      payer,
      amount: terms.amount,
      requirements: accepted,
      ...(memo === null ? {} : { memo }),
      payload: { transaction: payload['transaction'] },
      // It says how far back a node's history must reach before its answer counts that the payment never arrived.
      readAt: now(),
    };
  }

  function soughtOf({ payload, requirements, readAt }: SignedPayment): Sought {
    const terms = termsOf(requirements);
    const exact = readExact(payload['transaction'], terms);
    const signature =
      terms.feePayer === treasury ? withFeeSignature(exact, treasury, key.sign(exact.message)).id : null;
    const { messageHash, blockhash, source } = exact;
    return { messageHash, blockhash, source, signature, readAt: readAt ?? null };
  }

  return { read, termsNow, soughtOf };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalid(message: string): PaymentProblem {
  return new PaymentProblem('invalid_request', message);
}
