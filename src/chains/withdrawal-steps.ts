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
  /** Of one source within a day. */
  readonly dailyMax: MicroUsd;
  /** Kept of each withdrawal that is not the operator's; none by default. */
  readonly fee?: MicroUsd;
}

export interface WithdrawalStepsOptions extends PayoutStepsOptions {
  /** null where it is not open yet. */
  readonly chainOf: (network: string) => Chain | null;
  readonly policyOf: (network: string) => WithdrawalPolicy;
  /** A transfer by its id, as the ledger has it now; null where it was not made. */
  readonly transferOf: (id: string) => Promise<TransferRecord | null>;
  /**
   * The sum that came into an account over chains: more of its balance cannot go out over them. The rest is credit
   * that the operator gave, to be spent here.
   */
  readonly paidIn: (account: string) => Promise<MicroUsd>;
}

/** A withdrawal on its way, from a row in the table to money on its chain. */
interface WithdrawalSteps extends Pick<PayoutSteps, 'look' | 'uncommitted'> {
  /** Rejects with Error where no withdrawal has this id. */
  reread(id: string): Promise<Withdrawal>;
  /** Makes steps until `until` holds, or one changes nothing. Rejects with ChainUnavailable. */
  advance(withdrawal: Withdrawal, until: (row: Withdrawal) => boolean): Promise<Withdrawal>;
  /** The part of a source's balance that can still go out. */
  paidInLeft(of: Pick<Withdrawal, 'source' | 'account'>): Promise<MicroUsd>;
  /** Micro-USD that were taken from a source within a day, and not given back. */
  takenToday(source: AccountName): Promise<MicroUsd>;
}

const DAY_MS = 86_400_000;
/** For so long nobody else carries on with a withdrawal that is being requested. */
export const CLAIM_MS = 15_000;
const STEPS_MAX = 8;
export const NOT_PAID_IN = 'Of a balance only what was paid in over chains can be withdrawn';

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
   * Another gateway may carry on with the same one, and be overtaken between any two steps. So the ledger decides, by
   * one id: whichever transfer is made first, that of the money or that of its refusal, excludes the other for ever.
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
    // Refused without a record, by a gateway of a version that makes none.
    await rows.move(id, 'refused', 'returning', now());
  };

  const paidInLeft = async ({ source, account }: Pick<Withdrawal, 'source' | 'account'>): Promise<MicroUsd> =>
    source === escrowOf(account) ? (await options.paidIn(account)) - (await rows.takenSince(source, 0)) : MICRO_USD_MAX;

  /**
   * Those that were debited at the same time see each other here: none goes past the limit, and both may be given
   * back.
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

  /** Steps until one changes nothing, or what comes next is not this one's to do. */
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
