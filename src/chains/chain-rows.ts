import { isOne, loadStatement, numberOrNull, rowReader, type Database } from '#store';
import { treasuryOf, type MicroUsd } from '#billing';
import type { SnapshotRows } from './chain.ts';

/** The books of a chain. */
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

const load = (name: string) => loadStatement(import.meta.url, `./sql/${name}.sql`);
const INSERT = load('insert-chain');
const FIND = load('find-chain');
const LIST = load('list-chains');
const MOVE = load('move-cursor');
const NOTE = load('note-reserves');
const HALT = load('halt-chain');
const BOOKED = load('booked-at');
const OPEN = load('count-money');
const BEGIN = load('begin-handover');
const END = load('end-handover');
const NOTE_PREVIOUS = load('note-previous');
const NOTE_EMPTY = load('note-empty');

/** The table of chains and the figures of their books. */
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
      await database.query(INSERT, [network, asset, treasury, opening, cursor, height, previous]);
    },
    beginHandover: async (from, { treasury, opening, openingId, cursor }) =>
      (await database.query(BEGIN, [from.network, from.cursor, from.treasury, treasury, opening, openingId, cursor]))
        .length > 0,
    endHandover: async ({ network, cursor }, left) => (await database.query(END, [network, cursor, left])).length > 0,
    async notePrevious(network) {
      await database.query(NOTE_PREVIOUS, [network]);
    },
    async noteEmpty(network, cursor, empty) {
      await database.query(NOTE_EMPTY, [network, cursor, empty ? 1 : 0]);
    },
    async find(network) {
      const [row] = await database.query(FIND, [network]);
      return row ? toBook(row) : null;
    },
    list: async () => (await database.query(LIST)).map(toBook),
    moveCursor: async (network, from, to, height) =>
      (await database.query(MOVE, [network, from, to, height])).length > 0,
    async noteReserves(network, held, booked) {
      await database.query(NOTE, [network, held, booked, now()]);
    },
    async halt(network, reason) {
      await database.query(HALT, [network, reason]);
    },
    async bookedAt(network, height) {
      const [row] = await database.query(BOOKED, [network, treasuryOf(network), height]);
      const figure = (name: string) => row![name] as bigint;
      return -figure('treasury') - figure('came_later') + figure('went_later');
    },
    open: async () => (await database.query(OPEN)).map(toOpenMoney),
  };
}

const toBook = rowReader<ChainBook>({ comparedAt: numberOrNull, previousEmpty: isOne });
const toOpenMoney = rowReader<OpenMoney>({ count: Number, oldest: Number }, { rows_open: 'count' });

const KEEP_SNAPSHOT = loadStatement(import.meta.url, './sql/keep-snapshot.sql');
const LIST_SNAPSHOTS = loadStatement(import.meta.url, './sql/list-snapshots.sql');
const FORGET_SNAPSHOTS = loadStatement(import.meta.url, './sql/forget-snapshots.sql');

/**
 * The table of treasury balances that were read while their blocks were new, for one network. All gateways share it.
 */
export function createSnapshotRows(database: Pick<Database, 'query'>, network: string): SnapshotRows {
  return {
    async list(treasury, limit) {
      const rows = await database.query(LIST_SNAPSHOTS, [network, treasury, limit]);
      return rows.map(({ cursor, height, balance }) => ({
        cursor: cursor as string,
        height: height as bigint,
        balance: balance as bigint,
      }));
    },
    async keep(treasury, { cursor, height, balance }) {
      await database.query(KEEP_SNAPSHOT, [network, treasury, cursor, height, balance]);
    },
    async forget(treasury, below) {
      await database.query(FORGET_SNAPSHOTS, [network, treasury, below]);
    },
  };
}
