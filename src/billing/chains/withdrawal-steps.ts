import {
  escrowOf,
  formatUsd,
  MICRO_USD_MAX,
  type AccountName,
  type MicroUsd,
  type TransferRecord,
  FEES,
  OPERATOR,
  treasuryOf,
  type Ledger,
} from '#billing';
import { isRefusal, makeCertain, outgoingOf, refuseTransfer, TRANSIT } from './books.ts';
import {
  type Chain,
  accountFeeOf,
  PayoutProblem,
  PayoutUnreadable,
  type ChainPayout,
  type SignedPayout,
} from './chain.ts';
import type { Withdrawal, WithdrawalRows } from './withdrawal-rows.ts';

interface WithdrawalPolicy {
  readonly minimum: MicroUsd;
  readonly dailyMax: MicroUsd;
  /** The fee of each withdrawal, except the operator's own. Default: none. */
  readonly fee?: MicroUsd;
  /** Additional fee of a withdrawal whose payout opens a token account. Default: none. */
  readonly tokenAccountFee?: MicroUsd;
}

export interface WithdrawalStepsOptions {
  readonly rows: WithdrawalRows;
  readonly ledger: Pick<Ledger, 'transfer' | 'balance'>;
  /** The reason why payouts over a chain are stopped; null if they are not. */
  readonly haltOf: (network: string) => Promise<string | null>;
  readonly unfinal: (account: string, at: number) => Promise<boolean>;
  readonly now: () => number;
  readonly chainOf: (network: string) => Chain | null;
  readonly policyOf: (network: string) => WithdrawalPolicy;
  readonly transferOf: (id: string) => Promise<TransferRecord | null>;
  /**
   * The sum that came into an account over chains. No more than this sum can go out over chains. The rest of a balance
   * is credit from the operator, to be spent here.
   */
  readonly paidIn: (account: string) => Promise<MicroUsd>;
}

interface WithdrawalSteps {
  /** Micro-USD that a treasury has by the books, without signed payouts. */
  uncommitted(network: string): Promise<MicroUsd>;
  /**
   * Looks for a signed withdrawal on its chain. `resend`: if it is not there, sends it again or signs it again. Rejects
   * with ChainUnavailable, and with PayoutUnreadable.
   */
  poll(withdrawal: Withdrawal, chain: Chain, resend: boolean): Promise<void>;
  /** Reads the row again. Rejects with Error if no withdrawal has this id. */
  reread(id: string): Promise<Withdrawal>;
  /** Makes steps until `until` holds or a step changes nothing. Rejects with ChainUnavailable. */
  advance(withdrawal: Withdrawal, until: (row: Withdrawal) => boolean): Promise<Withdrawal>;
  /** The amount that can still be withdrawn from a source. */
  paidInLeft(request: Pick<Withdrawal, 'source' | 'account'>): Promise<MicroUsd>;
  /** Micro-USD taken from a source within a day and not given back. */
  takenToday(source: AccountName): Promise<MicroUsd>;
}

const DAY_MS = 86_400_000;
/** How long workers leave a withdrawal to the request that created it. */
export const CLAIM_MS = 15_000;
const STEPS_MAX = 8;
export const NOT_PAID_IN = 'Only money that was deposited over a chain can be withdrawn';

/** The tolerated difference between the clocks of gateways. */
const CLOCKS_MS = 60_000;

const payoutOf = ({ id, address, amount, fee }: Withdrawal): ChainPayout => ({ id, to: address, amount: amount - fee });

/** The fee without the fee of a token account, as at the request. */
const plainFeeOf = ({ fee, signed }: Withdrawal): MicroUsd => fee - accountFeeOf(signed);

/** The row as it is after the signed payout is stored. */
const keeping = (withdrawal: Withdrawal, signed: SignedPayout): Withdrawal => ({
  ...withdrawal,
  state: 'signed',
  fee: plainFeeOf(withdrawal) + accountFeeOf(signed),
  signed,
  transaction: signed.transaction,
});

/** The reason in a withdrawal of an account that the operator has frozen or closed. */
const STOPPED = 'The account is frozen or closed';

export const balanceIs = (available: MicroUsd): string => `The balance is ${formatUsd(available)} USDC`;

export function createWithdrawalSteps(options: WithdrawalStepsOptions): WithdrawalSteps {
  const { rows, ledger, chainOf, policyOf, now } = options;

  const send = async (withdrawal: Withdrawal, signed: SignedPayout, chain: Chain): Promise<void> => {
    if (withdrawal.handedOut || (await options.haltOf(withdrawal.network)) !== null) return;
    const { transaction } = await chain.send(payoutOf(withdrawal), signed);
    if (transaction !== null && transaction !== withdrawal.transaction) await rows.noteSent(withdrawal.id, transaction);
  };

  /**
   * Payouts are limited to this amount: money that came in on another chain is not in this treasury, and signed payouts
   * can no longer be canceled.
   */
  const uncommitted = async (network: string): Promise<MicroUsd> =>
    -((await ledger.balance(treasuryOf(network)))?.available ?? 0n) - (await rows.signedAmount(network));

  /**
   * The fee of a token account. The operator's own withdrawals have none. A repeated payout keeps the fee of the lost
   * one, because the owner was told that fee.
   */
  const feeOfAccountOf = ({ account, network, signed }: Withdrawal): MicroUsd =>
    account === OPERATOR ? 0n : (signed?.tokenAccountFee ?? policyOf(network).tokenAccountFee ?? 0n);

  /**
   * Signs the payout. null: the receiver cannot be paid, so the money is given back. That is safe, because an earlier
   * signed payout is lost or does not exist.
   */
  const signOrGiveBack = async (withdrawal: Withdrawal, chain: Chain): Promise<SignedPayout | null> => {
    const payout = {
      ...payoutOf({ ...withdrawal, fee: plainFeeOf(withdrawal) }),
      tokenAccountFee: feeOfAccountOf(withdrawal),
    };
    try {
      return await chain.sign(payout, withdrawal.signed);
    } catch (error) {
      if (!(error instanceof PayoutProblem)) throw error;
      await rows.move(withdrawal.id, withdrawal.state, 'returning', now(), error.message);
      return null;
    }
  };

  /** Signs a payout and stores the signed text before it is sent. */
  const sign = async (withdrawal: Withdrawal, chain: Chain): Promise<void> => {
    const { id, network, account, source, amount, fee } = withdrawal;
    if (await rows.isStopped(account)) {
      await rows.move(id, withdrawal.state, 'returning', now(), STOPPED);
      return;
    }
    if ((await options.haltOf(network)) !== null) return;
    // A transfer between two addresses of the treasury does not reduce the treasury.
    const stays = source === TRANSIT && withdrawal.address === chain.treasury;
    if (!stays && (await uncommitted(network)) < amount - fee) return;
    // Deposits can leave only after their chain can no longer undo them. Deposits that came after this withdrawal do
    // not count.
    if (source === escrowOf(account) && (await options.unfinal(account, withdrawal.updatedAt + CLOCKS_MS))) return;
    const signed = await signOrGiveBack(withdrawal, chain);
    if (signed !== null && (await rows.sign(id, signed))) await send(keeping(withdrawal, signed), signed, chain);
  };

  const poll = async (withdrawal: Withdrawal, chain: Chain, resend: boolean): Promise<void> => {
    const { id, network, amount, fee, transaction, address, signed } = withdrawal;
    if (signed === null) throw new PayoutUnreadable(`withdrawal ${id} is signed, and its signed payout is not stored`);
    const observation = await chain.findPayout(payoutOf(withdrawal), signed, transaction);
    if (observation.state === 'paid') {
      await rows.noteHeight(id, observation.transaction, observation.height);
      if (!observation.final) return;
      const memo = `withdrawal to ${address}, transaction ${observation.transaction}`;
      await makeCertain(ledger, {
        id: `withdrawal-paid:${id}`,
        from: outgoingOf(network),
        to: treasuryOf(network),
        amount: amount - fee,
        memo,
      });
      if (fee > 0n)
        await makeCertain(ledger, {
          id: `withdrawal-fee:${id}`,
          from: outgoingOf(network),
          to: FEES,
          amount: fee,
          memo: `fee of withdrawal ${id}`,
        });
      await rows.markPaid(id, observation.transaction, observation.height);
      return;
    }
    if (!resend) return;
    if (observation.state === 'open') return send(withdrawal, signed, chain);
    if (withdrawal.handedOut) {
      await rows.move(id, 'signed', 'returning', now(), `It was not submitted in time: ${observation.reason}`);
      return;
    }
    // The chain has decided that the earlier payout can never pay. Of concurrent new signatures the first stored one
    // counts, and the others are dropped unsent.
    const again = await signOrGiveBack(withdrawal, chain);
    if (again === null) return;
    // If the account no longer has to be opened, the new payout is larger than the lost one. Only the lost amount was
    // reserved.
    const more = accountFeeOf(signed) - accountFeeOf(again);
    if (more > 0n && (await uncommitted(network)) < more) return;
    if (await rows.resign(id, signed, again)) await send(keeping(withdrawal, again), again, chain);
  };

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
    const result = await ledger.transfer({ id: transfer, from: source, to: outgoingOf(network), amount, memo });
    if (!result.ok) {
      if (result.reason === 'insufficient') await refuseTransfer(ledger, transfer, memo);
      const record = await options.transferOf(transfer);
      if (record === null) throw new Error(`transfer ${transfer} is gone`);
      if (isRefusal(record)) {
        const { available } = result;
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
        return chain ? poll(withdrawal, chain, true) : undefined;
      case 'returning':
        return giveBack(withdrawal);
      case 'paid':
      case 'returned':
      case 'refused':
        return undefined;
    }
  };

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

  return { reread, advance, poll, uncommitted, paidInLeft, takenToday };
}
