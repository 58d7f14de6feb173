import type { PaymentPayload as X402Payload, PaymentRequirements as X402Requirements } from '@x402/core/types';
import { ExactSvmScheme } from '@x402/svm/exact/facilitator';
import type { FacilitatorSvmSigner } from '@x402/svm';
import type { Address } from '@solana/kit';
import { dropOldest } from '#wire';
import { ChainUnavailable, PaymentProblem, type SignedPayment } from '../chain.ts';
import type { FacilitatorClient } from '../ask-json.ts';
import { addressOf, isSignature, type TreasuryKey } from './address.ts';
import { readExact, withFeeSignature, type ExactTerms } from './exact.ts';
import type { SolanaNode } from './node.ts';

/** Checks payments, pays their fees and submits them. */
interface SolanaFacilitator {
  feePayer(): Promise<Address>;
  /** Rejects with PaymentProblem or ChainUnavailable. */
  verify(payment: SignedPayment): Promise<void>;
  submit(payment: SignedPayment, terms: ExactTerms): Promise<string | null>;
}

/**
 * Checks a payment with the library and the gateway's own node, even if an external facilitator settles it. The
 * facilitator must not see a payment before a row says who owns it. Rejects with PaymentProblem or ChainUnavailable.
 */
async function check(payment: SignedPayment, feePayer: Address, node: SolanaNode): Promise<void> {
  let unavailable: ChainUnavailable | null = null;
  let failure: string | null = null;
  const signer: FacilitatorSvmSigner = {
    getAddresses: () => [feePayer],
    async simulateTransaction(transaction) {
      try {
        failure = await node.simulate(transaction);
      } catch (error) {
        if (error instanceof ChainUnavailable) unavailable = error;
        throw error;
      }
      if (failure !== null) throw new Error(failure);
    },
    signTransaction: () => never('sign'),
    sendTransaction: () => never('send'),
    confirmTransaction: () => never('confirm'),
  };
  const scheme = new ExactSvmScheme(signer, undefined, { maxRequiredSignatures: 2 });
  const { payload, requirements } = toX402(payment);
  const { isValid, invalidReason } = await scheme.verify(payload, requirements);
  if (unavailable !== null) throw unavailable as ChainUnavailable;
  if (failure !== null) throw problemOf(failure);
  if (!isValid) throw refusal(invalidReason);
}

/** A node itself sends a transaction again every two seconds, until it is in a block or expires. */
const SENT_AGAIN_MS = 3_000;
const REMEMBERED_MAX = 2_000;

/**
 * The gateway as its own facilitator: the library checks, and the gateway signs and sends. The settling of the library
 * is not used, because it treats an error after broadcasting as a failure and detects duplicates only within one
 * process.
 */
export function createOwnFacilitator(key: TreasuryKey, node: SolanaNode, now: () => number): SolanaFacilitator {
  /** When the node accepted a transaction, by its id. */
  const sentAt = new Map<string, number>();
  return {
    feePayer: async () => key.address,
    verify: (payment) => check(payment, key.address, node),
    async submit(payment, terms) {
      // The transaction is checked again, because exactly these bytes get the signature.
      const exact = readExact(payment.payload['transaction'], terms);
      const { base64, id } = withFeeSignature(exact, key.address, key.sign(exact.message));
      if (now() - (sentAt.get(id) ?? -Infinity) < SENT_AGAIN_MS) return id;
      await node.send(base64, id);
      sentAt.delete(id);
      dropOldest(sentAt, REMEMBERED_MAX - 1);
      sentAt.set(id, now());
      return id;
    },
  };
}

/** For this time the fee payers of a facilitator are not requested again. */
const FEE_PAYERS_MS = 60_000;
/** Up to this age the known fee payers are used while new ones are requested, so that no request waits for them. */
const FEE_PAYERS_OLD_MS = 600_000;

/** The addresses with which a facilitator pays fees. */
interface FeePayers {
  /** For new terms. */
  readonly address: Address;
  /** All that the facilitator lists. It may name any of them, and another one to each gateway. */
  readonly listed: readonly Address[];
}

interface RemoteOptions {
  readonly client: FacilitatorClient;
  readonly network: string;
  readonly treasury: Address;
  readonly node: SolanaNode;
  readonly now: () => number;
}

/** An external x402 facilitator. Its answers are only hints: the chain decides. */
export function createRemoteFacilitator({ client, network, treasury, node, now }: RemoteOptions): SolanaFacilitator {
  let known: { readonly current: FeePayers; readonly before: FeePayers; readonly at: number } | null = null;
  let asking: Promise<FeePayers> | null = null;
  /** The last answer named no fee payer for this network. */
  let isUnnamed = false;

  function read({ kinds, signers }: Awaited<ReturnType<FacilitatorClient['supported']>>): FeePayers {
    const kind = (Array.isArray(kinds) ? (kinds as readonly (PaymentKind | null)[]) : []).find(
      (one) => one?.x402Version === 2 && one.scheme === 'exact' && one.network === network,
    );
    if (!kind) throw new ChainUnavailable(`the x402 facilitator does not settle exact payments on ${network}`);
    const address = addressOf(kind.extra?.feePayer);
    if (address === null) throw new ChainUnavailable(`the x402 facilitator names no extra.feePayer for ${network}`);
    if (address === treasury)
      throw new ChainUnavailable(`the x402 facilitator pays its fees on ${network} with the treasury's own key`);
    return { address, listed: signersOf(signers, network).filter((one) => one !== treasury) };
  }

  /** Asks for the fee payers. If the facilitator does not answer, its last answer stands. */
  async function ask(): Promise<FeePayers> {
    const answer = await client.supported().catch((error: unknown) => {
      if (known === null) throw error;
      return null;
    });
    isUnnamed = answer !== null;
    const current = answer === null ? known!.current : read(answer);
    isUnnamed = false;
    known = { current, before: known?.current ?? current, at: now() };
    return current;
  }

  const askOnce = (): Promise<FeePayers> =>
    (asking ??= ask().finally(() => {
      asking = null;
    }));

  async function feePayers(): Promise<FeePayers> {
    const age = known === null ? Infinity : now() - known.at;
    if (age < FEE_PAYERS_MS) return known!.current;
    const question = askOnce();
    if (age >= FEE_PAYERS_OLD_MS || isUnnamed) return question;
    // Nobody waits for this answer. If it cannot be used, the next request asks again.
    question.catch(() => {});
    return known!.current;
  }

  /** Whether the facilitator named this fee payer in one of its last two answers. */
  const isAccepted = (feePayer: Address | null): feePayer is Address => {
    // Terms from before the last answer may be paid a moment later.
    const { current, before } = known!;
    return (
      feePayer !== null && [current, before].some((one) => one.address === feePayer || one.listed.includes(feePayer))
    );
  };

  return {
    feePayer: async () => (await feePayers()).address,
    async verify(payment) {
      await feePayers();
      const feePayer = addressOf(payment.requirements.extra['feePayer']);
      // Another gateway may have given terms by an answer that this one is still waiting for.
      if (!isAccepted(feePayer) && asking !== null) await asking;
      if (!isAccepted(feePayer))
        throw new PaymentProblem(
          'payment_verification_failed',
          `The fee of a payment is now paid by ${known!.current.address}. Request the terms again, and sign a new payment`,
        );
      await check(payment, feePayer, node);
    },
    async submit(payment) {
      const { success, transaction, errorReason } = await client.settle(payment);
      // A payment that it refuses may have been sent before, and a reported failure may have been broadcast.
      if (!success)
        throw new ChainUnavailable(
          `the x402 facilitator did not settle a payment: ${String(errorReason).slice(0, 120)}`,
        );
      return isSignature(transaction) ? transaction : null;
    },
  };
}

/** A supported kind of payment in the form of x402 facilitators. Members are not yet checked. */
interface PaymentKind {
  readonly x402Version?: unknown;
  readonly scheme?: unknown;
  readonly network?: unknown;
  readonly extra?: { readonly feePayer?: unknown } | null;
}

/**
 * The fee payers that a facilitator lists for a network: x402 lists them by CAIP-2 id, or by a pattern such as
 * `solana:*`.
 */
function signersOf(signers: unknown, network: string): readonly Address[] {
  if (typeof signers !== 'object' || signers === null) return [];
  const family = `${network.slice(0, network.indexOf(':'))}:*`;
  return [network, family].flatMap((name) => {
    const list: unknown = Object.hasOwn(signers, name) ? (signers as Record<string, unknown>)[name] : [];
    return Array.isArray(list) ? list.flatMap((one) => addressOf(one) ?? []) : [];
  });
}

function toX402({ requirements, payload }: SignedPayment): { payload: X402Payload; requirements: X402Requirements } {
  const accepted = requirements as X402Requirements;
  return {
    payload: { x402Version: 2, accepted, payload: { transaction: payload['transaction'] } },
    requirements: accepted,
  };
}

/** The error for the payer after a failed simulation. */
function problemOf(failure: string): Error {
  if (failure.includes('BlockhashNotFound'))
    return new PaymentProblem(
      'payment_expired',
      "The payment's blockhash has expired, or is not known yet: sign a new payment with a recent one",
    );
  if (failure.includes('InsufficientFundsForFee') || failure === '"AccountNotFound"')
    return new ChainUnavailable('the account that pays the fees of payments has no SOL');
  if (failure.includes('AlreadyProcessed'))
    return new PaymentProblem('payment_verification_failed', 'This payment was already made. Sign a new one');
  if (/"InstructionError":\[2,\{"Custom":1\}\]/.test(failure))
    return new PaymentProblem('payment_verification_failed', 'The balance of the payer is lower than the payment');
  return new PaymentProblem('payment_verification_failed', `The payment would fail on the chain: ${failure}`);
}

function refusal(reason: string | undefined): PaymentProblem {
  return new PaymentProblem(
    'payment_verification_failed',
    `The payment was not accepted: ${(reason ?? 'no reason given').slice(0, 200)}`,
  );
}

function never(what: string): never {
  throw new Error(`the library may only check a payment, not ${what} it`);
}
