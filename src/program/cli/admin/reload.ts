import { Command } from 'commander';
import type { ReloadReport } from '#app';
import { remote, withAdminOptions, type AdminFlags } from './admin-client.ts';
import { CliError, say, painter } from '../terminal.ts';

const HELP = `
Taken at once, while calls go on: blocks of services with their prices, rate limits of keys, further chains, server.log_level.
Calls that run end as they began, at their price. Everything else needs a restart, and is named. A file that has problems
changes nothing. Keys that the file names as std::env::NAME are those of the gateway's own environment.

SIGHUP and POST /admin/v1/reload do the same. With --workers all of them reload. A
worker that does not answer is named: reload again then, as the others have the new file.

Exit codes: 0 reloaded · 1 not reloaded, or not by all workers

Examples:
  tollgate serve --config tollgate.toml --validate && tollgate reload
  tollgate reload --url https://gate.example.com`;

export function reloadCommand(): Command {
  return withAdminOptions(
    new Command('reload')
      .summary('take the changed services, prices and limits, without a restart')
      .description('Have a running gateway read its configuration file anew.'),
  )
    .addHelpText('after', HELP)
    .action(reload);
}

async function reload(flags: AdminFlags): Promise<void> {
  // Loaded here, because the help of the command does not need it.
  const { findTarget } = await import('./target.ts');
  const { running, words } = await findTarget(flags, { placeOnly: true });
  if (running === null) throw new CliError('No gateway runs on this data directory: there is nothing to reload.');
  say(words);
  const report = (await remote(running).request('POST', '/reload')).data as ReloadReport;
  process.stdout.write(`${flags.json ? JSON.stringify(report, null, 2) : show(report)}\n`);
}

function show({ services, prices, chains, options, restart }: ReloadReport): string {
  const paint = painter();
  // An older gateway tells no prices.
  const priceChangeOf = (name: string) => prices?.find((change) => change.startsWith(`${name}: `));
  const lines = [
    ...services.added.map((name) => `${paint('green', '+')} ${name}`),
    ...services.changed.map((name) => `${paint('yellow', '~')} ${priceChangeOf(name) ?? name}`),
    ...services.removed.map((name) => `${paint('red', '-')} ${name}`),
    ...chains.map((network) => `${paint('green', '+')} chain ${network}`),
    ...options.map((name) => `${paint('yellow', '~')} ${name}`),
  ];
  if (lines.length === 0) lines.push('Nothing that can be reloaded has changed.');
  if (restart.length > 0) lines.push(`${paint('yellow', '!')} after a restart: ${restart.join(', ')}`);
  return lines.join('\n');
}
