import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import type { Manifest } from '#store/backup';
import { databaseName } from '#store/database-name';
import type { Config } from '#config';
import type { OpenDatabase } from '#store';
import { withTargetOptions } from './admin-client.ts';
import { CliError, say, facts, painter } from '../terminal.ts';
import type { TargetFlags } from './target.ts';
import { VERSION } from '../../../foundation/version.ts';

/** Exit code if the books of a restored database differ. */
const DIFFERENCES_EXIT = 1;

interface BackupFlags extends TargetFlags {
  readonly json?: boolean;
  readonly media?: boolean;
  readonly filesOnly?: boolean;
}

interface RestoreFlags extends BackupFlags {
  readonly check?: boolean;
}

const BACKUP_HELP = `
The gateway may run meanwhile, under load. The backup is one tar file that only you can read. It has:
  tollgate.db, ledger/   the tables and the log of the embedded database, as of one moment; or
  database.dump          the database of PostgreSQL, as of one moment, made by pg_dump, which must be installed
  identity.json          the key that receipts are signed with and secrets are encrypted with, if the data directory has it
  admin-key              the admin key, if it was made by the gateway
  blobs/                 files of images and videos of this data directory, unless --no-media leaves them out
  manifest.json          what is in it, of which moment, with the digest of each file

It does not have: the configuration file, keys of treasuries and upstreams, TOLLGATE_IDENTITY_SEED: keep them apart from
it. It also lacks files of images and videos that are in a bucket or at other gateways of the database: it says how many
and where. Make one with --files-only at each of the others.

Examples:
  tollgate backup /backup/tollgate-$(date +%F).tar
  DATABASE_URL=postgres://… tollgate backup /backup/tollgate-$(date +%F).tar
  DATABASE_URL=postgres://… tollgate backup /backup/gateway-2-$(date +%F).tar --files-only`;

const RESTORE_HELP = `
Reads the whole backup first: one that was written in part or changed since is refused, and nothing is written. The data
directory must be empty, or with PostgreSQL the database (pg_restore must be installed). Then the books are audited.
With PostgreSQL, files that the data directory has already stay as they are.

After an older backup was restored, what happened since is missing. If you take payments over chains, run
tollgate audit --chain before people withdraw.

Exit codes: 0 restored, and the books are right · 1 not restored, or the books differ

Examples:
  tollgate restore /backup/tollgate-2026-11-21.tar --check
  tollgate restore /backup/tollgate-2026-11-21.tar --data /var/lib/tollgate
  DATABASE_URL=postgres://…/empty tollgate restore /backup/tollgate-2026-11-21.tar
  DATABASE_URL=postgres://… tollgate restore /backup/gateway-2-2026-11-21.tar --files-only`;

export function backupCommand(): Command {
  const command = new Command('backup')
    .summary('write the books into one file, while the gateway runs')
    .usage('<file> [options]')
    .argument('<file>', 'name of the new file')
    .description('Back up the database and the identity.')
    .option('--no-media', 'leave out the files of images and videos')
    .option('--files-only', 'PostgreSQL: only the identity and the files of this gateway, without the database')
    .option('--json', 'print the list of its files as JSON');
  return withTargetOptions(command).addHelpText('after', BACKUP_HELP).action(backup);
}

export function restoreCommand(): Command {
  const command = new Command('restore')
    .summary('restore a backup into an empty place, and audit it')
    .usage('<file> [options]')
    .argument('<file>', 'a file that tollgate backup has made')
    .description('Restore a backup.')
    .option('--check', 'only look whether the backup is whole')
    .option(
      '--files-only',
      'PostgreSQL: put back the identity and the files of a gateway, and leave the database alone',
    )
    .option('--json', 'print JSON');
  return withTargetOptions(command).addHelpText('after', RESTORE_HELP).action(restore);
}

async function backup(file: string, flags: BackupFlags): Promise<void> {
  // Loaded here, because the help of the command does not need it.
  const [{ findTarget }, { findGateway }, { makeBackup }] = await Promise.all([
    import('./target.ts'),
    import('../discovery.ts'),
    import('#store/backup'),
  ]);
  const { config, words } = await findTarget(flags, { local: true });
  const { gateway } = findGateway(config.dataDir);
  const own = databaseName(config.databaseUrl);
  if (gateway !== null && config.databaseUrl === null && gateway.database !== own)
    throw new CliError(
      `The gateway of ${config.dataDir} keeps its books in ${gateway.database}.\nName that database with its password in DATABASE_URL.`,
    );
  say(words);
  const manifest = await makeBackup(
    {
      ...placeOf(config),
      identity: await identityIdOf(config),
      media: flags.media !== false,
      filesOnly: flags.filesOnly === true,
    },
    file,
  );
  tell(flags, { file, ...manifest }, () => {
    const hasIdentity = manifest.files.some(({ name }) => name === 'identity.json');
    const notInIt =
      manifest.identity === null
        ? `not in it, and not known here: keep TOLLGATE_IDENTITY_SEED, or identity.json of the gateway’s data directory`
        : 'not in it: keep TOLLGATE_IDENTITY_SEED';
    const lines = [
      ...momentOf(manifest),
      ['files', amountOf(manifest.files.length, sizeOf(manifest.files))],
      ['identity', hasIdentity ? 'in it: whoever has the file can sign as this gateway' : notInIt],
      ...mediaOf(manifest),
      ['not in it', `${flags.filesOnly ? 'the database, ' : ''}the configuration, keys of treasuries and upstreams`],
    ] as const;
    return `${painter()('green', '✓')} ${file}\n${facts(lines, painter(), '  ')}`;
  });
}

async function restore(file: string, { check = false, filesOnly = false, ...flags }: RestoreFlags): Promise<void> {
  const [{ findTarget }, { checkBackup, restoreBackup }] = await Promise.all([
    import('./target.ts'),
    import('#store/backup'),
  ]);
  const paint = painter();
  if (check) {
    const manifest = await checkBackup(file, VERSION);
    return tell(
      flags,
      { file, ...manifest },
      () =>
        `${paint('green', '✓')} ${file} is whole\n${facts([...momentOf(manifest), ...mediaOf(manifest)], paint, '  ')}`,
    );
  }
  const { running, config, words } = await findTarget(flags, { create: true, local: true });
  if (running)
    throw new CliError(`The gateway at ${running.base} runs on it. A backup is restored into an empty place.`);
  if (!filesOnly) say(words);
  const identity = config.identitySeed === null ? null : await identityIdOf(config);
  const { secondIdentitySeed: second } = config;
  const secondIdentity = second === null ? null : await identityIdOf({ ...config, identitySeed: second });
  const place = { ...placeOf(config), identity, secondIdentity, filesOnly };
  const { manifest, dataDir, finish } = await restoreBackup(place, file);
  if (filesOnly)
    return tell(flags, { file, ...manifest }, () => {
      const lines = facts([...momentOf(manifest), ...mediaOf(manifest)], paint, '  ');
      return `${paint('green', '✓')} The files of ${file} are in ${dataDir}\n${lines}\nThe database is as it was.`;
    });
  const report = await auditRestored({ ...config, dataDir });
  await finish();
  tell(flags, { file, ok: report.ok, checks: report.checks, ...manifest }, () =>
    [
      `${paint('green', '✓')} Restored from ${file}`,
      facts([...momentOf(manifest), ...mediaOf(manifest)], paint, '  '),
      ...report.checks.map(
        ({ name, ok, detail }) => `${ok ? paint('green', '✓') : paint('red', '✗')} ${name}: ${detail}`,
      ),
      report.ok ? 'The books are right.' : 'The books differ.',
      'Operations after that moment are not in it.',
      ...(manifest.engine === 'postgres'
        ? ['Other data directories of gateways of this database need `tollgate restored --accept`.']
        : []),
    ].join('\n'),
  );
  if (!report.ok) process.exitCode = DIFFERENCES_EXIT;
}

/** Audits the restored books, and stores in the data directory how far the journal goes. */
async function auditRestored(config: Config) {
  const [{ openDatabase }, { EMBEDDED_CHAIN, journalHead }, { auditWithJournal, openJournalFile }] = await Promise.all([
    import('#store'),
    import('#billing/compose'),
    import('#app/journal'),
  ]);
  const database = await openDatabase({ url: config.databaseUrl, dataDir: config.dataDir });
  try {
    const file = openJournalFile(config);
    if (database.engine === 'sqlite') await file.write(await journalHead(database, EMBEDDED_CHAIN), Date.now());
    else await file.remove();
    return await auditWithJournal(config, database, { overdueMs: null });
  } finally {
    await database.close();
  }
}

const placeOf = ({ databaseUrl, dataDir }: Config) => ({ databaseUrl, dataDir, version: VERSION, env: process.env });

/** The id of the gateway's identity. Null if it is not known here, because this must not create one. */
async function identityIdOf({ identitySeed, dataDir }: Config): Promise<string | null> {
  if (identitySeed === null && !existsSync(join(dataDir, 'identity.json'))) return null;
  const { createIdentity } = await import('#auth/identity');
  return createIdentity(identitySeed === null ? { dataDir } : { seed: identitySeed }).receiptKey.id;
}

function momentOf({ at, engine, record, tollgate }: Manifest): [string, string][] {
  return [
    ['moment', `${at}${record === null ? '' : `, record ${record.n} of the ledger`}`],
    ['database', engine === 'embedded' ? 'embedded' : 'PostgreSQL'],
    ['made by', `tollgate ${tollgate}`],
  ];
}

/** Facts, as text, about the files of images and videos that the backup has, and about those that it lacks. */
function mediaOf({ files, mediaMissing }: Manifest): [string, string][] {
  const media = files.filter(({ name }) => /^blobs\/..\//.test(name));
  // Backups of older versions do not say what they lack.
  const missing = mediaMissing ?? [];
  if (media.length === 0 && !mediaMissing) return [['media', 'files of images and videos are not in it']];
  return [
    ['media', `files of images and videos: ${amountOf(media.length, sizeOf(media))}`],
    ...missing.map(({ where, holder, url, files: count, bytes }): [string, string] => {
      const place =
        where === 'bucket'
          ? 'in a bucket'
          : where === 'here'
            ? 'expired or damaged'
            : `at the gateway ${url ?? `whose folder is ${holder}`}`;
      return ['not in it', `files of images and videos: ${amountOf(count, bytes)}, ${place}`];
    }),
  ];
}

const sizeOf = (files: Manifest['files']): number => files.reduce((sum, { bytes }) => sum + bytes, 0);
const amountOf = (files: number, bytes: number): string => `${files}, ${(bytes / 1e6).toFixed(1)} MB`;

function tell(flags: BackupFlags, result: object, show: () => string): void {
  process.stdout.write(`${flags.json ? JSON.stringify(result, null, 2) : show()}\n`);
}

interface RestoredFlags extends TargetFlags {
  readonly accept?: boolean;
  readonly adoptIdentity?: boolean;
}

const HELP = `
A gateway remembers in journal-head.json of its data directory how far its journal went, and does not start on a database
that has less: calls and credits that it acknowledged would be missing. After a backup was restored on purpose, this
command says what is missing, and with --accept lets the gateway go on without it. Stop the gateway first.

If the folder ledger is lost, the tables of the embedded database still have all balances and calls that they had followed.
--accept then begins a new log with them, audits it and says what differs. What proved the old books is lost with the log.

A database also belongs to one identity (server.identity_seed, or identity.json), and gateways with another one do not
start on it. With --adopt-identity it belongs to the identity that is given now. What the former one has encrypted stays
unreadable: secrets of webhooks and providers, kept responses, files of batches. Its receipts can be checked no more.

Exit codes: 0 nothing is missing, or it was accepted · 1 something is missing

Examples:
  tollgate restored --data /var/lib/tollgate
  tollgate restored --data /var/lib/tollgate --accept
  DATABASE_URL=postgres://… tollgate restored --accept
  DATABASE_URL=postgres://… TOLLGATE_IDENTITY_SEED=… tollgate restored --adopt-identity`;

/**
 * `tollgate restored`: compares a database with what the data directory remembers, and accepts a loss with `--accept`.
 */
export function restoredCommand(): Command {
  const command = new Command('restored')
    .summary('after a backup was restored: compare, and go on with what is there')
    .description('Compare a restored database.')
    .option('--accept', 'go on without what is missing')
    .option('--adopt-identity', 'let the database belong to the identity that is given now');
  return withTargetOptions(command).addHelpText('after', HELP).action(restored);
}

async function restored({ accept = false, adoptIdentity: isAdopting = false, ...flags }: RestoredFlags): Promise<void> {
  // Loaded here, because the help of the command does not need it.
  const { findTarget } = await import('./target.ts');
  const { running, config, words } = await findTarget(flags, { create: true, local: true });
  if (running) throw new CliError(`The gateway at ${running.base} runs on it. Stop it first.`);
  say(words);
  const paint = painter();
  // Loaded here, because other commands do not need it.
  const [
    { DatabaseError, openDatabase },
    { EMBEDDED_CHAIN, journalHead },
    { JournalLost, lossOf, openJournalFile, refuseMissingDatabase },
  ] = await Promise.all([import('#store'), import('#billing/compose'), import('#app/journal')]);
  const explain = (error: unknown): string => {
    if (error instanceof JournalLost) return error.message.split('\n')[0]!;
    throw error;
  };
  const file = openJournalFile(config);
  const known = (): string => {
    try {
      const remembered = file.read();
      return remembered ? `journal-head.json knows of record ${remembered.n}, written at ${remembered.at}.` : '';
    } catch (error) {
      return explain(error);
    }
  };
  const missing = async (): Promise<string | null> => {
    try {
      const remembered = file.read();
      return remembered && (await lossOf(database!, remembered));
    } catch (error) {
      return explain(error);
    }
  };

  let loss: string | null = null;
  try {
    refuseMissingDatabase(config);
  } catch (error) {
    loss = explain(error);
  }
  const place = { url: config.databaseUrl, dataDir: config.dataDir };
  let isLogGone = false;
  let database: OpenDatabase | null = null;
  try {
    if (loss === null || accept) database = await openDatabase(place);
  } catch (error) {
    if (!(error instanceof DatabaseError && error.code === 'log_gone')) throw error;
    isLogGone = true;
    loss = `${error.message}\n${known()} Records of the log after the last one that the tables follow are missing.`;
    if (accept) database = await openDatabase({ ...place, withoutLog: true });
  }
  try {
    if (database !== null) await compareIdentity(config, database, isAdopting);
    loss ??= await missing();
    if (loss === null) {
      process.stdout.write(`${paint('green', '✓')} The database has all that journal-head.json remembers of it.\n`);
      return;
    }
    if (!accept) throw new CliError(`${loss}\nTo go on without it: the same command with --accept`);
    file.removeUnreadable();
    // The embedded database has one chain. On PostgreSQL the next gateway begins its own chain.
    if (database!.engine === 'sqlite') await file.write(await journalHead(database!, EMBEDDED_CHAIN), Date.now());
    else await file.remove();
    const problems = isLogGone ? await differences(database!) : [];
    for (const each of problems) process.stdout.write(`${paint('red', '✗')} ${each}\n`);
    process.stdout.write(`${loss}\n${paint('green', '✓')} Accepted: the gateway goes on with the database as it is.\n`);
    if (problems.length > 0) process.exitCode = DIFFERENCES_EXIT;
  } finally {
    await database?.close();
  }
}

/** Throws CliError if the database belongs to another identity than that of this machine, unless it is adopted. */
async function compareIdentity(config: Config, database: OpenDatabase, isAdopting: boolean): Promise<void> {
  const { identitySeed, dataDir } = config;
  const isKnown = identitySeed !== null || existsSync(join(dataDir, 'identity.json'));
  if (!isKnown) {
    if (isAdopting)
      throw new CliError(`No identity is given: set TOLLGATE_IDENTITY_SEED, or put identity.json into ${dataDir}.`);
    return;
  }
  const { adoptIdentity, identityFault, identityOf, knownSeeds } = await import('#app/known-identity');
  const identity = identityOf(config, await knownSeeds(database));
  const fault = await identityFault(database, identity);
  if (fault === null) return;
  if (!isAdopting)
    throw new CliError(
      `${fault}\nUse the seed of the gateways of this database. To change it on purpose: the same command with --adopt-identity`,
    );
  await adoptIdentity(database, identity, Date.now());
  process.stdout.write(`${fault}\n${painter()('green', '✓')} Adopted: the database belongs to this identity now.\n`);
}

async function differences(database: OpenDatabase): Promise<readonly string[]> {
  const { audit } = await import('#billing/compose');
  const { checks } = await audit(database, { overdueMs: null });
  return checks.filter(({ ok }) => !ok).map(({ name, detail }) => `${name}: ${detail}`);
}
