import { loadStatements, type Query, type Row } from '#store';
import { escrowOf } from '#billing';
import { chargedCalls, type TimeRange } from './account-calls.ts';
import { fieldsOf, nameOf, textOf } from './call-facts.ts';
import type { TimeZone } from './time-zone.ts';

/** A movement of an account's money. Amounts are micro-USD, and negative if they left the account. */
interface Movement {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly amount: bigint;
  /** After the movement. */
  readonly balance: bigint;
}

interface CallMovement extends Movement {
  readonly kind: 'calls';
  readonly id: string | null;
  readonly calls: number;
  readonly service: string;
  readonly primitive: string;
  /** Hash of the key, and the tags, of a single call. */
  readonly key: string | null;
  readonly tags: Readonly<Record<string, string>>;
}

interface TransferMovement extends Movement {
  readonly kind: 'transfer';
  readonly id: string;
  readonly memo: string;
}

/** All movements of an account in a time. `opening` and the movements sum to `closing`, exactly. */
export interface AccountStatement {
  readonly opening: bigint;
  readonly closing: bigint;
  /** All that the calls were charged, as a positive amount, and their number. */
  readonly charged: bigint;
  readonly calls: number;
  /** In the order of their times. */
  readonly movements: readonly (CallMovement | TransferMovement)[];
}

interface StatementQuery extends TimeRange {
  readonly account: string;
  readonly zone: TimeZone;
  /** The most movements of single calls; 0 adds the calls of each day and service up. */
  readonly callsMax: number;
}

const SQL = loadStatements(import.meta.url, '../sql/statement.sql', ['chargedSince', 'transfersSince']);
const TOTALS = loadStatements(import.meta.url, '../sql/account-records.sql', ['accountTotals']);

type OpenMovement = Omit<CallMovement, 'balance'> | Omit<TransferMovement, 'balance'>;

/**
 * Reads the statement of a time from one snapshot. The balance is what is available and locked. It is known at the
 * moment of the snapshot, and what happened since then is taken off. null if the account has more than `callsMax`
 * charged calls.
 */
export async function readStatement(
  query: Query,
  { account, zone, from, until, callsMax }: StatementQuery,
): Promise<AccountStatement | null> {
  const escrow = escrowOf(account);
  const movements: OpenMovement[] = [];
  const days = new Map<string, OpenMovement & CallMovement>();
  let [charged, calls] = [0n, 0];
  for await (const rows of chargedCalls(query, account, { from, until }))
    for (const row of rows) {
      const call = movementOf(row);
      charged -= call.amount;
      calls += 1;
      if (callsMax > 0 && calls > callsMax) return null;
      if (callsMax > 0) movements.push(call);
      else addCall(days, call, zone);
    }
  movements.push(...days.values());
  const transfers = await query(SQL.transfersSince, [escrow, from]);
  let since = 0n;
  for (const row of transfers) {
    const amount = row['to_account'] === escrow ? (row['amount'] as bigint) : -(row['amount'] as bigint);
    const at = Number(row['at']);
    if (at >= until) since += amount;
    else movements.push({ kind: 'transfer', id: row['id'] as string, memo: row['memo'] as string, at, amount });
  }
  const [totals] = await query(TOTALS.accountTotals, [escrow]);
  const [later] = await query(SQL.chargedSince, [account, until]);
  const closing = (totals!['remaining'] as bigint) - since + (later!['charged'] as bigint);
  movements.sort((a, b) => a.at - b.at || (a.id ?? '').localeCompare(b.id ?? ''));
  const opening = movements.reduce((balance, { amount }) => balance - amount, closing);
  let balance = opening;
  const withBalances = movements.map((one) => ({ ...one, balance: (balance += one.amount) }));
  return { opening, closing, charged, calls, movements: withBalances };
}

/** Adds a call to those of its day and service. The sum stands at the last of them. */
function addCall(days: Map<string, OpenMovement & CallMovement>, call: OpenMovement & CallMovement, zone: TimeZone) {
  const name = `${zone.dayAt(call.at)} ${call.primitive} ${call.service}`;
  const { amount = 0n, calls = 0, at = 0 } = days.get(name) ?? {};
  days.set(name, {
    ...call,
    id: null,
    key: null,
    tags: {},
    amount: amount + call.amount,
    calls: calls + 1,
    at: Math.max(at, call.at),
  });
}

function movementOf(row: Row): OpenMovement & CallMovement {
  const call = fieldsOf(row['lock_detail'] as string);
  const run = fieldsOf(row['detail'] as string | null);
  return {
    kind: 'calls',
    at: Number(row['resolved_at']),
    id: row['id'] as string,
    calls: 1,
    service: textOf(run['service']) || nameOf(textOf(call['service'])),
    primitive: textOf(call['primitive']),
    key: textOf(call['key']) || null,
    tags: tagsOf(call['tags']),
    amount: -(row['charged'] as bigint),
    balance: 0n,
  };
}

export const tagsOf = (value: unknown): Readonly<Record<string, string>> =>
  typeof value === 'object' && value !== null
    ? Object.fromEntries(
        Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
      )
    : {};
