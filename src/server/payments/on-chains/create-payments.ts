import { GatewayError } from '#errors';
import { formatUsd, type MicroUsd } from '#billing';
import {
  ChainUnavailable,
  PaymentProblem,
  type Chain,
  type Chains,
  type Deposit,
  type PaymentPayload,
  type SignedPayment,
} from '#chains';
import type { Caller } from '#accounts';
import type { PaymentReceipt, Payments, PaymentAttempt } from '../payments.ts';
import { canonical } from '../payment-header.ts';
import type { ChainTerms } from './funds.ts';

interface PaymentsOptions {
  readonly chains: Pick<Chains, 'networks' | 'chain' | 'deposits'>;
  /** The terms of `chains`. The list may grow. */
  readonly terms: readonly ChainTerms[];
  readonly now: () => number;
}

const PENDING_RETRY_S = 2;
const AWAY_RETRY_S = 5;

export function createPayments({ chains, terms: chainTerms, now }: PaymentsOptions): Payments {
  const boundsOf = (network: string): TopupBounds => {
    const { minTopup, topupMax } = chainTerms.find((one) => one.network === network)!;
    return { least: minTopup, most: topupMax };
  };
  /** The account of each payment that was verified for its request. */
  const verified = new WeakMap<PaymentAttempt, string>();

  const read = (paymentAttempt: PaymentAttempt): { readonly signed: SignedPayment; readonly chain: Chain } => {
    const { accepted } = paymentAttempt.payload as unknown as PaymentPayload;
    const network: unknown = accepted.network;
    if (typeof network !== 'string' || !chains.networks.includes(network)) {
      const right = chains.networks.join(', ');
      throw new GatewayError(
        typeof network === 'string' ? 'payment_verification_failed' : 'invalid_request',
        `This gateway does not accept payments on this network. Pay on ${right}`,
        {
          param: 'accepted.network',
        },
      );
    }
    const chain = chains.chain(network);
    if (chain === null) throw away(network);
    const signed = chain.read(paymentAttempt.payload as unknown as PaymentPayload);
    paymentAttempt.id = signed.id;
    return { signed, chain };
  };

  /**
   * Returns the deposit of a payment that is already known. Otherwise verifies the payment and returns the account that
   * signed it.
   */
  const knownOrVerified = async (
    signed: SignedPayment,
    chain: Chain,
  ): Promise<Deposit | { readonly account: string }> => {
    const deposit = await chains.deposits.find(signed);
    if (deposit !== null) return deposit;
    try {
      return await chain.verify(signed);
    } catch (error) {
      // Another request may have brought the same payment in the meantime. The chain accepts it only once, so
      // verification fails, but the deposit is there.
      const known = error instanceof PaymentProblem ? await chains.deposits.find(signed) : null;
      if (known === null) throw error;
      return known;
    }
  };

  return {
    open: chains.networks.length > 0,

    async required({ error, resource, amount, caller }) {
      // A signed-in wallet pays for itself (checkPayer), so its payment needs no memo. Older clients can't sign one.
      const account = caller.anonymous || caller.wallet !== null ? null : caller.account;
      const terms = await Promise.all(
        chains.networks.map(async (network) => {
          const chain = chains.chain(network);
          const { least, most } = boundsOf(network);
          const due = amount > least ? amount : least;
          if (chain === null || due > most) return null;
          return chain.requirements(due, account).catch((reason: unknown) => {
            if (reason instanceof ChainUnavailable) return null;
            throw reason;
          });
        }),
      );
      const accepts = terms.filter((entry) => entry !== null).map((entry) => ({ ...entry }));
      return {
        x402Version: 2,
        error: accepts.length > 0 ? error : `${error}. ${whyNoTerms(amount, chains.networks.map(boundsOf))}`,
        resource,
        accepts,
      };
    },

    callerOf: (caller, paymentAttempt) =>
      toldInOurWords(async () => {
        if (!caller.anonymous) return caller;
        const { signed, chain } = read(paymentAttempt);
        const deposit = await knownOrVerified(signed, chain);
        const account = 'state' in deposit ? knownOwner(deposit, signed, paymentAttempt, now()) : deposit.account;
        verified.set(paymentAttempt, account);
        return { account, key: null, wallet: null, paying: caller.anonymous };
      }),

    take: (caller, paymentAttempt, needed) =>
      toldInOurWords(async () => {
        const { signed, chain } = read(paymentAttempt);
        if ((await chains.deposits.find(signed)) === null) {
          checkAmount(signed, needed, boundsOf(signed.network));
          const account = verified.get(paymentAttempt);
          const payment = account === undefined ? await knownOrVerified(signed, chain) : { account };
          if (!('state' in payment)) {
            if (caller.paying && payment.account !== caller.account)
              throw refused('The wallet of the payment differs from the wallet of the request');
            checkPayer(caller, payment.account, signed, chain);
          }
        }
        const deposit = await chains.deposits.take(signed, {
          account: caller.account,
          request: caller.paying ? paymentAttempt.request : null,
        });
        return receiptOf(deposit, signed);
      }),
  };
}

/** Explains why no chain can accept a payment of `amount`, and what to do. */
function whyNoTerms(amount: MicroUsd, bounds: readonly TopupBounds[]): string {
  const most = bounds.reduce((highest, one) => (one.most > highest ? one.most : highest), 0n);
  return amount > most
    ? `One payment is at most ${formatUsd(most)} USDC: ask for less (a lower max_tokens or max_cost), or sign in and pay in several times with POST /api/v1/topup`
    : 'The chains that can be paid over do not answer at the moment: retry later';
}

function receiptOf(
  { state, transaction, network, payer, credited }: Deposit,
  { amount }: SignedPayment,
): PaymentReceipt {
  if (state !== 'credited' && state !== 'final') {
    const message = `The payment of ${formatUsd(amount)} USDC was received but is not settled yet. Repeat the request with the same payment. The payment is credited only once, whenever it arrives`;
    throw new GatewayError('payment_pending', message, { retryAfterS: PENDING_RETRY_S });
  }
  return { success: true, transaction: transaction!, network, payer, amount: String(credited) };
}

/** Turns errors of a chain into GatewayErrors. */
async function toldInOurWords<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof PaymentProblem) throw new GatewayError(error.code, error.message, { cause: error });
    if (error instanceof ChainUnavailable)
      throw new GatewayError(
        'service_unavailable',
        'The chain of this payment cannot be reached at the moment. Repeat the request with the same payment',
        {
          retryAfterS: AWAY_RETRY_S,
          cause: error,
        },
      );
    throw error;
  }
}

const away = (network: string) =>
  new GatewayError(
    'service_unavailable',
    `${network} cannot be reached at the moment. Repeat the request with the same payment, or pay on another network`,
    {
      retryAfterS: AWAY_RETRY_S,
    },
  );

interface TopupBounds {
  readonly least: MicroUsd;
  readonly most: MicroUsd;
}

/**
 * For this time a payment alone identifies the caller. It is long enough to repeat the request that brought the
 * payment. It is too short for somebody who sees the payment on the chain to guess that request.
 */
const SAYS_WHO_MS = 900_000;
const refused = (message: string) => new GatewayError('payment_verification_failed', message);

/** Returns the account of a payment that is already stored. Throws unless this is the request that brought it. */
function knownOwner(deposit: Deposit, signed: SignedPayment, paymentAttempt: PaymentAttempt, now: number): string {
  const { account, payment, request, createdAt } = deposit;
  const same = payment !== null && canonical(payment.payload) === canonical(signed.payload);
  if (account === null || !same || request !== paymentAttempt.request)
    throw refused('This payment was already used for something else. Sign a new one');
  if (now - createdAt > SAYS_WHO_MS)
    throw refused(
      'This payment was already used long ago. Sign a new one, or sign in with the wallet to use its balance',
    );
  return account;
}

/** Throws if the payment can't be credited to the caller. `account` is the account of the paying wallet. */
function checkPayer(caller: Caller, account: string, signed: SignedPayment, chain: Chain): void {
  if (caller.wallet !== null && account !== caller.account)
    throw refused(
      `The payment is from wallet ${signed.payer}, but another wallet is signed in. Pay with the wallet that is signed in`,
    );
  const memo = signed.requirements.extra['memo'];
  // On some chains the payment names the account that it is for.
  if (typeof memo === 'string' && memo !== caller.account)
    throw refused(`The payment is for account ${memo.slice(0, 128)}, not for this account. Request the terms again`);
  // A wallet may sign a payment for itself without a memo. If somebody else gets this payment, it must not be credited
  // to them.
  if (chain.paymentsNameAccounts && account !== caller.account && signed.memo !== caller.account)
    throw refused(
      `The payment does not name the account ${caller.account}. Sign one with the memo of the terms (extra.memo), or sign in with the wallet that pays`,
    );
}

/** Throws if the amount is too small or too large. */
function checkAmount(signed: SignedPayment, needed: MicroUsd, { least, most }: TopupBounds): void {
  const { amount } = signed;
  const right = needed > least ? needed : least;
  if (amount < right)
    throw new GatewayError(
      'insufficient_payment',
      `The payment is ${formatUsd(amount)} USDC, but it must be at least ${formatUsd(right)} USDC`,
    );
  if (amount > most)
    throw refused(`The payment is ${formatUsd(amount)} USDC, but at most ${formatUsd(most)} USDC are accepted at once`);
}

/**
 * The configuration of the chains can't work. `message` says what is wrong and what would be right, and never contains
 * a key.
 */
export class PaymentsSetupError extends Error {
  override readonly name = 'PaymentsSetupError';
}
