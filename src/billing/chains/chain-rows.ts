import { isOne, loadStatements, numberOrNull, rowReader, type Database } from '#store';
import { treasuryOf, type MicroUsd } from '#billing';
import type { SnapshotRows } from './chain.ts';

export interface ChainBook {
  /** CAIP-2 id. */
  readonly network: string;
  readonly asset: string;
  readonly treasury: string;
  /** The balance before the books began. */
  readonly opening: MicroUsd;
  readonly cursor: string;
  readonly height: bigint;
  /** The balances of the treasury and of the books at their last comparison; null before the first. */
  readonly held: MicroUsd | null;
  readonly booked: MicroUsd | null;
  /** Epoch milliseconds. */
  readonly comparedAt: number | null;
  /** The reason why payouts are stopped; null if they are not. */
  readonly halted: string | null;
  /** Address of the treasury that hands over to this one; null without a handover. */
  readonly previous: string | null;
  /** The previous treasury was empty at the last comparison and received nothing since. */
  readonly previousEmpty: boolean;
  /** Id of the transfer that books the opening; null: the id for the first treasury. */
  readonly openingId: string | null;
}

/** Open deposits and withdrawals of one chain: how many, and when the oldest began (epoch milliseconds). */
export interface OpenMoney {
  readonly network: string;
  readonly kind: 'deposits' | 'unfinal' | 'withdrawals';
  readonly count: number;
  readonly oldest: number;
}

const SQL = loadStatements(import.meta.url, './sql/chains.sql', [
  'insertChain',
  'findChain',
  'listChains',
  'moveCursor',
  'noteReserves',
  'haltChain',
  'bookedAt',
  'countMoney',
  'beginHandover',
  'endHandover',
  'notePrevious',
  'noteEmpty',
  'keepSnapshot',
  'listSnapshots',
  'forgetSnapshots',
]);

export interface ChainRows {
  insert(
    book: Pick<ChainBook, 'network' | 'asset' | 'treasury' | 'opening' | 'cursor' | 'height'> &
      Partial<Pick<ChainBook, 'previous'>>,
  ): Promise<void>;
  /** Starts a handover to another treasury. False if the book has changed since `from` was read. */
  beginHandover(
    from: ChainBook,
    to: Pick<ChainBook, 'treasury' | 'opening' | 'openingId' | 'cursor'>,
  ): Promise<boolean>;
  /**
   * Ends a handover: the old treasury is no longer watched. False if the book has changed since `from` was read, or if
   * the old treasury is not empty.
   */
  endHandover(from: ChainBook, cursor: string): Promise<boolean>;
  /** Stores that the old treasury may have received a transfer. */
  notePrevious(network: string): Promise<void>;
  /** Stores whether the old treasury was empty at a cursor. Changes nothing if the book has another cursor now. */
  noteEmpty(network: string, cursor: string, empty: boolean): Promise<void>;
  find(network: string): Promise<ChainBook | null>;
  list(): Promise<readonly ChainBook[]>;
  /** False if another caller has moved the cursor. */
  moveCursor(network: string, from: string, to: string, height: bigint): Promise<boolean>;
  noteReserves(network: string, held: MicroUsd, booked: MicroUsd): Promise<void>;
  halt(network: string, reason: string | null): Promise<void>;
  /**
   * The treasury's balance at a height by the books. All transfers that are final at this height must already be
   * booked.
   */
  bookedAt(network: string, height: bigint): Promise<MicroUsd>;
  open(): Promise<readonly OpenMoney[]>;
}

export function createChainRows(database: Database, { now }: { readonly now: () => number }): ChainRows {
  return {
    async insert({ network, asset, treasury, opening, cursor, height, previous = null }) {
      await database.query(SQL.insertChain, [network, asset, treasury, opening, cursor, height, previous]);
    },
    beginHandover: async (from, { treasury, opening, openingId, cursor }) =>
      (
        await database.query(SQL.beginHandover, [
          from.network,
          from.cursor,
          from.treasury,
          treasury,
          opening,
          openingId,
          cursor,
        ])
      ).length > 0,
    endHandover: async ({ network, cursor }, remainder) =>
      (await database.query(SQL.endHandover, [network, cursor, remainder])).length > 0,
    async notePrevious(network) {
      await database.query(SQL.notePrevious, [network]);
    },
    async noteEmpty(network, cursor, empty) {
      await database.query(SQL.noteEmpty, [network, cursor, empty ? 1 : 0]);
    },
    async find(network) {
      const [row] = await database.query(SQL.findChain, [network]);
      return row ? toBook(row) : null;
    },
    list: async () => (await database.query(SQL.listChains)).map(toBook),
    moveCursor: async (network, from, to, height) =>
      (await database.query(SQL.moveCursor, [network, from, to, height])).length > 0,
    async noteReserves(network, held, booked) {
      await database.query(SQL.noteReserves, [network, held, booked, now()]);
    },
    async halt(network, reason) {
      await database.query(SQL.haltChain, [network, reason]);
    },
    async bookedAt(network, height) {
      const [row] = await database.query(SQL.bookedAt, [network, treasuryOf(network), height]);
      const figure = (name: string) => row![name] as bigint;
      return -figure('treasury') - figure('came_later') + figure('went_later');
    },
    open: async () => (await database.query(SQL.countMoney)).map(toOpenMoney),
  };
}

const toBook = rowReader<ChainBook>({ comparedAt: numberOrNull, previousEmpty: isOne });
const toOpenMoney = rowReader<OpenMoney>({ count: Number, oldest: Number }, { rows_open: 'count' });

/**
 * The table of treasury balances that were read while their blocks were new, for one network. All gateways share it.
 */
export function createSnapshotRows(database: Pick<Database, 'query'>, network: string): SnapshotRows {
  return {
    async list(treasury, limit) {
      const rows = await database.query(SQL.listSnapshots, [network, treasury, limit]);
      return rows.map(({ cursor, height, balance }) => ({
        cursor: cursor as string,
        height: height as bigint,
        balance: balance as bigint,
      }));
    },
    async keep(treasury, { cursor, height, balance }) {
      await database.query(SQL.keepSnapshot, [network, treasury, cursor, height, balance]);
    },
    async forget(treasury, below) {
      await database.query(SQL.forgetSnapshots, [network, treasury, below]);
    },
  };
}
