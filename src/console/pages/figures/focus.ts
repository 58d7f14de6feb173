import type { FastifyReply, FastifyRequest } from 'fastify';
import { accountsAfter, FOCUS_COLUMNS, focusRows, UTC } from '#analytics';
import type { KeyStore } from '#auth';
import type { Database, Query } from '#store';
import { csvLine, sendCsv } from '../csv.ts';
import { monthDays, refuseArchivedTime } from './statement.ts';

/* The export of usage in the columns of FOCUS 1.2, of one account or of all. */

export interface FocusDeps {
  readonly database: Pick<Database, 'query' | 'snapshot'>;
  readonly keys: Pick<KeyStore, 'names'>;
  /** Its host names the gateway, which issues the invoice. */
  readonly publicUrl: string | null;
}

interface NamedAccount {
  readonly account: string;
  readonly label: string | null;
}

/** `party`: the account that requested it, see sendCsv. */
interface FocusDownload {
  readonly request: Pick<FastifyRequest, 'method'>;
  readonly reply: Pick<FastifyReply, 'header' | 'type' | 'send'>;
  readonly party: string;
}

const ACCOUNTS_PAGE = 100;

export const focusAnswer = {
  description: 'FOCUS 1.2 as CSV, with a line of names.',
  content: { 'text/csv': { schema: { type: 'string' } } },
};

/** Answers with the rows of a UTC month. `accounts`: those with their labels. */
export async function answerFocus(
  deps: FocusDeps,
  month: string,
  accounts: AsyncIterable<NamedAccount>,
  { request, reply, party }: FocusDownload,
) {
  const [first, next] = monthDays(month);
  const time = { from: UTC.startOf(first), until: UTC.startOf(next) };
  await refuseArchivedTime(deps, time.from, 'month');
  return sendCsv(request, reply, { party, name: `focus-${month}.csv`, lines: linesOf(deps, time, accounts) });
}

async function* linesOf(
  { database, keys, publicUrl }: FocusDeps,
  time: { readonly from: number; readonly until: number },
  accounts: AsyncIterable<NamedAccount>,
): AsyncGenerator<string> {
  const issuer = publicUrl === null ? 'tollgate' : new URL(publicUrl).host;
  yield csvLine(FOCUS_COLUMNS);
  for await (const { account, label } of accounts) {
    const names = await keys.names(account);
    const query = { ...time, account, accountName: label || null, issuer, keyNames: names };
    for await (const rows of focusRows(database.query, query))
      yield rows.map((row) => csvLine(FOCUS_COLUMNS.map((column) => row[column]))).join('');
  }
}

/** All accounts of consumers, with the labels of those that have one. */
export async function* allAccounts(
  query: Query,
  labelOf: (account: string) => Promise<string | null>,
): AsyncGenerator<NamedAccount> {
  for (let last = ''; ;) {
    const accounts = await accountsAfter(query, last, ACCOUNTS_PAGE);
    for (const account of accounts) yield { account, label: await labelOf(account) };
    if (accounts.length < ACCOUNTS_PAGE) return;
    last = accounts.at(-1)!;
  }
}
