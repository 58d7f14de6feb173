import { createActBooking, type ActBookingOptions } from './act-booking.ts';
import type { Act } from './act-rows.ts';
import { LOSSES, TRANSIT, TRANSIT_ACCOUNT } from './deposit-crediting.ts';
import type { DepositRows } from './deposit-rows.ts';
import type { Deposits } from './deposits.ts';
import type { WithdrawalRows } from './withdrawal-rows.ts';
import type { Withdrawals } from './withdrawals.ts';

export interface ActStepsOptions extends ActBookingOptions {
  readonly withdrawals: Pick<Withdrawals, 'requestOwn' | 'uncommitted' | 'cancel' | 'carryOn'>;
  readonly withdrawalRows: Pick<WithdrawalRows, 'find'>;
  readonly deposits: Pick<Deposits, 'attributeOne'>;
  readonly depositRows: Pick<DepositRows, 'find'>;
}

/** The steps of an act, from its row in the table to its end. */
export interface ActSteps {
  /** Makes all steps that are possible now. Rejects with ChainUnavailable. */
  advance(id: string): Promise<Act>;
  /** Cancels an act that changes the books, unless it is booked. `advance` finds out which. */
  refuse(act: Act): Promise<void>;
}

const STEPS_MAX = 4;

export function createActSteps(options: ActStepsOptions): ActSteps {
  const { rows, withdrawals } = options;
  const { book, agree, bookDifference, agreeToMakeGood, makeGood, refuse } = createActBooking(options);

  const reread = async (id: string): Promise<Act> => {
    const act = await rows.find(id);
    if (act === null) throw new Error(`act ${id} is gone`);
    return act;
  };

  /** A move leaves its treasury as a withdrawal with the same id. */
  const send = async ({ id, network, address, amount }: Act): Promise<void> => {
    await withdrawals.requestOwn({ id, network, address: address!, amount });
    await rows.move(id, 'requested', 'sending');
  };

  const pollSending = async ({ id }: Act): Promise<void> => {
    const withdrawal = await options.withdrawalRows.find(id);
    if (withdrawal?.state === 'paid') await rows.move(id, 'sending', 'sent');
    else if (withdrawal?.state === 'returned' || withdrawal?.state === 'refused')
      await rows.move(id, 'sending', 'refused', { reason: withdrawal.reason ?? 'It was given back' });
  };

  /** Finishes a move that has arrived. The missing part of its amount is a loss. */
  const pollArrival = async (act: Act): Promise<void> => {
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

  const step = async (act: Act): Promise<void> => {
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

  const advance = async (id: string): Promise<Act> => {
    let act = await reread(id);
    for (let steps = 0; steps < STEPS_MAX; steps += 1) {
      await step(act);
      const next = await reread(id);
      if (next.state === act.state) return next;
      act = next;
    }
    return act;
  };

  return { advance, refuse };
}
