import {
  formatUsd,
  mayBeNegative,
  treasuryOf,
  type AccountName,
  type Ledger,
  type MicroUsd,
  type TransferRecord,
} from '#billing';
import type { Act, ActRows } from './act-rows.ts';
import { ChainUnavailable, FinalityBroken } from './chain.ts';
import { LOSSES } from './deposit-crediting.ts';
import type { OnProblem } from './problem.ts';
import { isRefusal, refuseTransfer } from './refused-transfer.ts';
import type { Reserves } from './treasury.ts';
import { CANCELED } from './withdrawals.ts';

export interface ActBookingOptions {
  readonly rows: ActRows;
  readonly ledger: Pick<Ledger, 'transfer' | 'balance'>;
  /** A transfer of the ledger by its id; null if it was not made. */
  readonly transferOf: (id: string) => Promise<TransferRecord | null>;
  /** Compares the books of a network with its treasury. Rejects with ChainUnavailable. */
  readonly compare: (network: string) => Promise<Reserves | null>;
  readonly onProblem: OnProblem;
}

/** The part of an act that changes the books. */
interface ActBooking {
  /**
   * Moves money in the books. False if the source has too little: the act then waits and is not refused, because
   * another gateway may book it at this moment. False also if the act was canceled: the act is then refused.
   */
  book(act: Act, from: AccountName, to: AccountName, amount: MicroUsd): Promise<boolean>;
  /**
   * Agrees to book a difference, if a comparison shows exactly this difference. Otherwise refuses the act. Rejects with
   * ChainUnavailable.
   */
  agree(act: Act): Promise<void>;
  bookDifference(act: Act): Promise<void>;
  /**
   * Agrees to pay for a loss, or refuses the act. The table accepts only one open act about the same losses, so the
   * check stays valid.
   */
  agreeToMakeGood(act: Act): Promise<void>;
  makeGood(act: Act): Promise<void>;
  /**
   * Cancels the booking of an act. The ledger makes either the booking or this refusal, whichever comes first. `book`
   * finds out which.
   */
  refuse(act: Act): Promise<void>;
}

export function createActBooking(options: ActBookingOptions): ActBooking {
  const { rows, ledger, onProblem } = options;

  const book = async (act: Act, from: AccountName, to: AccountName, amount: MicroUsd): Promise<boolean> => {
    const id = idOfTransfer(act);
    const moved = await ledger.transfer({ id, from, to, amount, memo: memoOf(act) });
    if (moved.ok) return true;
    if (moved.reason === 'duplicate') {
      const made = await options.transferOf(id);
      if (made === null) throw new Error(`transfer ${id} is gone`);
      if (isRefusal(made)) await rows.move(act.id, act.state, 'refused', { reason: CANCELED });
      return !isRefusal(made);
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
  const agreeIfBorne = async (act: Act): Promise<void> => {
    const bearer = act.bearer!;
    const available = (await ledger.balance(bearer))?.available ?? 0n;
    const bears = act.kind === 'write_up' || mayBeNegative(bearer) || available >= act.amount;
    if (bears) await rows.move(act.id, 'requested', 'agreed');
    else await rows.move(act.id, 'requested', 'refused', { reason: tooLittle(bearer, available) });
  };

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

  const agreeToMakeGood = async (act: Act): Promise<void> => {
    const lost = -((await ledger.balance(LOSSES))?.available ?? 0n);
    if (lost >= act.amount) await agreeIfBorne(act);
    else await rows.move(act.id, 'requested', 'refused', { reason: `The losses are ${formatUsd(lost)} USDC` });
  };

  const makeGood = async (act: Act): Promise<void> => {
    if (await book(act, act.bearer!, LOSSES, act.amount)) await rows.move(act.id, 'agreed', 'done');
  };

  const refuse = (act: Act) => refuseTransfer(ledger, idOfTransfer(act), memoOf(act));

  return { book, agree, bookDifference, agreeToMakeGood, makeGood, refuse };
}

const tooLittle = (account: AccountName, available: MicroUsd): string => `${account} has ${formatUsd(available)} USDC`;

const idOfTransfer = ({ kind, id }: Act): string => `treasury-${kind}:${id}`;
const memoOf = ({ kind, network, reference }: Act): string => `${kind} ${network}: ${reference}`;

/**
 * Compares the books with the treasury for an act. null if the balance is not known yet, or if the act is refused now.
 */
async function comparedFor(
  { id, network }: Act,
  { compare, rows }: Pick<ActBookingOptions, 'compare' | 'rows'>,
): Promise<Reserves | null> {
  try {
    return await compare(network);
  } catch (error) {
    if (!(error instanceof FinalityBroken)) throw error;
    // Broken finality lasts until an operator has looked. A waiting act would block other acts about this network until
    // then.
    await rows.move(id, 'requested', 'refused', { reason: error.message });
    return null;
  }
}
