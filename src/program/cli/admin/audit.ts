import { resolve } from 'node:path';
import { Command } from 'commander';
import type { OpenDatabase } from '#store';
import type { AuditReport } from '#billing/compose';
import type { Config } from '#config';
import type { AuditedChain, ChainAudit } from '#payments/on-chains';
import { remote, withAdminOptions, type AdminFlags } from './admin-client.ts';
import { CliError, USAGE_EXIT, say, facts, painter, type Paint, table, usd } from '../terminal.ts';

/** A report in the form of the admin API. Its amounts are numbers of micro-USD. */
interface AuditView extends Pick<AuditReport, 'ok' | 'checks'> {
  readonly totals: { readonly [Name in keyof AuditReport['totals']]: number };
  /** Absent if the comparison was not requested. */
  readonly chains?: ChainAuditView;
}

interface AuditFlags extends AdminFlags {
  readonly chain?: boolean;
  readonly archives?: string;
}

const DIFFERENCES_EXIT = 1;

const HELP = `
Recomputes every balance from the journal, follows its hash chains, and prices every charge again.
Works beside a running gateway and on the database of a stopped one.

With --chain also compares the books with what the treasuries hold on their chains. Of a stopped gateway that needs its
file (--config), books what came in meanwhile, and pays nothing out.

Exit codes: 0 the books are right · 1 something differs, or withdrawals are stopped · 2 the audit could not be done, or not of every chain

Examples:
  tollgate audit
  tollgate audit --chain --config tollgate.toml
  tollgate audit --archives /backup/archives
  tollgate audit --json | jq .totals
  DATABASE_URL=postgres://… tollgate audit`;

export function auditCommand(): Command {
  return withAdminOptions(
    new Command('audit').summary('prove that the books are right').description('Recompute the books and compare.'),
  )
    .option('--chain', 'also compare with what the treasuries hold')
    .option('--archives <folder>', 'look for files of archives in this folder, too')
    .addHelpText('after', HELP)
    .action(async (flags: AuditFlags) => {
      const report = await runAudit(flags).catch((error: unknown) => {
        throw new CliError(`The audit could not be done: ${error instanceof Error ? error.message : String(error)}`, {
          exitCode: USAGE_EXIT,
          cause: error,
        });
      });
      process.stdout.write(`${flags.json ? JSON.stringify(report, null, 2) : showReport(report, painter())}\n`);
      if (!report.ok || report.chains?.ok === false) process.exitCode = DIFFERENCES_EXIT;
      else if (report.chains?.ok === null) process.exitCode = USAGE_EXIT;
    });
}

async function runAudit(flags: AuditFlags): Promise<AuditView> {
  // Loaded here, because the help of the command does not need it.
  const { findTarget } = await import('./target.ts');
  const { running, config, words } = await findTarget(flags, { placeOnly: !flags.chain });
  say(words);
  const archives = flags.archives === undefined ? [] : [resolve(flags.archives)];
  if (running) {
    const query = new URLSearchParams({
      ...(flags.chain ? { chain: 'true' } : {}),
      ...(archives[0] === undefined ? {} : { archives: archives[0] }),
    });
    return (await remote(running).request('GET', `/audit${query.size === 0 ? '' : `?${query}`}`)).data as AuditView;
  }
  // Only the database is opened, not a gateway, because an audit must change nothing. Locks of a killed gateway stay
  // held until the next start.
  const [{ openDatabase }, { auditWithJournal }, { refuseMissingDatabase }] = await Promise.all([
    import('#store'),
    import('#app/journal'),
    import('#app/journal'),
  ]);
  refuseMissingDatabase(config);
  const database = await openDatabase({ url: config.databaseUrl, dataDir: config.dataDir });
  try {
    const chains = flags.chain ? await compareChains(config, database) : undefined;
    const { ok, checks, totals } = await auditWithJournal(config, database, { overdueMs: null, archives });
    return {
      ok,
      checks,
      totals: Object.fromEntries(
        Object.entries(totals).map(([name, value]) => [name, Number(value)]),
      ) as AuditView['totals'],
      ...(chains ? { chains } : {}),
    };
  } finally {
    await database.close();
  }
}

/** Compares the treasuries. This runs before the audit of the books, because it may book money that came in. */
async function compareChains(config: Config, database: OpenDatabase): Promise<ChainAuditView> {
  const [{ openBooks }, { auditFunds }, { createLedger }, { listBooks }] = await Promise.all([
    import('#app'),
    import('#payments/on-chains'),
    import('#billing/compose'),
    import('#chains'),
  ]);
  const ledger = await createLedger({ database });
  try {
    const books = await openBooks({ config, database, ledger, now: Date.now });
    try {
      return chainAuditView(await auditFunds(books, ledger, () => listBooks(database)));
    } finally {
      await books?.chains.close();
    }
  } finally {
    await ledger.close();
  }
}

function showReport({ ok, checks, totals, chains }: AuditView, paint: Paint): string {
  const width = Math.max(...checks.map(({ name }) => name.length));
  const lines = checks.map(
    (check) =>
      `${check.ok ? paint('green', '✓') : paint('red', '✗')} ${check.name.padEnd(width)}  ${check.ok ? paint('dim', check.detail) : check.detail}`,
  );
  const figures = facts(
    [
      ['escrow', `${usd(totals.escrowAvailable)} USD available, ${usd(totals.escrowLocked)} USD locked`],
      ['earnings', `${usd(totals.earnings)} USD`],
      ['fees', `${usd(totals.fees)} USD`],
      ['accounts', `${totals.accounts} in the ledger, ${totals.operations} operations`],
      ['charged', `${usd(totals.charged)} USD for ${totals.locksSettled} calls`],
      ['locks', `${totals.locksHeld} held, ${totals.locksReleased} released, ${totals.locksExpired} expired`],
      ...(totals.shortfall > 0 ? [['shortfall', `${usd(totals.shortfall)} USD`] as const] : []),
    ],
    paint,
    '  ',
  );
  const treasuries = chains === undefined ? '' : `\n\n${showChains(chains, paint)}`;
  return `${lines.join('\n')}\n\n${figures}\n\n${ok ? paint(['bold', 'green'], 'The books are right.') : paint(['bold', 'red'], 'The books differ.')}${treasuries}`;
}

/** Amounts in the form of JSON: numbers of micro-USD. */
type InNumbers<T> = {
  readonly [K in keyof T]: T[K] extends bigint | null ? (null extends T[K] ? number | null : number) : T[K];
};

interface ChainAuditView extends InNumbers<Omit<ChainAudit, 'chains' | 'ok'>> {
  readonly ok: boolean | null;
  readonly chains: readonly (InNumbers<Omit<AuditedChain, 'ok' | 'open'>> & Pick<AuditedChain, 'ok' | 'open'>)[];
}

const HEADINGS = ['chain', 'owed', 'held', 'booked', 'difference', 'unfinal', 'coming', 'going', 'compared'] as const;
const AMOUNTS = ['owed', 'held', 'booked', 'difference', 'unfinal', 'coming', 'going'] as const;

/** Turns a report that was made here into the form that the admin API sends. */
export const chainAuditView = (audit: ChainAudit): ChainAuditView =>
  JSON.parse(
    JSON.stringify(audit, (_name, value: unknown) => (typeof value === 'bigint' ? Number(value) : value)),
  ) as ChainAuditView;

export function showChains({ ok, chains, ...totals }: ChainAuditView, paint: Paint): string {
  if (chains.length === 0)
    return 'No chain has a treasury in this configuration: there is nothing to compare. Name its file with --config.';
  const rows = chains.map((chain) => [
    chain.network,
    usd(chain.owed),
    chain.held === null ? '?' : usd(chain.held),
    chain.booked === null ? '?' : usd(chain.booked),
    chain.difference === null ? '?' : chain.difference > 0 ? `+${usd(chain.difference)}` : usd(chain.difference),
    String(chain.open.unfinal),
    String(chain.open.deposits),
    String(chain.open.withdrawals),
    chain.comparedAt === null ? 'never' : new Date(chain.comparedAt).toISOString().replace(/\.\d+Z$/, 'Z'),
  ]);
  const notes = chains.flatMap(({ network, halted, error, ok }) => [
    ...(halted === null ? [] : [`${paint('red', '✗')} ${network}: withdrawals are stopped: ${halted}`]),
    ...(error === null ? [] : [`${paint('yellow', '!')} ${network}: could not be compared: ${error}`]),
    ...(halted === null && ok === false ? [`${paint('red', '✗')} ${network}: the treasury and the books differ`] : []),
  ]);
  const { suspense, fees, losses, transit, operator } = totals;
  const figures = facts(
    [
      ['suspense', `${usd(suspense)} USD came in and do not belong to an account yet`],
      ['fees', `${usd(fees)} USD`],
      ...(losses > 0
        ? [['losses', `${usd(losses)} USD were taken back by a chain after they were spent: to be made good`] as const]
        : []),
      ...(transit > 0
        ? [['moving', `${usd(transit)} USD are on their way from a treasury to another one`] as const]
        : []),
      ...(operator > 0
        ? [
            [
              'by hand',
              `${usd(operator)} USD were credited by the operator, and are held outside of any chain`,
            ] as const,
          ]
        : []),
    ],
    paint,
    '  ',
  );
  const verdict =
    ok === true
      ? paint(['bold', 'green'], 'The treasuries hold what the books say.')
      : ok === false
        ? paint(['bold', 'red'], 'The treasuries and the books differ.')
        : paint(['bold', 'yellow'], 'Not every treasury could be compared.');
  return [
    table(HEADINGS, rows, paint, AMOUNTS),
    ...(notes.length > 0 ? ['', ...notes] : []),
    '',
    figures,
    '',
    verdict,
  ].join('\n');
}
