import { loadStatements, type Query, type Row } from '#store';
import type { MovementTexts } from '../ledger/log-movements.ts';
import { SetDigest, type LeftMovement } from './archive-lines.ts';
import { pagesOf } from './registered.ts';

/* What holds at the end of an archive, as the database has it: balances, movements of open calls, calls that stay,
   and the ends of the chains. The next archive begins with it, and the audit compares its digests with the
   registered ones. */

const SQL = loadStatements(import.meta.url, '../sql/archive.sql', [
  'archivedBalances',
  'archivedMovements',
  'archivedKept',
  'archivedChains',
  'archivedSpending',
  'transfersOfPeriod',
]);

export interface ClosingBalance {
  readonly account: string;
  readonly available: bigint;
  readonly locked: bigint;
}

/** The last group of a chain, and where it ends in the log of the embedded ledger (0 without one). */
export interface ChainEnd {
  readonly chain: string;
  readonly n: number;
  readonly hash: string;
  readonly position: number;
}

export async function* closingBalances(query: Query, archive: number): AsyncGenerator<readonly ClosingBalance[]> {
  const keyOf = (row: Row) => [row['account']!];
  for await (const rows of pagesOf(query, SQL.archivedBalances, { params: [archive], from: [''], keyOf }))
    yield rows.map((row) => ({
      account: row['account'] as string,
      available: row['available'] as bigint,
      locked: row['locked'] as bigint,
    }));
}

export async function* leftMovements(query: Query, archive: number): AsyncGenerator<readonly LeftMovement[]> {
  const keyOf = (row: Row) => [row['chain']!, row['batch']!, row['position']!];
  for await (const rows of pagesOf(query, SQL.archivedMovements, { params: [archive], from: ['', 0, 0], keyOf }))
    yield rows.map((row) => [
      row['chain'] as string,
      Number(row['batch']),
      Number(row['position']),
      movementOfRow(row),
      Number(row['at']),
    ]);
}

export const movementOfRow = (row: Row): MovementTexts => [
  row['kind'] as MovementTexts[0],
  row['id'] as string,
  row['account'] as string,
  row['counterparty'] as string | null,
  `${row['amount'] as bigint}`,
  `${row['charged'] as bigint}`,
  `${row['fee'] as bigint}`,
  `${row['drawn'] as bigint}`,
  row['price'] as string | null,
];

export async function closingChains(query: Query, archive: number): Promise<readonly ChainEnd[]> {
  return (await query(SQL.archivedChains, [archive])).map((row) => ({
    chain: row['chain'] as string,
    n: Number(row['n']),
    hash: row['hash'] as string,
    position: Number(row['position']),
  }));
}

export class ClosingDigest {
  readonly #rows = new SetDigest();

  balance({ account, available, locked }: ClosingBalance): void {
    this.#rows.add('balance', account, available, locked);
  }
  movement([chain, batch, position, movement, at]: LeftMovement): void {
    this.#rows.add('movement', chain, batch, position, ...movement, at);
  }
  addOpenCall(id: string): void {
    this.#rows.add('kept', id);
  }
  /** The position in the log is left out, because a log that was lost begins anew. */
  chain({ chain, n, hash }: Omit<ChainEnd, 'position'>): void {
    this.#rows.add('chain', chain, n, hash);
  }
  digest(): string {
    return this.#rows.digest();
  }
}

export async function digestOfClosing(query: Query, archive: number): Promise<string> {
  const digest = new ClosingDigest();
  for await (const rows of closingBalances(query, archive)) for (const row of rows) digest.balance(row);
  for await (const rows of leftMovements(query, archive)) for (const row of rows) digest.movement(row);
  const keyOf = (row: Row) => [row['id']!];
  for await (const rows of pagesOf(query, SQL.archivedKept, { params: [archive], from: [''], keyOf }))
    for (const row of rows) digest.addOpenCall(row['id'] as string);
  for (const row of await closingChains(query, archive)) digest.chain(row);
  return digest.digest();
}

export async function digestOfSpending(query: Query, archive: number): Promise<string> {
  const digest = new SetDigest();
  const keyOf = (row: Row) => [row['account']!, row['budget']!];
  for await (const rows of pagesOf(query, SQL.archivedSpending, { params: [archive], from: ['', ''], keyOf }))
    for (const row of rows) digest.add(row['account'] as string, row['budget'] as string, row['charged'] as bigint);
  return digest.digest();
}

/** A transfer as an archive and its digest have it. */
export type TransferFields = readonly [id: string, from: string, to: string, amount: string, memo: string, at: number];

export const transferFields = (row: Row): TransferFields => [
  row['id'] as string,
  row['from_account'] as string,
  row['to_account'] as string,
  `${row['amount'] as bigint}`,
  row['memo'] as string,
  Number(row['at']),
];

export async function digestOfTransfers(query: Query, beginsAt: number, endsAt: number): Promise<string> {
  const digest = new SetDigest();
  const keyOf = (row: Row) => [row['id']!];
  for await (const rows of pagesOf(query, SQL.transfersOfPeriod, { params: [beginsAt, endsAt], from: [''], keyOf }))
    for (const row of rows) digest.add(...transferFields(row));
  return digest.digest();
}
