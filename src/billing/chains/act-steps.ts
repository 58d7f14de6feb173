import {
  formatUsd,
  mayBeNegative,
  treasuryOf,
  type AccountName,
  type Ledger,
  type MicroUsd,
  type TransferRecord,
} from '#billing';
import type { TreasuryAct, ActRows } from './act-rows.ts';
import type { DepositRows } from './deposit-rows.ts';
import type { Deposits } from './deposits.ts';
import type { Withdrawals } from './withdrawals.ts';
import { ChainUnavailable, FinalityBroken, type OnProblem } from './chain.ts';
import { CANCELED, type WithdrawalRows } from './withdrawal-rows.ts';
import { isRefusal, LOSSES, refuseTransfer, TRANSIT, TRANSIT_ACCOUNT, type Reserves } from './books.ts';

export interface ActStepsOptions {
  readonly rows: ActRows;
  readonly ledger: Pick<Ledger, 'transfer' | 'balance'>;
  /** A transfer of the ledger by its id; null if it was not made. */
  readonly transferOf: (id: string) => Promise<TransferRecord | null>;
  /** Compares the books of a network with its treasury. Rejects with ChainUnavailable. */
  readonly compare: (network: string) => Promise<Reserves | null>;
  readonly onProblem: OnProblem;
  readonly withdrawals: Pick<Withdrawals, 'requestOwn' | 'uncommitted' | 'cancel' | 'carryOn'>;
  readonly withdrawalRows: Pick<WithdrawalRows, 'find'>;
  readonly deposits: Pick<Deposits, 'attributeOne'>;
  readonly depositRows: Pick<DepositRows, 'find'>;
}

interface ActSteps {
  /** Makes all steps that are possible now. Rejects with ChainUnavailable. */
  advance(id: string): Promise<TreasuryAct>;
  /** Cancels an act that changes the books, unless it is booked. `advance` finds out which. */
  refuse(act: TreasuryAct): Promise<void>;
}

const STEPS_MAX = 4;

export function createActSteps(options: ActStepsOptions): ActSteps {
  const { rows, ledger, withdrawals, onProblem } = options;

  /**
   * Moves money in the books. False if the source has too little: the act then waits and is not refused, because
   * another gateway may book it at this moment. False also if the act was canceled: the act is then refused.
   */
  const book = async (act: TreasuryAct, from: AccountName, to: AccountName, amount: MicroUsd): Promise<boolean> => {
    const id = idOfTransfer(act);
    const moved = await ledger.transfer({ id, from, to, amount, memo: memoOf(act) });
    if (moved.ok) return true;
    if (moved.reason === 'duplicate') {
      const transfer = await options.transferOf(id);
      if (transfer === null) throw new Error(`transfer ${id} is gone`);
      if (isRefusal(transfer)) await rows.move(act.id, act.state, 'refused', { reason: CANCELED });
      return !isRefusal(transfer);
    }
    const reason = `It waits: ${tooLittle(from, moved.available)}`;
    if (act.reason !== reason) await rows.move(act.id, act.state, act.state, { reason });
    if (act.reason === null)
      onProblem('warn', 'an act about a treasury waits for the money of whoever bears it', {
        network: act.network,
        act: act.id,
        amount,
        bearer: from,
        available: moved.available,
        reference: act.reference,
      });
    return false;
  };

  /**
   * Agrees to an act if its bearer has enough money, else refuses it. Of two concurrent decisions the table keeps one.
   */
  const agreeIfBorne = async (act: TreasuryAct): Promise<void> => {
    const bearer = act.bearer!;
    const available = (await ledger.balance(bearer))?.available ?? 0n;
    const bears = act.kind === 'write_up' || mayBeNegative(bearer) || available >= act.amount;
    if (bears) await rows.move(act.id, 'requested', 'agreed');
    else await rows.move(act.id, 'requested', 'refused', { reason: tooLittle(bearer, available) });
  };

  /**
   * Agrees to book a difference, if a comparison shows exactly this difference. Otherwise refuses the act. Rejects with
   * ChainUnavailable.
   */
  const agree = async (act: TreasuryAct): Promise<void> => {
    let reserves: Reserves | null;
    try {
      reserves = await options.compare(act.network);
    } catch (error) {
      if (!(error instanceof FinalityBroken)) throw error;
      // Broken finality lasts until an operator has looked. Until then a waiting act would block other acts about this
      // network.
      await rows.move(act.id, 'requested', 'refused', { reason: error.message });
      return;
    }
    // The balance is not known yet.
    if (reserves === null) return;
    const { held, booked } = reserves;
    const difference = act.kind === 'write_off' ? booked - held : held - booked;
    if (difference === act.amount) return agreeIfBorne(act);
    const reason = `The treasury holds ${formatUsd(held)} USDC, the books say ${formatUsd(booked)}: this is not the difference`;
    await rows.move(act.id, 'requested', 'refused', { reason });
  };

  const bookDifference = async (act: TreasuryAct): Promise<void> => {
    const [from, to] =
      act.kind === 'write_off' ? [act.bearer!, treasuryOf(act.network)] : [treasuryOf(act.network), act.bearer!];
    if (!(await book(act, from, to, act.amount))) return;
    if (!(await rows.move(act.id, 'agreed', 'done'))) return;
    onProblem('info', 'a difference between a treasury and the books was booked', {
      network: act.network,
      amount: act.amount,
      bearer: act.bearer,
      reference: act.reference,
    });
    // The comparison resumes withdrawals if the books and the treasury agree now.
    await options.compare(act.network).catch((error: unknown) => {
      if (!(error instanceof ChainUnavailable)) throw error;
    });
  };

  /**
   * Agrees to pay for a loss, or refuses the act. The table accepts only one open act about the same losses, so the
   * check stays valid.
   */
  const agreeToMakeGood = async (act: TreasuryAct): Promise<void> => {
    const lost = -((await ledger.balance(LOSSES))?.available ?? 0n);
    if (lost >= act.amount) await agreeIfBorne(act);
    else await rows.move(act.id, 'requested', 'refused', { reason: `The losses are ${formatUsd(lost)} USDC` });
  };

  const makeGood = async (act: TreasuryAct): Promise<void> => {
    if (await book(act, act.bearer!, LOSSES, act.amount)) await rows.move(act.id, 'agreed', 'done');
  };

  const reread = async (id: string): Promise<TreasuryAct> => {
    const act = await rows.find(id);
    if (act === null) throw new Error(`act ${id} is gone`);
    return act;
  };

  /** A move leaves its treasury as a withdrawal with the same id. */
  const send = async ({ id, network, address, amount }: TreasuryAct): Promise<void> => {
    await withdrawals.requestOwn({ id, network, address: address!, amount });
    await rows.move(id, 'requested', 'sending');
  };

  const pollSending = async ({ id }: TreasuryAct): Promise<void> => {
    const withdrawal = await options.withdrawalRows.find(id);
    if (withdrawal?.state === 'paid') await rows.move(id, 'sending', 'sent');
    else if (withdrawal?.state === 'returned' || withdrawal?.state === 'refused')
      await rows.move(id, 'sending', 'refused', { reason: withdrawal.reason ?? 'It was given back' });
  };

  /** Finishes a move that has arrived. The missing part of its amount is a loss. */
  const pollArrival = async (act: TreasuryAct): Promise<void> => {
    if (act.deposit === null) return;
    await options.deposits.attributeOne(act.deposit, TRANSIT_ACCOUNT);
    const deposit = await options.depositRows.find(act.deposit);
    if (deposit?.state !== 'final') return;
    if (deposit.account !== TRANSIT_ACCOUNT) {
      // The wallet of the sender claimed the deposit at the same time, so another deposit can be named.
      if (deposit.account !== null) await rows.forgetArrival(act.id, act.deposit);
      return;
    }
    const arrived = deposit.credited!;
    if (arrived < act.amount && !(await book(act, LOSSES, TRANSIT, act.amount - arrived))) return;
    await rows.move(act.id, 'sent', 'done', { arrived });
  };

  const step = async (act: TreasuryAct): Promise<void> => {
    switch (act.state) {
      case 'requested':
        if (act.kind === 'move') return send(act);
        if (act.kind === 'make_good') return agreeToMakeGood(act);
        return agree(act);
      case 'agreed':
        return act.kind === 'make_good' ? makeGood(act) : bookDifference(act);
      case 'sending':
        return pollSending(act);
      case 'sent':
        return pollArrival(act);
      case 'done':
      case 'refused':
        return undefined;
    }
  };

  const advance = async (id: string): Promise<TreasuryAct> => {
    let act = await reread(id);
    for (let steps = 0; steps < STEPS_MAX; steps += 1) {
      await step(act);
      const next = await reread(id);
      if (next.state === act.state) return next;
      act = next;
    }
    return act;
  };

  return { advance, refuse: (act) => refuseTransfer(ledger, idOfTransfer(act), memoOf(act)) };
}

const tooLittle = (account: AccountName, available: MicroUsd): string => `${account} has ${formatUsd(available)} USDC`;

const idOfTransfer = ({ kind, id }: TreasuryAct): string => `treasury-${kind}:${id}`;
const memoOf = ({ kind, network, reference }: TreasuryAct): string => `${kind} ${network}: ${reference}`;
