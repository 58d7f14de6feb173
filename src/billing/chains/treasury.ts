import { setTimeout as pause } from 'node:timers/promises';
import { OPERATOR_TREASURY, treasuryOf, type Ledger } from '#billing';
import { formatUsd } from '#billing/amounts';
import { ChainUnavailable, FinalityBroken, type OnProblem } from './chain.ts';
import type { ChainBook } from './chain-rows.ts';
import type { Deposits } from './deposits.ts';
import { createHandoverBooks, type HandoverBooksOptions } from './handover.ts';
import type { Withdrawals } from './withdrawals.ts';
import type { Reserves } from './books.ts';

interface TreasuryOptions extends HandoverBooksOptions {
  readonly ledger: Pick<Ledger, 'transfer'>;
  readonly deposits: Pick<Deposits, 'arrived'>;
  readonly withdrawals: Pick<Withdrawals, 'pollSigned'>;
  readonly signal: AbortSignal;
}

/** The books of one chain. They contain every incoming transfer, and are compared with the treasury. */
export interface Treasury {
  /**
   * Begins the books of the chain if they do not exist. Rejects with ChainUnavailable, and with Error if the books
   * belong to another treasury.
   */
  open(): Promise<void>;
  /** Books all final incoming transfers. Rejects with ChainUnavailable. */
  watch(): Promise<void>;
  /**
   * Compares the books with the treasury. Stops withdrawals if they still differ after several comparisons, and resumes
   * them if they agree again. null if the chain does not report the balance. Rejects with ChainUnavailable.
   */
  compare(): Promise<Reserves | null>;
}

/** Money moves during a comparison, so a difference is checked again. */
const COMPARISONS = 4;
const BETWEEN_MS = 700;
const PAGES_MAX = 10_000;

export function createTreasury(options: TreasuryOptions): Treasury {
  const { chain, rows, ledger, signal, onProblem } = options;
  const { network } = chain;

  const bookOf = async (): Promise<ChainBook> => {
    const book = await rows.find(network);
    if (book === null) throw new ChainUnavailable(`the books of ${network} have not begun`);
    return book;
  };

  const halt = async (reason: string): Promise<void> => {
    await rows.halt(network, reason);
    onProblem('error', 'withdrawals are stopped', { network, reason });
  };

  const { handOver, careForPrevious } = createHandoverBooks({ ...options, bookOf });

  const watch = async (): Promise<void> => {
    for (let pages = 0; pages < PAGES_MAX && !signal.aborted; pages += 1) {
      const book = await bookOf();
      const page = await chain.incoming(book.cursor).catch(async (error: unknown) => {
        if (error instanceof FinalityBroken && book.halted === null) await halt(error.message);
        throw error;
      });
      const mayHaveCome = book.previous !== null && page.events.length > 0;
      // A treasury that received a transfer is not empty. This is stored before the booking, and again after it,
      // because another gateway may have counted meanwhile.
      if (mayHaveCome) await rows.notePrevious(network);
      for (const event of page.events) await options.deposits.arrived(event, network);
      if (page.cursor !== book.cursor) await rows.moveCursor(network, book.cursor, page.cursor, page.height);
      if (mayHaveCome) await rows.notePrevious(network);
      if (!page.more) return;
    }
  };

  const compareOnce = async (): Promise<Reserves | null> => {
    await watch();
    // The height is read before the payouts are looked at, which may take long. A payout that becomes final meanwhile
    // is above this height and causes no difference.
    const { cursor, height } = await bookOf();
    await options.withdrawals.pollSigned(network);
    const held = await chain.balanceAt(cursor);
    if (held === null) return null;
    return { network, held, booked: await rows.bookedAt(network, height), height };
  };

  return {
    async open() {
      let book = await rows.find(network);
      if (book === null) {
        const { cursor, height } = await chain.incoming(null);
        const opening = await chain.balanceAt(cursor);
        if (opening === null)
          throw new ChainUnavailable(`the balance of the treasury on ${network} cannot be read at the moment`);
        await rows.insert({
          network,
          asset: chain.asset,
          treasury: chain.treasury,
          opening,
          cursor,
          height,
          previous: chain.handover?.previous.treasury ?? null,
        });
        book = await bookOf();
      }
      book = await handOver(book);
      if (book.opening === 0n) return;
      const memo = `held by the treasury on ${network} before the books began`;
      await ledger.transfer({
        id: book.openingId ?? `opening:${network}`,
        from: treasuryOf(network),
        to: OPERATOR_TREASURY,
        amount: book.opening,
        memo,
      });
    },

    watch,

    async compare() {
      let reserves: Reserves | null = null;
      for (let comparison = 0; comparison < COMPARISONS; comparison += 1) {
        if (comparison > 0) await pause(BETWEEN_MS, undefined, { signal });
        reserves = await compareOnce();
        if (reserves?.held === reserves?.booked && reserves !== null) break;
      }
      if (reserves === null) return null;
      const { held, booked } = reserves;
      await rows.noteReserves(network, held, booked);
      const { halted } = await bookOf();
      if (held === booked) {
        await careForPrevious();
        if (halted !== null) {
          await rows.halt(network, null);
          onProblem('info', 'withdrawals continue: the treasury holds what the books say', { network });
        }
      } else if (halted === null) {
        await halt(`the treasury holds ${formatUsd(held)} USDC, the books say ${formatUsd(booked)}`);
      }
      return reserves;
    },
  };
}

interface ComparisonAlarmOptions {
  /** CAIP-2 ids of all configured networks. The list may grow. */
  readonly networks: readonly string[];
  readonly books: () => Promise<readonly ChainBook[]>;
  /** Milliseconds without a comparison after which the operator is alerted. */
  readonly lateMs: number;
  readonly onProblem: OnProblem;
  readonly now: () => number;
}

/**
 * Alerts the operator if books were not compared with their treasury for too long. Without comparisons, missing money
 * would go unnoticed.
 */
interface ComparisonAlarm {
  /** Checks all networks. Reports a late network once, and once more when it is compared again. */
  check(): Promise<void>;
  /** Networks that were late at the last check. */
  late(): readonly string[];
}

export function createComparisonAlarm(options: ComparisonAlarmOptions): ComparisonAlarm {
  const { networks, books, lateMs, onProblem, now } = options;
  const begun = new Map(networks.map((network) => [network, now()]));
  const late = new Set<string>();
  return {
    async check() {
      const chainBooks = await books();
      for (const network of networks) {
        const since = begun.get(network) ?? now();
        begun.set(network, since);
        const comparedAt = chainBooks.find((book) => book.network === network)?.comparedAt ?? null;
        // A restarted gateway has just begun to compare, so the time counts from its start.
        const isLate = now() - Math.max(comparedAt ?? since, since) > lateMs;
        if (isLate === late.has(network)) continue;
        if (isLate) late.add(network);
        else late.delete(network);
        if (isLate)
          onProblem('error', 'the books of a chain were not compared with its treasury for too long', {
            network,
            since: comparedAt === null ? null : new Date(comparedAt).toISOString(),
          });
        else onProblem('info', 'the books of a chain are compared with its treasury again', { network });
      }
    },
    late: () => [...late],
  };
}
