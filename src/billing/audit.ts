import { loadStatement, type Database, type Query, type Row, type RunProgram, type Statement } from '#store';
import { auditChains } from './audit-chains.ts';
import type { AuditedLog } from './audit-log-program.ts';
import { auditCharges, auditPrices } from './audit-charges.ts';
import { texts } from './ledger-postgres-write.ts';
import type { MicroUsd } from './money.ts';

export interface AuditCheck {
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
  /** A check of another module, made in the same snapshot. */
  readonly also?: AuditedBeside;
}

/** A check of tables that are derived from the ledger's tables. */
interface AuditedBeside {
  /** Creates the temporary tables that the check reads. */
  readonly temporary: readonly Statement[];
  readonly check: (query: Query, program: RunProgram | null) => Promise<AuditCheck>;
}

const OVERDUE_MS = 120_000;
const LOG_PROGRAM = new URL('./audit-log-program.ts', import.meta.url).href;

const load = (name: string) => loadStatement(import.meta.url, `./sql/${name}.sql`);
/** Creates the table and the views of all movements, which the other statements read. */
const TEMPORARY = [load('audit-movements-table'), load('audit-movements'), load('audit-entries')];
const INSERT_MOVEMENTS = load('pg-audit-insert-movements');
const SUM = load('audit-sum');
const TOTALS = load('audit-totals');
const LOCK_TOTALS = load('audit-lock-totals');
const OVERDUE = load('audit-overdue');

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
    statement: load('audit-balances'),
    fine: 'every balance is the sum of its entries',
    say: (row) => `${row.account} differs by ${row.available} available, ${row.locked} locked`,
  },
  {
    name: 'not negative',
    statement: load('audit-negative'),
    fine: 'no balance is below 0',
    say: (row) => `${row.id} has ${row.available} available, ${row.locked} locked`,
  },
  {
    name: 'held locks',
    statement: load('audit-held'),
    fine: 'what accounts have locked is what their held locks hold',
    say: (row) => `${row.account} has ${row.difference} more locked than its held locks`,
  },
  {
    name: 'lock history',
    statement: load('audit-locks'),
    fine: 'every lock was opened once and resolved at most once, as the journal says',
    say: (row) =>
      `lock ${row.id} is ${row.state ?? 'missing'}, its journal has ${row.opened ?? 0} openings and ${row.resolved ?? 0} resolutions`,
  },
  {
    name: 'lent',
    statement: load('audit-lent'),
    fine: 'the lent part of each lock equals what its child locks hold or were charged',
    say: (row) =>
      row.misfit === 0n
        ? `lock ${row.id} has lent ${row.lent} more than its child locks say`
        : `lock ${row.id} has lent or charged more than it may`,
  },
  {
    name: 'locks under locks',
    statement: load('audit-children'),
    fine: 'every child lock drew on its parent once, and gave the rest back',
    say: (row) => `lock ${row.id} differs from its parent or from its journal rows (lend, return)`,
  },
  {
    name: 'transfers',
    statement: load('audit-transfers'),
    fine: 'every transfer is in the journal once, with the same amounts',
    say: (row) => `transfer ${row.id} and the journal differ`,
  },
  {
    name: 'budgets',
    statement: load('audit-budgets'),
    postgres: load('pg-audit-budgets'),
    fine: 'what budgets have spent and locked is what their locks say',
    say: (row) => `budget ${row.id} differs by ${row.spent} spent, ${row.locked} locked`,
  },
];

/**
 * Recomputes the books from the journal and compares sums, balances, locks, charges, prices, budgets and the hash
 * chains. It reads one snapshot page by page, so it can run beside working gateways.
 */
export function audit(database: Database, options: AuditOptions = {}): Promise<AuditReport> {
  const { also } = options;
  return database.snapshot(
    async (query, program) => {
      const checks: AuditCheck[] = [];
      const chains = await auditChains(query);
      const log = program && ((await program(LOG_PROGRAM, null)) as AuditedLog);
      if (!log) {
        const { unreadable } = chains;
        const numbers = unreadable.map(({ n }) => n).join(',');
        await query(INSERT_MOVEMENTS, [texts(unreadable, ({ chain }) => chain), `{${numbers}}`]);
      }
      const { total, legs } = (await query(SUM))[0]!;
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
      const of = log ? 1 : chains.chains;
      checks.push(
        judge(
          'hash chains',
          [...chains.problems, ...(log?.problems ?? [])],
          `${batches} ${batches === 1 ? 'batch' : 'batches'} of ${of} ${of === 1 ? 'chain' : 'chains'}: each follows the one before`,
        ),
      );
      const prices = await auditPrices(query);
      checks.push(judge('prices', prices.problems, `${prices.rates.size} price versions match their ids`));
      const charges = await auditCharges(query, prices.rates);
      checks.push(judge('charges', charges.problems, charges.fine));
      checks.push(await overdue(query, options));
      if (also) checks.push(await also.check(query, program));
      return {
        ok: checks.every(({ ok }) => ok),
        checks,
        totals: await totals(query, chains.operations + (log?.operations ?? 0)),
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
  const rows = await query(OVERDUE, [now() - overdueMs]);
  return judge(
    'overdue locks',
    rows.map((row) => `lock ${row.id} should have expired at ${new Date(Number(row.expires_at)).toISOString()}`),
    'no held lock is past its time',
  );
}

async function totals(query: Query, operations: number): Promise<AuditTotals> {
  const money = (await query(TOTALS))[0]!;
  const locks = (await query(LOCK_TOTALS))[0]!;
  return {
    accounts: Number(money.accounts),
    escrowAvailable: money.escrow_available as bigint,
    escrowLocked: money.escrow_locked as bigint,
    earnings: money.earnings as bigint,
    fees: money.fees as bigint,
    suspense: money.suspense as bigint,
    treasury: money.treasury as bigint,
    locksHeld: Number(locks.held),
    locksSettled: Number(locks.settled),
    locksReleased: Number(locks.released),
    locksExpired: Number(locks.expired),
    charged: locks.charged as bigint,
    shortfall: locks.shortfall as bigint,
    operations,
  };
}
