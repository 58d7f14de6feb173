import { GENESIS, loadStatement, type Query, type Row } from '#store';
import type { JournalRow } from './ledger-changes.ts';
import { hashBatch } from './ledger-journal.ts';

const BATCHES = loadStatement(import.meta.url, './sql/audit-batches.sql');
const ROWS = loadStatement(import.meta.url, './sql/audit-rows.sql');
const ORPHANS = loadStatement(import.meta.url, './sql/audit-orphans.sql');

/** Batches read at a time: at most this many times a thousand journal rows are in memory. */
const PAGE = 50;
const PROBLEMS_MAX = 20;

/**
 * Recomputes every hash of every chain. A break is told once per batch: where a chain is broken, and that it goes
 * on from the recorded hash.
 */
export async function auditChains(
  query: Query,
): Promise<{ problems: string[]; chains: number; batches: number; operations: number }> {
  const problems: string[] = [];
  let chains = 0;
  let batches = 0;
  let operations = 0;
  let chain = '';
  let n = 0;
  let prev = GENESIS;
  for (;;) {
    const page = await query(BATCHES, [chain, n, PAGE]);
    if (page.length === 0) break;
    for (const part of byChain(page)) {
      const name = part[0]!.chain as string;
      const rows = Map.groupBy(await query(ROWS, [name, part[0]!.n!, part.at(-1)!.n!]), (row) => row.batch);
      for (const batch of part) {
        if (name !== chain) {
          chain = name;
          n = 0;
          prev = GENESIS;
          chains += 1;
        }
        const journal = rows.get(batch.n) ?? [];
        const problem = checkBatch({ batch, journal, n: n + 1, prev });
        if (problem && problems.length < PROBLEMS_MAX) problems.push(`chain ${chain}, batch ${batch.n}: ${problem}`);
        n = Number(batch.n);
        prev = batch.hash as string;
        batches += 1;
        operations += journal.length;
      }
    }
  }
  for (const row of await query(ORPHANS))
    problems.push(`chain ${row.chain}, batch ${row.batch}: row ${row.position} belongs to no batch`);
  return { problems, chains, batches, operations };
}

function byChain(page: readonly Row[]): readonly (readonly Row[])[] {
  return [...Map.groupBy(page, (row) => row.chain).values()];
}

function checkBatch({
  batch,
  journal,
  n,
  prev,
}: {
  batch: Row;
  journal: readonly Row[];
  n: number;
  prev: string;
}): string | null {
  if (Number(batch.n) !== n) return `batch ${n} is missing before it`;
  if (batch.prev !== prev) return 'it does not follow the hash of the batch before it';
  if (journal.length !== Number(batch.count)) return `it has ${journal.length} rows instead of ${batch.count}`;
  if (journal.some((row, index) => Number(row.position) !== index)) return 'its rows are not numbered in sequence';
  const hash = hashBatch(prev, batch.chain as string, n, Number(batch.at), journal.map(toJournalRow));
  return hash === batch.hash ? null : 'its rows do not have the hash that was recorded';
}

function toJournalRow(row: Row): JournalRow {
  return {
    kind: row.kind as JournalRow['kind'],
    id: row.id as string,
    account: row.account as string,
    counterparty: row.counterparty as string | null,
    amount: row.amount as bigint,
    charged: row.charged as bigint,
    fee: row.fee as bigint,
    drawn: row.drawn as bigint,
    price: row.price as string | null,
    at: Number(row.at),
  };
}
