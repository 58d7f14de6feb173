import { loadStatements, type Database, type Query, type Row, type RunProgram, type Statement, GENESIS } from '#store';
import type { AuditedLog } from './audit-log-program.ts';
import { texts } from '../ledger/ledger-postgres-write.ts';
import type { MicroUsd } from '../prices/money.ts';
import type { JournalRow } from '../ledger/ledger-changes.ts';
import { areMovements, hashBatch, hashGroup } from '../ledger/journal.ts';
import type { Newest } from '../archive/audit-archives.ts';
import { checkCharge } from '../ledger/check-charge.ts';
import { priceId, type Rates } from '../prices/price.ts';
import { ratesFromText } from '../prices/price-book.ts';

interface AuditCheck {
  readonly name: string;
  readonly ok: boolean;
  /** The number of checked rows, or the first differences that were found. */
  readonly detail: string;
}

export interface AuditReport {
  readonly ok: boolean;
  readonly checks: readonly AuditCheck[];
  /** Amounts (micro-USD) and counts at the audited moment. */
  readonly totals: AuditTotals;
}

interface AuditTotals {
  readonly accounts: number;
  readonly escrowAvailable: MicroUsd;
  readonly escrowLocked: MicroUsd;
  readonly earnings: MicroUsd;
  readonly fees: MicroUsd;
  readonly suspense: MicroUsd;
  /** Negative: the money that is held outside for all of the above. */
  readonly treasury: MicroUsd;
  readonly locksHeld: number;
  readonly locksSettled: number;
  readonly locksReleased: number;
  readonly locksExpired: number;
  readonly charged: MicroUsd;
  readonly shortfall: MicroUsd;
  readonly operations: number;
}

export interface AuditOptions {
  readonly now?: () => number;
  /**
   * How long after its expiry a lock may still be held, in milliseconds: one sweep, with some slack. null skips the
   * check, for example because no gateway runs that could sweep.
   */
  readonly overdueMs?: number | null;
  /** Folders in which archives are looked for, beside the one where each was written. */
  readonly archives?: readonly string[];
  /** A check of another module, made in the same snapshot. */
  readonly also?: AuditedBeside;
}

/** A check of tables that are derived from the ledger's tables. */
interface AuditedBeside {
  readonly temporary: readonly Statement[];
  readonly check: (query: Query, program: RunProgram | null) => Promise<AuditCheck>;
}

const OVERDUE_MS = 120_000;
const LOG_PROGRAM = new URL('./audit-log-program.ts', import.meta.url).href;

const SQL = loadStatements(import.meta.url, '../sql/audit.sql', [
  'pgAuditInsertMovements',
  'auditSum',
  'auditTotals',
  'auditLockTotals',
  'auditOverdue',
  'auditBatches',
  'auditRows',
  'auditOrphans',
  'auditPrices',
  'auditSettled',
  'auditLiveLocks',
  'auditLiveMovements',
  'auditMovementsTable',
  'auditMovements',
  'auditEntries',
  'auditBalances',
  'auditNegative',
  'auditHeld',
  'auditLeases',
  'auditLocks',
  'auditLent',
  'auditChildren',
  'auditTransfers',
  'auditRefunds',
  'auditBudgets',
  'pgAuditBudgets',
]);
/** Creates the table and the views of what is not in an archive, which the other statements read. */
const TEMPORARY = [
  SQL.auditLiveLocks,
  SQL.auditMovementsTable,
  SQL.auditLiveMovements,
  SQL.auditMovements,
  SQL.auditEntries,
];

/** Checks that are one query each. Every row of the result is a fault. */
const QUERIES: readonly {
  name: string;
  statement: Statement;
  /** Used instead of `statement` on PostgreSQL. */
  postgres?: Statement;
  fine: string;
  say: (row: Row) => string;
}[] = [
  {
    name: 'balances',
    statement: SQL.auditBalances,
    fine: 'every balance is the sum of its entries',
    say: (row) => `${row.account} differs by ${row.available} available, ${row.locked} locked`,
  },
  {
    name: 'not negative',
    statement: SQL.auditNegative,
    fine: 'no balance is below 0',
    say: (row) => `${row.id} has ${row.available} available, ${row.locked} locked`,
  },
  {
    name: 'held locks',
    statement: SQL.auditHeld,
    fine: 'what accounts have locked is what their held locks hold',
    say: (row) => `${row.account} has ${row.difference} more locked than its held locks`,
  },
  {
    name: 'lock history',
    statement: SQL.auditLocks,
    fine: 'every lock was opened once and resolved at most once, as the journal says',
    say: (row) =>
      `lock ${row.id} is ${row.state ?? 'missing'}, its journal has ${row.opened ?? 0} openings and ${row.resolved ?? 0} resolutions`,
  },
  {
    name: 'lent',
    statement: SQL.auditLent,
    fine: 'the lent part of each lock equals what its child locks hold or were charged',
    say: (row) =>
      row.misfit === 0n
        ? `lock ${row.id} has lent ${row.lent} more than its child locks say`
        : `lock ${row.id} has lent or charged more than it may`,
  },
  {
    name: 'locks under locks',
    statement: SQL.auditChildren,
    fine: 'every child lock drew on its parent once, and gave the rest back',
    say: (row) => `lock ${row.id} differs from its parent or from its journal rows (lend, return)`,
  },
  {
    name: 'transfers',
    statement: SQL.auditTransfers,
    fine: 'every transfer is in the journal once, with the same amounts',
    say: (row) => `transfer ${row.id} and the journal differ`,
  },
  {
    name: 'refunds',
    statement: SQL.auditRefunds,
    fine: 'no call was refunded more than it was charged, or to another account than paid it',
    say: (row) => `${row.id} of ${row.amount} does not fit its call`,
  },
  {
    name: 'budgets',
    statement: SQL.auditBudgets,
    postgres: SQL.pgAuditBudgets,
    fine: 'what budgets have spent and locked is what their locks say',
    say: (row) => `budget ${row.id} differs by ${row.spent} spent, ${row.locked} locked`,
  },
  {
    name: 'leases of budgets',
    statement: SQL.auditLeases,
    fine: 'the room that gateways have leased of budgets is that of their stripes',
    say: (row) => `budget ${row.id} has ${row.difference} more leased than its stripes`,
  },
];

/**
 * Recomputes the books from the journal and compares sums, balances, locks, charges, prices, budgets and the hash
 * chains. It reads one snapshot page by page, so it can run beside working gateways.
 */
export function audit(database: Database, options: AuditOptions = {}): Promise<AuditReport> {
  const { also } = options;
  return database.snapshot(
    null,
    async (query, program) => {
      const checks: AuditCheck[] = [];
      // Loaded here, because a start of a gateway makes no audit.
      const { auditArchives, readNewest } = await import('../archive/audit-archives.ts');
      const newest = await readNewest(query);
      const chains = await auditChains(query, newest.chains);
      const log = program && ((await program(LOG_PROGRAM, null)) as AuditedLog);
      if (!log) {
        const { unreadable } = chains;
        const numbers = unreadable.map(({ n }) => n).join(',');
        await query(SQL.pgAuditInsertMovements, [texts(unreadable, ({ chain }) => chain), `{${numbers}}`]);
      }
      const { total, legs } = (await query(SQL.auditSum))[0]!;
      checks.push({
        name: 'zero sum',
        ok: total === 0n,
        detail: total === 0n ? `${legs} entries sum to 0` : `the entries sum to ${total}`,
      });
      for (const { name, statement, postgres, fine, say } of QUERIES) {
        const rows = await query(database.engine === 'postgres' ? (postgres ?? statement) : statement);
        checks.push(judge(name, rows.map(say), fine));
      }
      const batches = chains.batches + (log?.records ?? 0);
      const chainCount = log ? 1 : chains.chains;
      checks.push(
        judge(
          'hash chains',
          [...chains.problems, ...(log?.problems ?? [])],
          `${batches} ${batches === 1 ? 'batch' : 'batches'} of ${chainCount} ${chainCount === 1 ? 'chain' : 'chains'}: each follows the one before`,
        ),
      );
      const prices = await auditPrices(query);
      checks.push(judge('prices', prices.problems, `${prices.rates.size} price versions match their ids`));
      const charges = await auditCharges(query, prices.rates);
      checks.push(judge('charges', charges.problems, charges.fine));
      checks.push(await overdue(query, options));
      const archives = await auditArchives(query, newest, options.archives ?? []);
      if (archives !== null) checks.push(judge('archives', archives.problems, archives.fine));
      if (also) checks.push(await also.check(query, program));
      return {
        ok: checks.every(({ ok }) => ok),
        checks,
        totals: await totals(query, chains.operations + (log?.operations ?? 0), newest.archives),
      };
    },
    [...TEMPORARY, ...(also?.temporary ?? [])],
  );
}

const SHOWN = 5;

function judge(name: string, problems: readonly string[], fine: string): AuditCheck {
  if (problems.length === 0) return { name, ok: true, detail: fine };
  const more = problems.length > SHOWN ? `; and more` : '';
  return { name, ok: false, detail: problems.slice(0, SHOWN).join('; ') + more };
}

async function overdue(query: Query, { now = Date.now, overdueMs = OVERDUE_MS }: AuditOptions): Promise<AuditCheck> {
  if (overdueMs === null) return { name: 'overdue locks', ok: true, detail: 'not judged' };
  const rows = await query(SQL.auditOverdue, [now() - overdueMs]);
  return judge(
    'overdue locks',
    rows.map((row) => `lock ${row.id} should have expired at ${new Date(Number(row.expires_at)).toISOString()}`),
    'no held lock is past its time',
  );
}

async function totals(query: Query, operations: number, archives: Newest['archives']): Promise<AuditTotals> {
  const money = (await query(SQL.auditTotals))[0]!;
  const locks = (await query(SQL.auditLockTotals))[0]!;
  const archived = (name: 'settled' | 'released' | 'expired' | 'operations') =>
    archives.reduce((sum, archive) => sum + archive[name], 0);
  return {
    accounts: Number(money.accounts),
    escrowAvailable: money.escrow_available as bigint,
    escrowLocked: money.escrow_locked as bigint,
    earnings: money.earnings as bigint,
    fees: money.fees as bigint,
    suspense: money.suspense as bigint,
    treasury: money.treasury as bigint,
    locksHeld: Number(locks.held),
    locksSettled: Number(locks.settled) + archived('settled'),
    locksReleased: Number(locks.released) + archived('released'),
    locksExpired: Number(locks.expired) + archived('expired'),
    charged: archives.reduce((sum, { charged }) => sum + charged, locks.charged as bigint),
    shortfall: archives.reduce((sum, { shortfall }) => sum + shortfall, locks.shortfall as bigint),
    operations: operations + archived('operations'),
  };
}

/** Batches read at a time. A batch has at most 1,024 operations, so this bounds the memory. */
const PAGE = 50;
const PROBLEMS_MAX = 20;
const NOTHING_ARCHIVED = { n: 0, hash: GENESIS };
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
 * Recomputes every hash of every chain, from the end of the newest archive on. Each broken batch is reported once:
 * after a break, the check goes on from the recorded hash.
 */
async function auditChains(query: Query, archived: Newest['chains']): Promise<AuditedChains> {
  const problems: string[] = [];
  const unreadable: { chain: string; n: bigint }[] = [];
  let chains = 0;
  let batches = 0;
  let operations = 0;
  let chain = '';
  let n = 0;
  let prev = GENESIS;
  /** The last batch of the chain that was looked at. */
  let passed = 0;
  for (;;) {
    const page = await query(SQL.auditBatches, [chain, passed, PAGE]);
    if (page.length === 0) break;
    for (const part of byChain(page)) {
      const name = part[0]!.chain as string;
      const hasRows = part.some((batch) => batch.movements === null);
      const stored = hasRows ? await query(SQL.auditRows, [name, part[0]!.n!, part.at(-1)!.n!]) : [];
      const rows = Map.groupBy(stored, (row) => row.batch);
      for (const batch of part) {
        if (name !== chain) {
          chain = name;
          ({ n, hash: prev } = archived.get(chain) ?? NOTHING_ARCHIVED);
          chains += 1;
        }
        // Archived groups are not dropped all at once, and the last one of a chain stays on PostgreSQL.
        if (Number(batch.n) <= (archived.get(chain)?.n ?? 0)) {
          if (Number(batch.n) === n && batch.hash !== prev && problems.length < PROBLEMS_MAX)
            problems.push(`chain ${chain}, batch ${batch.n}: it is not the last one of the archive`);
          passed = Number(batch.n);
          continue;
        }
        const problem = checkBatch({ batch, journal: rows.get(batch.n) ?? [], n: n + 1, prev });
        if (problem && problems.length < PROBLEMS_MAX) problems.push(`chain ${chain}, batch ${batch.n}: ${problem}`);
        if (problem && batch.movements !== null && !areMovements(batch.movements as string))
          unreadable.push({ chain, n: batch.n as bigint });
        n = Number(batch.n);
        passed = n;
        prev = batch.hash as string;
        batches += 1;
        operations += Number(batch.count);
      }
    }
  }
  for (const row of await query(SQL.auditOrphans))
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

const CHARGES_PAGE = 2_000;

/** Reads every price version. An id is a digest of its content, so a changed price does not match its id. */
async function auditPrices(query: Query): Promise<{ problems: string[]; rates: ReadonlyMap<string, Rates> }> {
  const problems: string[] = [];
  const rates = new Map<string, Rates>();
  for await (const row of pages(query, SQL.auditPrices)) {
    const id = row.id as string;
    const parsed = readRates(row.rates as string);
    if (parsed) rates.set(id, parsed);
    if (!parsed || priceId(row.provider as string, row.service as string, parsed) !== id) {
      if (problems.length < PROBLEMS_MAX) problems.push(`price ${id} does not match its id`);
    }
  }
  return { problems, rates };
}

async function auditCharges(
  query: Query,
  prices: ReadonlyMap<string, Rates>,
): Promise<{ problems: string[]; fine: string }> {
  const problems: string[] = [];
  let exact = 0;
  let below = 0;
  let wholeEstimates = 0;
  const say = (problem: string) => {
    if (problems.length < PROBLEMS_MAX) problems.push(problem);
  };
  for await (const row of pages(query, SQL.auditSettled)) {
    const checked = checkCharge(row, prices);
    if (!checked.ok) checked.problems.forEach(say);
    else if (checked.kind === 'exact') exact += 1;
    else if (checked.kind === 'below') below += 1;
    else wholeEstimates += 1;
  }
  const earlier =
    wholeEstimates === 0 ? '' : `, ${wholeEstimates} the estimate (past their cap, by an earlier version)`;
  return {
    problems,
    fine: `${exact} settlements cost what price and usage say, ${below} less (cut to their estimate, or to what came)${earlier}`,
  };
}

async function* pages(query: Query, statement: typeof SQL.auditPrices): AsyncGenerator<Row, void, undefined> {
  for (let after = ''; ;) {
    const rows = await query(statement, [after, CHARGES_PAGE]);
    yield* rows;
    if (rows.length < CHARGES_PAGE) return;
    after = rows.at(-1)!.id as string;
  }
}

function readRates(text: string): Rates | null {
  try {
    return ratesFromText(text);
  } catch {
    return null;
  }
}
