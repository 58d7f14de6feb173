import { Command } from 'commander';
import type { OpenDatabase } from '#store';
import { withTargetOptions } from './admin-client.ts';
import { CliError } from './cli-error.ts';
import type { TargetFlags } from './target.ts';
import { say } from './target-words.ts';
import { painter } from './terminal.ts';

/** Exit code if the books of tables without a log differ. */
const DIFFERENCES_EXIT = 1;

interface RestoredFlags extends TargetFlags {
  readonly accept?: boolean;
}

const HELP = `
A gateway remembers in journal-head.json of its data directory how far its journal went, and does not start on a database
that has less: calls and credits that it acknowledged would be missing. After a backup was restored on purpose, this
command says what is missing, and with --accept lets the gateway go on without it. Stop the gateway first.

If the folder ledger is lost, the tables of the embedded database still have all balances and calls that they had followed.
--accept then begins a new log with them, audits it and says what differs. What proved the old books is lost with the log.

Exit codes: 0 nothing is missing, or it was accepted · 1 something is missing

Examples:
  tollgate restored --data /var/lib/tollgate
  tollgate restored --data /var/lib/tollgate --accept
  DATABASE_URL=postgres://… tollgate restored --accept`;

/**
 * `tollgate restored`: compares a database with what the data directory remembers, and accepts a loss with `--accept`.
 */
export function restoredCommand(): Command {
  const command = new Command('restored')
    .summary('after a backup was restored: compare, and go on with what is there')
    .description('Compare a restored database.')
    .option('--accept', 'go on without what is missing');
  return withTargetOptions(command).addHelpText('after', HELP).action(restored);
}

async function restored({ accept = false, ...flags }: RestoredFlags): Promise<void> {
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
    { lossOf },
    { JournalLost, openJournalFile, refuseMissingDatabase },
  ] = await Promise.all([import('#store'), import('#billing'), import('#app/journal'), import('#app/journal')]);
  const told = (error: unknown): string => {
    if (error instanceof JournalLost) return error.message.split('\n')[0]!;
    throw error;
  };
  const file = openJournalFile(config);
  const known = (): string => {
    try {
      const remembered = file.read();
      return remembered ? `journal-head.json knows of record ${remembered.n}, written at ${remembered.at}.` : '';
    } catch (error) {
      return told(error);
    }
  };
  const missing = async (): Promise<string | null> => {
    try {
      const remembered = file.read();
      return remembered && (await lossOf(database!, remembered));
    } catch (error) {
      return told(error);
    }
  };

  let loss: string | null = null;
  try {
    refuseMissingDatabase(config);
  } catch (error) {
    loss = told(error);
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
    const found = isLogGone ? await differences(database!) : [];
    for (const each of found) process.stdout.write(`${paint('red', '✗')} ${each}\n`);
    process.stdout.write(`${loss}\n${paint('green', '✓')} Accepted: the gateway goes on with the database as it is.\n`);
    if (found.length > 0) process.exitCode = DIFFERENCES_EXIT;
  } finally {
    await database?.close();
  }
}

/** The checks of the audit that fail, as text. */
async function differences(database: OpenDatabase): Promise<readonly string[]> {
  const { audit } = await import('#billing');
  const { checks } = await audit(database, { overdueMs: null });
  return checks.filter(({ ok }) => !ok).map(({ name, detail }) => `${name}: ${detail}`);
}
