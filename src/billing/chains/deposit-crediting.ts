import { escrowOf, OPERATOR, OPERATOR_TREASURY, SUSPENSE, treasuryOf } from '#billing';
import type { AccountName, Ledger, MicroUsd } from '#billing';
import { LOSSES, makeCertain, TRANSIT, TRANSIT_ACCOUNT } from './books.ts';
import type { ChainEvent, OnProblem } from './chain.ts';
import type { Deposit, DepositRows } from './deposit-rows.ts';

interface DepositPolicy {
  readonly confirmations: number;
  readonly unfinalMax: MicroUsd;
}

export interface CreditingOptions {
  readonly rows: DepositRows;
  readonly ledger: Pick<Ledger, 'transfer' | 'balance'>;
  readonly policyOf: (network: string) => DepositPolicy;
  readonly strangersMax: MicroUsd;
  /** Gives back the unsigned withdrawals of an account. */
  readonly recall: (account: string, reason: string) => Promise<void>;
  readonly onProblem: OnProblem;
  readonly now: () => number;
}

interface Crediting {
  /** Moves the arrived amount into its account. */
  credit(deposit: Deposit, final: boolean): Promise<void>;
  /** Credits an arrived deposit if it has enough confirmations. */
  settle(deposit: Deposit, event: ChainEvent): Promise<void>;
  /** Takes back a credited deposit that its chain has undone. */
  reverse(deposit: Deposit): Promise<void>;
  /** Marks a deposit that can never arrive as failed, or reverses it if it was credited. */
  lost(deposit: Deposit, reason: string): Promise<void>;
  /** Moves a deposit out of suspense into its account. */
  give(deposit: Deposit, account: string): Promise<void>;
  /** Gives a deposit in suspense to an account. False if it is no longer in suspense. */
  attribute(deposit: Deposit, account: string): Promise<boolean>;
}

/** Longer than the submission of a payment and the wait for it. */
export const CLAIM_MARGIN_MS = 15_000;
/** Interval between two looks at a deposit that is credited and not final. */
const UNFINAL_POLL_MS = 10_000;
const RECOVERIES = 5;

const ledgerNameOf = (account: string): AccountName =>
  account === OPERATOR ? OPERATOR_TREASURY : account === TRANSIT_ACCOUNT ? TRANSIT : escrowOf(account);
const accountOf = ({ account }: Deposit) => (account === null ? SUSPENSE : ledgerNameOf(account));

export function createCrediting(options: CreditingOptions): Crediting {
  const { rows, ledger, policyOf, recall, onProblem, now } = options;

  const credit = async (deposit: Deposit, final: boolean): Promise<void> => {
    const { id, network, credited } = deposit;
    // A second caller finds the transfer already made, because its id comes from the row.
    await ledger.transfer({
      id: `deposit:${id}`,
      from: treasuryOf(network),
      to: accountOf(deposit),
      amount: credited!,
      memo: `deposit over ${network} from ${deposit.payer}, transaction ${deposit.transaction}`,
    });
    if (final) await rows.markFinal(id);
    else await rows.markCredited(id, now() + UNFINAL_POLL_MS);
  };

  const settle = async (deposit: Deposit, event: ChainEvent): Promise<void> => {
    const { id, network, state } = deposit;
    const policy = policyOf(network);
    if (!event.final && event.confirmations < policy.confirmations) return;
    if (state === 'received' || state === 'failed') {
      const noted = await rows.noteEvent(
        id,
        event,
        { chain: policy.unfinalMax, strangers: options.strangersMax },
        now() + CLAIM_MARGIN_MS,
      );
      if (noted) return credit(noted, event.final);
      const current = await rows.find(id);
      // If the state has changed, another caller has stored the event. If not, the deposit exceeds a limit for credits
      // that can be undone.
      if (current && current.state !== 'received' && current.state !== 'failed') await settle(current, event);
      return;
    }
    if (state !== 'crediting' && state !== 'credited' && state !== 'final') return;
    await rows.notePlace(id, event);
    if (deposit.credited !== event.amount)
      onProblem('error', 'a deposit arrived with another amount than was credited', {
        deposit: id,
        credited: deposit.credited,
        arrived: event.amount,
      });
    if (state === 'crediting' || (state === 'credited' && event.final)) await credit(deposit, event.final);
  };

  const reverse = async (deposit: Deposit): Promise<void> => {
    const { id, network, account, credited } = deposit;
    const memo = `the chain took back deposit ${id}`;
    await ledger.transfer({ id: `deposit-lost:${id}`, from: LOSSES, to: treasuryOf(network), amount: credited!, memo });
    if (account !== null) await recall(account, 'a deposit of this account was undone by its chain');
    // The available balance is taken back. The rest is the operator's loss.
    const from = accountOf(deposit);
    let available = (await ledger.balance(from))?.available ?? 0n;
    for (let attempt = 0; attempt < RECOVERIES && available > 0n; attempt += 1) {
      const amount = available < credited! ? available : credited!;
      const result = await ledger.transfer({ id: `deposit-recovered:${id}`, from, to: LOSSES, amount, memo });
      if (result.ok || result.reason === 'duplicate') break;
      available = result.available;
    }
    await rows.endReversal(id);
    onProblem('error', 'a credited deposit was undone by its chain', { deposit: id, account, credited });
  };

  const lost = async (deposit: Deposit, reason: string): Promise<void> => {
    const { id, state } = deposit;
    if (state === 'received') {
      // No other caller has credited it, because then it would have another state.
      await rows.markFailed(id, reason);
      return;
    }
    // A process may have credited it and died before it stored that, so the credit is completed first.
    if (state === 'crediting') await credit(deposit, false);
    if ((state === 'crediting' || state === 'credited') && (await rows.beginReversal(id, reason)))
      await reverse(deposit);
  };

  const give = async ({ id, credited }: Deposit, account: string): Promise<void> => {
    const memo = `deposit ${id} attributed to ${account}`;
    await makeCertain(ledger, {
      id: `deposit-given:${id}`,
      from: SUSPENSE,
      to: ledgerNameOf(account),
      amount: credited!,
      memo,
    });
    await rows.schedule(id, null);
  };

  const attribute = async (deposit: Deposit, account: string): Promise<boolean> => {
    if (!(await rows.attribute(deposit.id, account))) return false;
    await give(deposit, account);
    return true;
  };

  return { credit, settle, reverse, lost, give, attribute };
}
