import { formatUsd, treasuryOf, type AccountName, type Ledger, type MicroUsd } from '#billing';
import type { Act, ActRows } from './act-rows.ts';
import { ChainUnavailable, FinalityBroken } from './chain.ts';
import { LOSSES, TRANSIT, TRANSIT_ACCOUNT } from './deposit-crediting.ts';
import type { DepositRows } from './deposit-rows.ts';
import type { Deposits } from './deposits.ts';
import type { OnProblem } from './problem.ts';
import type { Reserves } from './treasury.ts';
import type { WithdrawalRows } from './withdrawal-rows.ts';
import type { Withdrawals } from './withdrawals.ts';

export interface ActStepsOptions {
  readonly rows: ActRows;
  readonly ledger: Pick<Ledger, 'transfer' | 'balance'>;
  readonly withdrawals: Pick<Withdrawals, 'requestOwn' | 'uncommitted'>;
  readonly withdrawalRows: Pick<WithdrawalRows, 'find'>;
  readonly deposits: Pick<Deposits, 'attributeOne'>;
  readonly depositRows: Pick<DepositRows, 'find'>;
  /** Compares the books of a network with its treasury. Rejects with ChainUnavailable. */
  readonly compare: (network: string) => Promise<Reserves | null>;
  readonly onProblem: OnProblem;
}

/** The steps of an act, from a row in the table to its end. */
interface ActSteps {
  /** As many steps as can be made now. Rejects with ChainUnavailable. */
  advance(id: string): Promise<Act>;
}

const STEPS_MAX = 4;

export function createActSteps(options: ActStepsOptions): ActSteps {
  const { rows, ledger, withdrawals, onProblem } = options;

  const reread = async (id: string): Promise<Act> => {
    const act = await rows.find(id);
    if (act === null) throw new Error(`act ${id} is gone`);
    return act;
  };

  /**
   * Moves money in the books. False where its source has too little: then the act waits, and is never refused, as
   * another gateway may book it at this moment.
   */
  const book = async (act: Act, from: AccountName, to: AccountName, amount: MicroUsd): Promise<boolean> => {
    const memo = `${act.kind} ${act.network}: ${act.reference}`;
    const moved = await ledger.transfer({ id: `treasury-${act.kind}:${act.id}`, from, to, amount, memo });
    if (moved.ok || moved.reason === 'duplicate') return true;
    const reason = `It waits: ${tooLittle(from, moved.available)}`;
    if (act.reason !== reason) await rows.move(act.id, act.state, act.state, { reason });
    return false;
  };

  /** Agrees to what nobody has booked yet, where whoever bears it can: of two at once the table keeps one answer. */
  const agreeIfBorne = async (act: Act): Promise<void> => {
    const bearer = act.bearer!;
    const available = (await ledger.balance(bearer))?.available ?? 0n;
    const bears = act.kind === 'write_up' || bearer.startsWith('treasury:') || available >= act.amount;
    if (bears) await rows.move(act.id, 'requested', 'agreed');
    else await rows.move(act.id, 'requested', 'refused', { reason: tooLittle(bearer, available) });
  };

  /** A difference is booked only where a comparison shows just this one. */
  const agree = async (act: Act): Promise<void> => {
    const reserves = await comparedFor(act, options);
    if (reserves === null) return;
    const { held, booked } = reserves;
    const difference = act.kind === 'write_off' ? booked - held : held - booked;
    if (difference === act.amount) return agreeIfBorne(act);
    const reason = `The treasury holds ${formatUsd(held)} USDC, the books say ${formatUsd(booked)}: this is not the difference`;
    await rows.move(act.id, 'requested', 'refused', { reason });
  };

  const bookDifference = async (act: Act): Promise<void> => {
    const [from, to] =
      act.kind === 'write_off' ? [act.bearer!, treasuryOf(act.network)] : [treasuryOf(act.network), act.bearer!];
    if (!(await book(act, from, to, act.amount))) return;
    if (!(await finish(act.id, rows))) return;
    onProblem('info', 'a difference between a treasury and the books was booked', {
      network: act.network,
      amount: act.amount,
      bearer: act.bearer,
      reference: act.reference,
    });
    // Withdrawals go on where the two agree now.
    await options.compare(act.network).catch((error: unknown) => {
      if (!(error instanceof ChainUnavailable)) throw error;
    });
  };

  /** Of two acts at once about the same losses the table keeps one: what was found to be right stays so. */
  const agreeToMakeGood = async (act: Act): Promise<void> => {
    const lost = -((await ledger.balance(LOSSES))?.available ?? 0n);
    if (lost >= act.amount) await agreeIfBorne(act);
    else await rows.move(act.id, 'requested', 'refused', { reason: `The losses are ${formatUsd(lost)} USDC` });
  };

  const makeGood = async (act: Act): Promise<void> => {
    if (await book(act, act.bearer!, LOSSES, act.amount)) await finish(act.id, rows);
  };

  /** The way out of a move is a withdrawal of the same id. */
  const send = async ({ id, network, address, amount }: Act): Promise<void> => {
    await withdrawals.requestOwn({ id, network, address: address!, amount });
    await rows.move(id, 'requested', 'sending');
  };

  const lookAtSending = async ({ id }: Act): Promise<void> => {
    const withdrawal = await options.withdrawalRows.find(id);
    if (withdrawal?.state === 'paid') await rows.move(id, 'sending', 'sent');
    else if (withdrawal?.state === 'returned' || withdrawal?.state === 'refused')
      await rows.move(id, 'sending', 'refused', { reason: withdrawal.reason ?? 'It was given back' });
  };

  /** Once it has arrived, what is missing of it is a loss. */
  const lookAtArrival = async (act: Act): Promise<void> => {
    if (act.deposit === null) return;
    await options.deposits.attributeOne(act.deposit, TRANSIT_ACCOUNT);
    const deposit = await options.depositRows.find(act.deposit);
    if (deposit?.state !== 'final') return;
    if (deposit.account !== TRANSIT_ACCOUNT) {
      // Its sender's wallet has claimed it when it was named: another one can be.
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
        return lookAtSending(act);
      case 'sent':
        return lookAtArrival(act);
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

  return { advance };
}

const tooLittle = (account: AccountName, available: MicroUsd): string => `${account} has ${formatUsd(available)} USDC`;

/** The end of an act that was booked. A gateway of before may have found too little, and have said that it is refused. */
const finish = async (id: string, rows: ActRows): Promise<boolean> =>
  (await rows.move(id, 'agreed', 'done')) || (await rows.move(id, 'refused', 'done'));

/** Compares for an act. null where nothing is known yet, or the act is refused now. */
async function comparedFor(
  { id, network }: Act,
  { compare, rows }: Pick<ActStepsOptions, 'compare' | 'rows'>,
): Promise<Reserves | null> {
  try {
    return await compare(network);
  } catch (error) {
    if (!(error instanceof FinalityBroken)) throw error;
    // It stays so until somebody has looked: an act that waits would keep others about this network away.
    await rows.move(id, 'requested', 'refused', { reason: error.message });
    return null;
  }
}
