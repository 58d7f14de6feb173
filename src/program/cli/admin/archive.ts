import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Command } from 'commander';
import type { VerifiedArchive } from '#billing/archive';
import { administer, withAdminOptions, type AdminClient, type AdminFlags } from './admin-client.ts';
import { CliError, facts, onScreen, painter, table, type Paint, USAGE_EXIT, usd } from '../terminal.ts';

interface Registered {
  readonly name: string;
  readonly folder: string;
  readonly ends_at: string;
  readonly calls: number;
  readonly bytes: number;
  readonly dropped_at: string | null;
}

interface Result {
  readonly state: 'planned' | 'kept' | 'archived';
  readonly name: string;
  readonly path: string;
  readonly groups: number;
  readonly calls?: number;
  readonly receipts?: number;
  readonly transfers?: number;
  readonly charged_micro_usdc?: number;
  readonly accounts?: number;
  readonly open?: number;
  readonly bytes?: number;
  readonly sha256?: string;
  readonly kid?: string;
}

interface Status {
  readonly archives: readonly Registered[];
  readonly run: {
    readonly state: 'running' | 'done' | 'failed';
    readonly phase: string;
    readonly done: number;
    readonly total: number;
    readonly error: string | null;
    readonly result: Result | null;
  } | null;
}

interface ArchiveFlags extends AdminFlags {
  readonly before?: string;
  readonly to?: string;
  readonly dryRun?: boolean;
  readonly keep?: boolean;
}

const HELP = `
Moves all calls before a day (UTC) out of the database into one signed file: the journal, each call with its receipt, the
prices, and the balances of all accounts at both ends. The file is written, read back and proved, and only then are the
rows dropped, in small steps beside the calls. Calls that are still open stay, and so do all transfers. If it breaks off,
run it again. The last 35 days cannot be archived.

Keep the files for as long as you keep books: the audit goes on from the balances at the end of the newest one, and only
the files have the calls before it.

Examples:
  tollgate archive --before 2026-06-01 --dry-run
  tollgate archive --before 2026-06-01 --to /backup/archives
  DATABASE_URL=postgres://… tollgate archive --before 2026-06-01
  tollgate archive list
  tollgate archive verify /backup/archives/*.jsonl.zst
  tollgate archive show tollgate-archive-0001-before-2026-06-01.jsonl.zst gen-7GXCaCPA7p1e000000`;

const VERIFY_HELP = `
Needs no gateway and no database. Proves that nothing in the file was changed since its gateway signed it: each call
against the journal and its price, each receipt, and the balances of all accounts, which sum to 0. Several files must
follow one another, and are given in their order.

Whose signature it is, only you can know: compare the key id with the one in /.well-known/jwks.json of the gateway, or
name it with --kid.

Exit codes: 0 proved · 1 something is wrong · 2 a wrong command line`;

export function archiveCommand(): Command {
  const command = new Command('archive')
    .summary('move old calls into a signed file, and verify such files')
    .usage('--before <day> [options]')
    .description('Archive the calls before a day.')
    .option('--before <day>', 'the first day that stays, such as 2026-06-01 (UTC)')
    .option('--to <folder>', 'folder of the file; default: archives in the data directory')
    .option('--dry-run', 'only say what would be archived')
    .option('--keep', 'write and verify the file, and drop nothing');
  return withAdminOptions(command)
    .addHelpText('after', HELP)
    .action(archive)
    .addCommand(
      withAdminOptions(
        new Command('list').summary('the archives that the database knows').description('List the archives.'),
      ).action((flags: AdminFlags, { parent }: Command) => list({ ...parent!.opts<AdminFlags>(), ...flags })),
    )
    .addCommand(
      new Command('verify')
        .summary('prove a file, without a database')
        .description('Prove archives.')
        .argument('<file...>', 'archives, the oldest first')
        .option('--kid <id>', 'key id that must have signed them')
        .option('--json', 'print JSON')
        .addHelpText('after', VERIFY_HELP)
        .action((files: readonly string[], flags: VerifyFlags, { parent }: Command) =>
          verify(files, { ...parent!.opts<VerifyFlags>(), ...flags }),
        ),
    )
    .addCommand(
      new Command('show')
        .summary('one call of a file, with its receipt')
        .description('Show a call of an archive as JSON.')
        .argument('<file>', 'an archive')
        .argument('<id>', 'id of the call')
        .action(show),
    );
}

async function archive({ before, to, dryRun = false, keep = false, ...flags }: ArchiveFlags): Promise<void> {
  if (before === undefined)
    throw new CliError('Name the first day that stays: --before 2026-06-01', { exitCode: USAGE_EXIT });
  if (!/^\d{4}-\d\d-\d\d$/.test(before) || Number.isNaN(Date.parse(before)))
    throw new CliError(`--before is a day such as 2026-06-01, not ${before}`, { exitCode: USAGE_EXIT });
  const folder = to === undefined ? {} : { folder: resolve(to) };
  await administer(flags, {
    async run(admin) {
      await admin.request('POST', '/archives', { before, ...folder, dry_run: dryRun, keep });
      return followRun(admin);
    },
    show: (result) => describe(result, before, painter()),
  });
}

const LOOK_MS = 200;

async function followRun(admin: AdminClient): Promise<Result> {
  const progress = createProgress();
  for (;;) {
    const { run } = (await admin.request('GET', '/archives')).data as Status;
    if (run === null) throw new CliError('The gateway was restarted meanwhile. Run the command again.');
    progress.show(run);
    if (run.state === 'running') await pause(LOOK_MS);
    else {
      progress.end();
      if (run.result !== null) return run.result;
      const error = run.error ?? 'unknown';
      throw new CliError(`Not archived: ${error}.\nNo row was dropped that is not in a verified file.`);
    }
  }
}

const PHASES: Readonly<Record<string, string>> = {
  finding: 'looking',
  writing: 'writing the file',
  verifying: 'reading it back and proving it',
  registering: 'registering it',
  dropping: 'dropping its rows',
};

/** The progress of a run on standard error: one line that changes on a terminal, else a line for each phase. */
function createProgress() {
  const stream = process.stderr;
  const paint = painter(stream);
  let phase = '';
  return {
    show(run: NonNullable<Status['run']>) {
      const words = PHASES[run.phase] ?? run.phase;
      const percent = run.total > 1 ? ` ${Math.floor((run.done / run.total) * 100)} %` : '';
      if (stream.isTTY) stream.write(`\r\u001B[K${paint('dim', `  ${words}${percent}`)}`);
      else if (run.phase !== phase) stream.write(`${paint('dim', `  ${words}`)}\n`);
      ({ phase } = run);
    },
    end() {
      if (stream.isTTY) stream.write('\r\u001B[K');
    },
  };
}

function describe(result: Result, before: string, paint: Paint): string {
  if (result.state === 'planned')
    return `${result.groups} groups of the journal would be archived in ${result.path}. Nothing was changed.`;
  const lines = [
    ['file', `${result.path} (${sizeOf(result.bytes!)})`],
    [
      'calls',
      `${result.calls!}, ${result.receipts!} of them with a receipt, ${usd(result.charged_micro_usdc!)} USD charged`,
    ],
    ['transfers', `${result.transfers!}, which stay in the database, too`],
    ['accounts', `${result.accounts!}, with their balances at both ends`],
    ...(result.open! > 0 ? [['open', `${result.open!} calls had not ended by then, and stay`] as const] : []),
    ['sha256', result.sha256!],
    ['signed by', result.kid!],
  ] as const;
  const done =
    result.state === 'kept'
      ? 'The file is written and proved. Nothing was dropped (--keep).'
      : `All calls before ${before} are archived, and their rows are dropped.`;
  return `${paint('green', '✓')} ${done}\n${facts(lines, paint, '  ')}`;
}

const sizeOf = (bytes: number): string =>
  bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} KB` : `${(bytes / 1e6).toFixed(1)} MB`;

function list(flags: AdminFlags): Promise<void> {
  return administer(flags, {
    run: async (admin) => ((await admin.request('GET', '/archives')).data as Status).archives,
    show(archives) {
      if (archives.length === 0) return 'There is no archive. All calls are in the database.';
      const rows = archives.map((one) => [
        one.ends_at.slice(0, 10),
        String(one.calls),
        sizeOf(one.bytes),
        one.dropped_at === null ? 'being dropped' : 'dropped',
        one.name,
        one.folder,
      ]);
      return table(['before', 'calls', 'size', 'rows', 'file', 'written to'], rows, painter(), ['calls', 'size']);
    },
  });
}

interface VerifyFlags {
  readonly kid?: string;
  readonly json?: boolean;
}

async function verify(files: readonly string[], { kid, json = false }: VerifyFlags): Promise<void> {
  const { verifyArchive } = await import('#billing/archive');
  const paint = painter();
  let before: VerifiedArchive | null = null;
  for (const file of files) {
    const result: VerifiedArchive = await verifyArchive(file).catch((error: unknown) => {
      throw new CliError(
        `${onScreen(file)} is not right: ${error instanceof Error ? onScreen(error.message) : String(error)}`,
        { cause: error },
      );
    });
    if (kid !== undefined && result.kid !== kid)
      throw new CliError(`${onScreen(file)} was signed with the key ${result.kid}, not with ${kid}`);
    if (before !== null && (result.kid !== before.kid || result.header.previous?.content !== before.content))
      throw new CliError(`${onScreen(file)} does not follow the archive before it`);
    before = result;
    process.stdout.write(
      json ? `${JSON.stringify(summaryOf(file, result))}\n` : `${describeProof(file, result, paint)}\n`,
    );
  }
}

const day = (at: number): string | null => (at === 0 ? null : new Date(at).toISOString().slice(0, 10));

const summaryOf = (
  file: string,
  { header, sums, receipts, transfers, operations, groups, closing, bytes, sha256, content, kid }: VerifiedArchive,
) => ({
  file,
  number: header.number,
  from: day(header.begins_at),
  before: day(header.ends_at),
  previous: header.previous,
  calls: sums.calls,
  receipts,
  transfers,
  operations,
  groups,
  accounts: closing.length,
  charged_micro_usdc: Number(sums.charged),
  bytes,
  sha256,
  content,
  kid,
});

function describeProof(file: string, archive: VerifiedArchive, paint: Paint): string {
  const { header, sums, receipts, operations, groups, closing, bytes, kid } = archive;
  const from = day(header.begins_at);
  const lines = [
    ['days', `${from === null ? 'from the beginning' : `from ${from}`} to before ${day(header.ends_at)!}`],
    [
      'calls',
      `${sums.calls}, each as the journal says; ${usd(Number(sums.charged))} USD charged, as price and usage say`,
    ],
    ['receipts', `${receipts}, each signed with this key`],
    ['journal', `${operations} movements in ${groups} groups, each with its hash`],
    ['balances', `${closing.length} accounts, as the movements say; they sum to 0`],
    ['size', sizeOf(bytes)],
    ['signed by', kid],
  ] as const;
  return `${paint('green', '✓')} ${onScreen(file)}\n${facts(lines, paint, '  ')}`;
}

/** Proves the archive and prints one of its calls. */
async function show(file: string, id: string): Promise<void> {
  const { findInArchive } = await import('#billing/archive');
  const call = await findInArchive(file, id);
  if (call === null) throw new CliError(`${onScreen(file)} has no call ${onScreen(id)}`);
  process.stdout.write(`${JSON.stringify(call, null, 2)}\n`);
}
