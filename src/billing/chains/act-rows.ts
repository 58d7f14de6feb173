import { loadStatements, rowReader, type Database } from '#store';
import type { AccountName, MicroUsd } from '#billing';
import type { Before } from './deposit-rows.ts';

/** The prefix of the ids of moves that a handover makes. Ids of the operator's own moves do not have it. */
export const HANDOVER_MOVE = 'handover-';

/**
 * `write_off`: a treasury holds less than the books say, and `bearer` pays the difference. `write_up`: it holds more.
 * `make_good`: a loss is paid. `move`: money goes from one treasury to another.
 */
type ActKind = 'write_off' | 'write_up' | 'make_good' | 'move';

/**
 * `requested`: stored. `agreed`: a comparison showed exactly this difference (`make_good`: the losses are high enough),
 * and the bearer could pay. `sending`: is leaving its treasury. `sent`: has finally left and not arrived. `refused`:
 * nothing was done, or all was given back.
 */
type ActState = 'requested' | 'agreed' | 'sending' | 'sent' | 'done' | 'refused';

export interface TreasuryAct {
  readonly id: string;
  readonly kind: ActKind;
  /** CAIP-2 id; empty if the act concerns no chain. */
  readonly network: string;
  readonly amount: MicroUsd;
  /** The ledger account that pays a loss or gets a surplus; null for moves. */
  readonly bearer: AccountName | null;
  /** This and the members down to `arrived` are only for moves. */
  readonly toNetwork: string | null;
  /** The receiving address. */
  readonly address: string | null;
  /** The address from which it will arrive on the other network; null if that is not known. */
  readonly sender: string | null;
  /** The highest fee that may be missing from the arrived amount. */
  readonly feeMax: MicroUsd;
  /** Id of the deposit as which it arrived. */
  readonly deposit: string | null;
  readonly arrived: MicroUsd | null;
  /** The operator's reference for the act. */
  readonly reference: string;
  readonly state: ActState;
  /** The reason why it was refused, or what it waits for. */
  readonly reason: string | null;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  readonly updatedAt: number;
}

export type NewAct = Pick<
  TreasuryAct,
  'id' | 'kind' | 'network' | 'amount' | 'bearer' | 'toNetwork' | 'address' | 'sender' | 'feeMax' | 'reference'
>;

const SQL = loadStatements(import.meta.url, './sql/acts.sql', [
  'insertAct',
  'findAct',
  'findActOfDeposit',
  'listActs',
  'listOpenActs',
  'moveAct',
  'tieArrival',
  'nameArrival',
  'forgetArrival',
  'countHandoverMoves',
]);

/** The moves that empty an old treasury. */
interface HandoverMoves {
  readonly moves: number;
  readonly underWay: number;
  /** Epoch milliseconds; 0 before the first. */
  readonly newest: number;
}

/** The table of acts. Every change is one conditional statement, so exactly one caller makes it. */
export interface ActRows {
  /** Inserts an act. False if the id exists already, or if another act about the same difference is unfinished. */
  insert(act: NewAct): Promise<boolean>;
  find(id: string): Promise<TreasuryAct | null>;
  ofDeposit(deposit: string): Promise<TreasuryAct | null>;
  /** The newest first. */
  list(before: Before | null, limit: number): Promise<readonly TreasuryAct[]>;
  /** A page of at most 100 unfinished acts, the oldest first. `after`: the last act of the page before. */
  open(after: Pick<TreasuryAct, 'createdAt' | 'id'> | null): Promise<readonly TreasuryAct[]>;
  move(id: string, from: ActState, to: ActState, more?: { reason?: string; arrived?: MicroUsd }): Promise<boolean>;
  /** Links a transfer to the move that waits for it. False if no move waits for it. */
  tieArrival(deposit: string, network: string, sender: string, amount: MicroUsd): Promise<boolean>;
  /** Links a deposit to a move. False if the move already has a deposit, or has not left. */
  nameArrival(id: string, deposit: string): Promise<boolean>;
  /** Removes the link to a deposit that another account has claimed. */
  forgetArrival(id: string, deposit: string): Promise<boolean>;
  /** `previous`: the old treasury, in the spelling of `sender`. `prefix`: the prefix of the ids of its moves. */
  handoverMoves(network: string, previous: string, prefix: string): Promise<HandoverMoves>;
}

export function createActRows(database: Database, { now }: { readonly now: () => number }): ActRows {
  const changed = async (...query: Parameters<Database['query']>) => (await database.query(...query)).length > 0;
  const one = async (...query: Parameters<Database['query']>) => {
    const [row] = await database.query(...query);
    return row ? toAct(row) : null;
  };
  return {
    insert: ({ id, kind, network, amount, bearer, toNetwork, address, sender, feeMax, reference }) =>
      changed(SQL.insertAct, [id, kind, network, amount, bearer, toNetwork, address, sender, feeMax, reference, now()]),
    find: (id) => one(SQL.findAct, [id]),
    ofDeposit: (deposit) => one(SQL.findActOfDeposit, [deposit]),
    list: async (before, limit) =>
      (await database.query(SQL.listActs, [before?.createdAt ?? Number.MAX_SAFE_INTEGER, before?.id ?? '', limit])).map(
        toAct,
      ),
    open: async (after) =>
      (await database.query(SQL.listOpenActs, [after?.createdAt ?? -1, after?.id ?? ''])).map(toAct),
    move: (id, from, to, { reason = null, arrived = null }: { reason?: string | null; arrived?: bigint | null } = {}) =>
      changed(SQL.moveAct, [id, from, to, reason, arrived, now()]),
    tieArrival: (deposit, network, sender, amount) =>
      changed(SQL.tieArrival, [deposit, network, sender, amount, now()]),
    nameArrival: (id, deposit) => changed(SQL.nameArrival, [id, deposit, now()]),
    forgetArrival: (id, deposit) => changed(SQL.forgetArrival, [id, deposit, now()]),
    async handoverMoves(network, previous, prefix) {
      const [row] = await database.query(SQL.countHandoverMoves, [network, previous, `${prefix}%`]);
      return toHandoverMoves(row!);
    },
  };
}

const toHandoverMoves = rowReader<HandoverMoves>({ moves: Number, underWay: Number, newest: Number });
const toAct = rowReader<TreasuryAct>({ createdAt: Number, updatedAt: Number });
