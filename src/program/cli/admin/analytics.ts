import { Command } from 'commander';
import type { Config } from '#config';
import { remote, withAdminOptions, type AdminFlags } from './admin-client.ts';
import { say, painter } from '../terminal.ts';

const HELP = `
Figures of calls by day are sums of what the journal tells. The audit compares both. If they differ, or a backup of other
tables was restored, rebuild the sums. Calls go on meanwhile; the figures are incomplete until all of the journal is read.

Examples:
  tollgate analytics rebuild
  DATABASE_URL=postgres://… tollgate analytics rebuild`;

export function analyticsCommand(): Command {
  return new Command('analytics')
    .summary('figures of calls: make them anew')
    .description('Figures of calls by day.')
    .addHelpText('after', HELP)
    .addCommand(
      withAdminOptions(
        new Command('rebuild')
          .summary('make the figures anew from the journal')
          .description('Make the figures anew from the journal.'),
      ).action(rebuild),
    );
}

/** The answer to a rebuild. `as_of`: when the newest counted call was resolved; null while the rebuild runs. */
interface Rebuilt {
  readonly as_of: string | null;
  readonly running: boolean;
}

async function rebuild(flags: AdminFlags): Promise<void> {
  // Loaded here, because the help of the command does not need it.
  const { findTarget } = await import('./target.ts');
  const { running, config, words } = await findTarget(flags, { placeOnly: true });
  say(words);
  const done = running
    ? ((await remote(running).request('POST', '/analytics/rebuild')).data as Rebuilt)
    : await rebuildDirectly(config);
  if (flags.json) return void process.stdout.write(`${JSON.stringify(done, null, 2)}\n`);
  const paint = painter();
  process.stdout.write(
    done.running
      ? 'The figures are being made anew. `as_of` of /api/v1/analytics/public says how far they are.\n'
      : `${paint('green', '✓')} The figures are made anew${done.as_of === null ? ': there is no call yet' : `, up to ${done.as_of}`}.\n`,
  );
}

async function rebuildDirectly(config: Config): Promise<Rebuilt> {
  const [{ openDatabase }, { createRollUp, findState }, { refuseMissingDatabase }] = await Promise.all([
    import('#store'),
    import('#analytics'),
    import('#app/journal'),
  ]);
  refuseMissingDatabase(config);
  const database = await openDatabase({ url: config.databaseUrl, dataDir: config.dataDir });
  try {
    let failure: Error | null = null;
    const rollUp = createRollUp({
      database,
      now: Date.now,
      everyMs: null,
      onError: (error) => {
        failure = error instanceof Error ? error : new Error(String(error));
      },
    });
    await rollUp.rebuild();
    await rollUp.run();
    await rollUp.close();
    const failed = failure as Error | null;
    if (failed !== null) throw failed;
    const { asOf } = await findState(database.query);
    return { as_of: asOf === 0 ? null : new Date(asOf).toISOString(), running: false };
  } finally {
    await database.close();
  }
}
