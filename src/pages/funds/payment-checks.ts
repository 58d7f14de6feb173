import { GatewayError } from '#wire';
import { formatUsd, type MicroUsd } from '#billing';
import type { Chain, Deposit, SignedPayment } from '#chains';
import { canonical, type Caller, type PaymentAttempt } from '#gateway';

/** The smallest and largest amount of one payment. */
export interface TopupBounds {
  readonly least: MicroUsd;
  readonly most: MicroUsd;
}

/**
 * For this time a payment alone identifies the caller. It is long enough to repeat the request that brought the
 * payment. It is too short for somebody who sees the payment on the chain to guess that request.
 */
const SAYS_WHO_MS = 900_000;
export const refused = (message: string) => new GatewayError('payment_verification_failed', message);

/** Returns the account of a payment that is already stored. Throws unless this is the request that brought it. */
export function knownOwner(
  deposit: Deposit,
  signed: SignedPayment,
  paymentAttempt: PaymentAttempt,
  now: number,
): string {
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
export function checkPayer(caller: Caller, account: string, signed: SignedPayment, chain: Chain): void {
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
export function checkAmount(signed: SignedPayment, needed: MicroUsd, { least, most }: TopupBounds): void {
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
