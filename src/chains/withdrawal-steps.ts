import { escrowOf, formatUsd, MICRO_USD_MAX, type AccountName, type MicroUsd, type TransferRecord } from '#billing';
import { makeCertain } from './certain-transfer.ts';
import type { Chain } from './chain.ts';
import { TRANSIT } from './deposit-crediting.ts';
import { isRefusal, refuseTransfer } from './refused-transfer.ts';
import {
  createPayoutSteps,
  outgoingOf,
  type PayoutPolicy,
  type PayoutSteps,
  type PayoutStepsOptions,
} from './withdrawal-payout.ts';
import type { Withdrawal } from './withdrawal-rows.ts';

interface WithdrawalPolicy extends PayoutPolicy {
  readonly minimum: MicroUsd;
  /** The limit for one source within a day. */
  readonly dailyMax: MicroUsd;
  /** The fee of each withdrawal, except the operator's own. Default: none. */
  readonly fee?: MicroUsd;
}

export interface WithdrawalStepsOptions extends PayoutStepsOptions {
  /** null if the chain is not open yet. */
  readonly chainOf: (network: string) => Chain | null;
  readonly policyOf: (network: string) => WithdrawalPolicy;
  /** A transfer of the ledger by its id; null if it was not made. */
  readonly transferOf: (id: string) => Promise<TransferRecord | null>;
  /**
   * The sum that came into an account over chains. No more than this sum can go out over chains. The rest of a balance
   * is credit from the operator, to be spent here.
   */
  readonly paidIn: (account: string) => Promise<MicroUsd>;
}

/** The steps of a withdrawal, from its row in the table to money on its chain. */
interface WithdrawalSteps extends Pick<PayoutSteps, 'look' | 'uncommitted'> {
  /** Reads the row again. Rejects with Error if no withdrawal has this id. */
  reread(id: string): Promise<Withdrawal>;
  /** Makes steps until `until` holds or a step changes nothing. Rejects with ChainUnavailable. */
  advance(withdrawal: Withdrawal, until: (row: Withdrawal) => boolean): Promise<Withdrawal>;
  /** The amount that can still be withdrawn from a source. */
  paidInLeft(of: Pick<Withdrawal, 'source' | 'account'>): Promise<MicroUsd>;
  /** Micro-USD taken from a source within a day and not given back. */
  takenToday(source: AccountName): Promise<MicroUsd>;
}

const DAY_MS = 86_400_000;
/** How long workers leave a withdrawal to the request that created it. */
export const CLAIM_MS = 15_000;
const STEPS_MAX = 8;
export const NOT_PAID_IN = 'Only money that was deposited over a chain can be withdrawn';

export const balanceIs = (available: MicroUsd): string => `The balance is ${formatUsd(available)} USDC`;

export function createWithdrawalSteps(options: WithdrawalStepsOptions): WithdrawalSteps {
  const { rows, ledger, chainOf, policyOf, now } = options;
  const { sign, look, uncommitted } = createPayoutSteps(options);

  const reread = async (id: string): Promise<Withdrawal> => {
    const row = await rows.find(id);
    if (row === null) throw new Error(`withdrawal ${id} is gone`);
    return row;
  };

  const takenToday = (source: AccountName) => rows.takenSince(source, now() - DAY_MS);

  /**
   * Takes the amount from its source. Another gateway may work on the same withdrawal at the same time. So the ledger
   * decides by one transfer id: the first transfer with it, either the debit or the refusal, excludes the other for
   * ever.
   */
  const debit = async ({ id, source, network, amount, address }: Withdrawal): Promise<void> => {
    const transfer = `withdrawal:${id}`;
    const memo = `withdrawal over ${network} to ${address}`;
    const taken = await ledger.transfer({ id: transfer, from: source, to: outgoingOf(network), amount, memo });
    if (!taken.ok) {
      if (taken.reason === 'insufficient') await refuseTransfer(ledger, transfer, memo);
      const made = await options.transferOf(transfer);
      if (made === null) throw new Error(`transfer ${transfer} is gone`);
      if (isRefusal(made)) {
        const { available } = taken;
        const reason = available < amount ? balanceIs(available) : 'The balance was too low';
        await rows.move(id, 'requested', 'refused', null, reason);
        return;
      }
    }
    if (await rows.move(id, 'requested', 'debited', now() + CLAIM_MS)) return;
    // A gateway of an older version refused it and made no refusal transfer in the ledger.
    await rows.move(id, 'refused', 'returning', now());
  };

  const paidInLeft = async ({ source, account }: Pick<Withdrawal, 'source' | 'account'>): Promise<MicroUsd> =>
    source === escrowOf(account) ? (await options.paidIn(account)) - (await rows.takenSince(source, 0)) : MICRO_USD_MAX;

  /**
   * Queues a debited withdrawal, or gives it back if it exceeds a limit. Concurrent withdrawals see each other's debits
   * here, so they cannot exceed a limit together, but both may be given back.
   */
  const queue = async (withdrawal: Withdrawal): Promise<void> => {
    const { id, source, network } = withdrawal;
    const { dailyMax } = policyOf(network);
    if ((await paidInLeft(withdrawal)) < 0n) await rows.move(id, 'debited', 'returning', now(), NOT_PAID_IN);
    else if (source !== TRANSIT && (await takenToday(source)) > dailyMax)
      await rows.move(id, 'debited', 'returning', now(), `More than ${formatUsd(dailyMax)} USDC a day`);
    else await rows.move(id, 'debited', 'queued', now());
  };

  const giveBack = async ({ id, source, network, amount, reason }: Withdrawal): Promise<void> => {
    await makeCertain(ledger, {
      id: `withdrawal-back:${id}`,
      from: outgoingOf(network),
      to: source,
      amount,
      memo: reason ?? 'given back',
    });
    await rows.move(id, 'returning', 'returned', null);
  };

  const step = async (withdrawal: Withdrawal): Promise<void> => {
    const chain = chainOf(withdrawal.network);
    switch (withdrawal.state) {
      case 'requested':
        return debit(withdrawal);
      case 'debited':
        return queue(withdrawal);
      case 'queued':
        return chain ? sign(withdrawal, chain) : undefined;
      case 'signed':
        return chain ? look(withdrawal, chain, true) : undefined;
      case 'returning':
        return giveBack(withdrawal);
      case 'paid':
      case 'returned':
      case 'refused':
        return undefined;
    }
  };

  /** Makes steps until one changes nothing or `until` holds. */
  const advance = async (withdrawal: Withdrawal, until: (row: Withdrawal) => boolean): Promise<Withdrawal> => {
    let row = withdrawal;
    for (let steps = 0; steps < STEPS_MAX && !until(row); steps += 1) {
      await step(row);
      const next = await reread(row.id);
      if (next.state === row.state) return next;
      row = next;
    }
    return row;
  };

  return { reread, advance, look, uncommitted, paidInLeft, takenToday };
}
