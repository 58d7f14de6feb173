import { GENESIS, loadStatement, type Query, type Row } from '#store';
import type { JournalRow } from './ledger-changes.ts';
import { areMovements, hashBatch, hashGroup } from './ledger-journal.ts';

const BATCHES = loadStatement(import.meta.url, './sql/audit-batches.sql');
const ROWS = loadStatement(import.meta.url, './sql/audit-rows.sql');
const ORPHANS = loadStatement(import.meta.url, './sql/audit-orphans.sql');

/** Batches read at a time. A batch has at most 1,024 operations, so this bounds the memory. */
const PAGE = 50;
const PROBLEMS_MAX = 20;
const OTHER_HASH = 'its rows do not have the hash that was recorded';

interface AuditedChains {
  readonly problems: string[];
  readonly chains: number;
  readonly batches: number;
  readonly operations: number;
  /** Groups whose movements cannot be parsed, so nothing can be computed from them. */
  readonly unreadable: readonly { readonly chain: string; readonly n: bigint }[];
}

/**
 * Recomputes every hash of every chain. Each broken batch is reported once: after a break, the check goes on from the
 * recorded hash.
 */
export async function auditChains(query: Query): Promise<AuditedChains> {
  const problems: string[] = [];
  const unreadable: { chain: string; n: bigint }[] = [];
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
      const hasRows = part.some((batch) => batch.movements === null);
      const found = hasRows ? await query(ROWS, [name, part[0]!.n!, part.at(-1)!.n!]) : [];
      const rows = Map.groupBy(found, (row) => row.batch);
      for (const batch of part) {
        if (name !== chain) {
          chain = name;
          n = 0;
          prev = GENESIS;
          chains += 1;
        }
        const problem = checkBatch({ batch, journal: rows.get(batch.n) ?? [], n: n + 1, prev });
        if (problem && problems.length < PROBLEMS_MAX) problems.push(`chain ${chain}, batch ${batch.n}: ${problem}`);
        if (problem && batch.movements !== null && !areMovements(batch.movements as string))
          unreadable.push({ chain, n: batch.n as bigint });
        n = Number(batch.n);
        prev = batch.hash as string;
        batches += 1;
        operations += Number(batch.count);
      }
    }
  }
  for (const row of await query(ORPHANS))
    problems.push(`chain ${row.chain}, batch ${row.batch}: row ${row.position} belongs to no batch`);
  return { problems, chains, batches, operations, unreadable };
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
  const { chain, at, count, hash, movements } = batch;
  if (Number(batch.n) !== n) return `batch ${n} is missing before it`;
  if (batch.prev !== prev) return 'it does not follow the hash of the batch before it';
  if (movements !== null) {
    const header = { chain: chain as string, n, at: Number(at), count: Number(count) };
    return hashGroup(prev, header, movements as string) === hash ? null : OTHER_HASH;
  }
  if (journal.length !== Number(count)) return `it has ${journal.length} rows instead of ${count}`;
  if (journal.some((row, index) => Number(row.position) !== index)) return 'its rows are not numbered in sequence';
  return hashBatch(prev, chain as string, n, Number(at), journal.map(toJournalRow)) === hash ? null : OTHER_HASH;
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
