import type { MicroUsd } from '#billing';
import {
  type Chain,
  type IncomingPage,
  type SignedPayment,
  type SignedPayout,
  plainAddress,
  ChainUnavailable,
  type OnProblem,
  PayoutUnreadable,
} from './chain.ts';
import type { ChainBook, ChainRows } from './chain-rows.ts';
import { type ActRows, HANDOVER_MOVE } from './act-rows.ts';
import type { DepositRows } from './deposit-rows.ts';
import type { TreasuryActs } from './treasury-acts.ts';
import type { Withdrawal, WithdrawalRows } from './withdrawal-rows.ts';

/**
 * The chain of a treasury that takes over from another. New payments go to the new address. Transfers to the old
 * address are still seen, its signed payouts are still looked after, and both balances count as one.
 */
export function createHandover(current: Chain, previous: Chain): Chain {
  const { network } = current;
  if (plainAddress(network, current.treasury) === plainAddress(network, previous.treasury))
    throw new Error(
      `the treasury of ${network} cannot hand over to itself: the previous key is also the key of ${current.treasury}. Set the new key, or remove the previous key`,
    );
  const isPrevious = (address: unknown) =>
    typeof address === 'string' && plainAddress(network, address) === plainAddress(network, previous.treasury);
  const ofPayment = ({ requirements }: SignedPayment) => (isPrevious(requirements.payTo) ? previous : current);
  const ofPayout = (signed: SignedPayout) => (isPrevious(current.payerOf(signed)) ? previous : current);

  /**
   * Reads the transfers to both treasuries. Their balances must be known at the same height, so the one that is behind
   * is read first, up to the height of the other.
   */
  async function incoming(text: string | null): Promise<IncomingPage> {
    if (text === null) {
      const begun = ofBoth(await current.incoming(null), await previous.incoming(null));
      // Transfers before the beginning are part of the opening balance.
      return { ...(await incoming(begun.cursor)), events: [] };
    }
    const [after, afterPrevious] = cursorsOf(text);
    const [height, heightPrevious] = [heightOf(after), heightOf(afterPrevious)];
    if (height !== heightPrevious) {
      const caughtUp =
        height < heightPrevious
          ? ofBoth(await current.incoming(after, heightPrevious), nothingAt(afterPrevious))
          : ofBoth(nothingAt(after), await previous.incoming(afterPrevious, height));
      // If the one that is behind cannot reach that height, both are read: it may be able to reach the next height of
      // the other.
      if (caughtUp.cursor !== text) return caughtUp;
    }
    const now = await current.incoming(after);
    return ofBoth(now, await previous.incoming(afterPrevious, now.height));
  }

  return {
    network,
    asset: current.asset,
    treasury: current.treasury,
    paymentsNameAccounts: current.paymentsNameAccounts,
    handover: { current, previous },

    async open() {
      await previous.open();
      await current.open();
    },
    requirements: current.requirements,
    ...(current.draft === undefined ? {} : { draft: current.draft }),
    read: (payment) => (isPrevious(payment.accepted.payTo) ? previous : current).read(payment),
    verify: (payment) => ofPayment(payment).verify(payment),
    submit: (payment) => ofPayment(payment).submit(payment),
    find: (payment, transaction) => ofPayment(payment).find(payment, transaction),

    incoming,
    async balanceAt(text) {
      const [now, before] = cursorsOf(text);
      // Balances at two different heights cannot be added.
      if (heightOf(now) !== heightOf(before)) return null;
      const [held, remainder] = await Promise.all([current.balanceAt(now), previous.balanceAt(before)]);
      return held === null || remainder === null ? null : held + remainder;
    },

    addressFault: (address) => current.addressFault(address) ?? previous.addressFault(address),
    // The old treasury signs only payouts to the new one.
    sign: (payout, signed) => (payout.to === current.treasury ? previous : current).sign(payout, signed),
    send: (payout, signed) => ofPayout(signed).send(payout, signed),
    findPayout: (payout, signed, transaction) => ofPayout(signed).findPayout(payout, signed, transaction),
    payerOf: current.payerOf,

    close() {
      current.close();
      previous.close();
    },
  };
}

const nothingAt = (cursor: string): IncomingPage => ({ events: [], cursor, height: heightOf(cursor), more: false });

const ofBoth = (now: IncomingPage, before: IncomingPage): IncomingPage => ({
  events: [...now.events, ...before.events],
  cursor: joined(now.cursor, before.cursor),
  height: now.height < before.height ? now.height : before.height,
  more: now.more || before.more,
});

/** The cursor of a handover: the cursor of the new treasury, then the cursor of the old one. */
const joined = (current: string, previous: string): string => `${current}|${previous}`;

/** Both cursors of a handover. */
function cursorsOf(text: string): readonly [string, string] {
  const [current, previous, more] = text.split('|');
  if (current === undefined || previous === undefined || more !== undefined)
    throw new Error(`Not a cursor of two treasuries: ${JSON.stringify(text.slice(0, 200))}`);
  return [current, previous];
}

/** All cursors begin with their height. */
const heightOf = (cursor: string): bigint => BigInt(/^\d*/.exec(cursor)![0]);

export interface HandoverBooksOptions {
  readonly chain: Chain;
  readonly rows: ChainRows;
  readonly handoverCare: HandoverCare;
  readonly onProblem: OnProblem;
}

/** The books of a chain during a handover of its treasury. */
interface HandoverBooks {
  /**
   * Updates the books to the treasuries of the configuration. Rejects with ChainUnavailable, and with Error if the
   * books belong to other treasuries.
   */
  handOver(book: ChainBook): Promise<ChainBook>;
  /** Moves the remaining money of the old treasury, and stores whether it is empty. */
  careForPrevious(): Promise<void>;
}

export function createHandoverBooks(
  options: HandoverBooksOptions & { readonly bookOf: () => Promise<ChainBook> },
): HandoverBooks {
  const { chain, rows, handoverCare, bookOf, onProblem } = options;
  const { network } = chain;

  const otherBooks = ({ asset, treasury, previous }: ChainBook): Error =>
    new Error(
      previous === null
        ? `the books of ${network} are of treasury ${treasury} and asset ${asset}, and the configuration names ${chain.treasury} and ${chain.asset}: set the key and the asset back, or set the key of ${treasury} as previous_private_key to hand over to ${chain.treasury}`
        : `the books of ${network} are of treasury ${treasury}, which takes over from ${previous}, and of asset ${asset}: set both keys and the asset back`,
    );

  const handOver = async (book: ChainBook): Promise<ChainBook> => {
    if (book.asset !== chain.asset) throw otherBooks(book);
    const previous = chain.handover?.previous.treasury ?? null;
    if (book.treasury === chain.treasury && book.previous === previous) return book;
    if (chain.handover && book.treasury === previous && book.previous === null) {
      const { current } = chain.handover;
      const { cursor } = await current.incoming(null);
      const opening = await current.balanceAt(cursor);
      if (opening === null)
        throw new ChainUnavailable(`the balance of ${chain.treasury} on ${network} cannot be read at the moment`);
      await rows.beginHandover(book, {
        treasury: chain.treasury,
        opening,
        // The height is in the id, because an address may take over a second time with another opening.
        openingId: `opening:${network}/${chain.treasury}/${heightOf(cursor)}`,
        cursor: joined(cursor, book.cursor),
      });
      onProblem('info', 'a treasury hands over to another', { network, from: previous, to: chain.treasury });
    } else if (book.treasury === chain.treasury && book.previous !== null && previous === null) {
      const leaveIt =
        'leave its key in previous_private_key or previous_keypair_file until GET /admin/v1/payments says previous_empty';
      if (!book.previousEmpty)
        throw new Error(
          `the previous treasury of ${network}, ${book.previous}, was not empty at the last comparison: ${leaveIt}`,
        );
      // A payment may have begun since the last comparison. Without the key its outcome could not be found.
      if (await handoverCare.isUnderWay(chain, book.previous))
        throw new Error(
          `a payment to or from the previous treasury of ${network}, ${book.previous}, is pending: ${leaveIt}`,
        );
      await rows.endHandover(book, cursorsOf(book.cursor)[0]);
    } else throw otherBooks(book);
    return handOver(await bookOf());
  };

  const careForPrevious = async (): Promise<void> => {
    const { previous } = chain.handover ?? {};
    if (previous === undefined) return;
    const heldAt = (cursor: string) => previous.balanceAt(cursorsOf(cursor)[1]);
    await handoverCare.empty(chain, async () => {
      const { cursor } = await bookOf();
      const amount = await heldAt(cursor);
      return amount === null ? null : { amount, height: heightOf(cursorsOf(cursor)[1]) };
    });
    const { cursor } = await bookOf();
    const held = await heldAt(cursor);
    if (held === null) return;
    const isEmpty = held === 0n && !(await handoverCare.isUnderWay(chain, previous.treasury));
    await rows.noteEmpty(network, cursor, isEmpty);
  };

  return { handOver, careForPrevious };
}

interface HandoverCareOptions {
  readonly acts: Pick<TreasuryActs, 'begin'>;
  readonly actRows: Pick<ActRows, 'handoverMoves'>;
  readonly withdrawalRows: Pick<WithdrawalRows, 'signed' | 'leaving'>;
  readonly depositRows: Pick<DepositRows, 'openPayments'>;
  readonly now: () => number;
}

/** The final balance of an old treasury at a height of its chain. */
interface OldBalance {
  readonly amount: MicroUsd;
  readonly height: bigint;
}

/** Empties the treasury that hands over to another, until its key can be removed. */
interface HandoverCare {
  /**
   * Moves the money of an old treasury to the new one, by an ordinary move. The amount of signed payouts stays, because
   * anyone with their text may submit it at any time. `heldNow` resolves with null if the balance is not known.
   */
  empty(chain: Chain, heldNow: () => Promise<OldBalance | null>): Promise<void>;
  /** Whether a payment to the old treasury, or a payment that it has signed, is unfinished. */
  isUnderWay(chain: Pick<Chain, 'network' | 'payerOf'>, previous: string): Promise<boolean>;
}

/**
 * A smaller amount is moved at most once in LITTLE_WAITS_MS. Otherwise strangers could cost the treasury gas with small
 * transfers.
 */
const LITTLE: MicroUsd = 1_000_000n;
const LITTLE_WAITS_MS = 86_400_000;

export function createHandoverCare(options: HandoverCareOptions): HandoverCare {
  const { acts, actRows, withdrawalRows, depositRows, now } = options;

  const isSame = (network: string, one: string, other: string): boolean =>
    plainAddress(network, one) === plainAddress(network, other);

  /**
   * Whether the old treasury signed a payout. A payout that cannot be read counts as signed by it: what it pays must
   * stay, and the key that signed it, too.
   */
  const isSignedBy = (
    previous: string,
    { network, payerOf }: Pick<Chain, 'network' | 'payerOf'>,
    withdrawal: Withdrawal,
  ) => {
    try {
      return withdrawal.signed === null || isSame(network, payerOf(withdrawal.signed), previous);
    } catch (error) {
      if (error instanceof PayoutUnreadable) return true;
      throw error;
    }
  };

  /** The sum of the old treasury's signed payouts that had not left it at a height. */
  const signedAway = async (chain: Chain, previous: string, height: bigint): Promise<MicroUsd> => {
    let sum = 0n;
    for await (const payout of all((after) => withdrawalRows.leaving(chain.network, height, after)))
      if (isSignedBy(previous, chain, payout)) sum += payout.amount - payout.fee;
    return sum;
  };

  const movesOf = (network: string, previous: string) =>
    actRows.handoverMoves(network, plainAddress(network, previous), HANDOVER_MOVE);

  return {
    async empty(chain, heldNow) {
      const { network, treasury } = chain;
      const previous = chain.handover!.previous.treasury;
      // Read before the balance: of two gateways that see the same balance, only one can make the move with this
      // number.
      const { moves, underWay, newest } = await movesOf(network, previous);
      if (underWay > 0) return;
      const held = await heldNow();
      if (held === null) return;
      const amount = held.amount - (await signedAway(chain, previous, held.height));
      if (amount <= 0n || (amount < LITTLE && now() - newest < LITTLE_WAITS_MS)) return;
      await acts.begin({
        id: `${HANDOVER_MOVE}${network}-${previous}-${moves + 1}`,
        kind: 'move',
        network,
        amount,
        bearer: null,
        toNetwork: network,
        address: treasury,
        sender: previous,
        feeMax: 0n,
        reference: `${previous} hands over to ${treasury}`,
      });
    },

    async isUnderWay(chain, previous) {
      const { network } = chain;
      if ((await movesOf(network, previous)).underWay > 0) return true;
      for await (const payout of all((after) => withdrawalRows.signed(network, after)))
        if (isSignedBy(previous, chain, payout)) return true;
      for await (const { payment } of all((after) => depositRows.openPayments(network, after)))
        if (isSame(network, payment!.requirements.payTo, previous)) return true;
      return false;
    },
  };
}

async function* all<T extends Pick<Withdrawal, 'id'>>(
  pageAfter: (after: string) => Promise<readonly T[]>,
): AsyncGenerator<T> {
  for (let after = ''; ;) {
    const page = await pageAfter(after);
    yield* page;
    if (page.length === 0) return;
    after = page.at(-1)!.id;
  }
}
