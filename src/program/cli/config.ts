import { Command } from 'commander';
import type { ExplainedOption } from '#config';
import { configPath } from './command-line.ts';
import { painter, table } from './terminal.ts';

interface ShowFlags {
  readonly config?: string;
  readonly host?: string;
  readonly port?: string;
  readonly data?: string;
  readonly changed?: boolean;
  readonly json?: boolean;
}

const HELP = `
A flag wins over a variable of the environment, a variable over the file, and the file over a default. Secrets are never
shown. The same flags and variables as for tollgate serve show what a gateway would start with.

Examples:
  tollgate config show --config tollgate.toml
  tollgate config show --config tollgate.toml --changed
  tollgate config show --json | jq '.options[] | select(.source == "environment")'`;

export function configCommand(): Command {
  return new Command('config')
    .summary('show every option, and where its value comes from')
    .description('The configuration of a gateway.')
    .addHelpText('after', HELP)
    .addCommand(
      new Command('show')
        .summary('every option, its value, and where it comes from')
        .description('Show every option, its value, and where it comes from.')
        .option('-c, --config <file>', 'TOML file of the gateway (TOLLGATE_CONFIG, or CONFIG_FILE_PATH)')
        .option('--host <address>', 'as for tollgate serve')
        .option('--port <number>', 'as for tollgate serve')
        .option('--data <directory>', 'as for tollgate serve')
        .option('--changed', 'only what is not a default')
        .option('--json', 'print JSON')
        .addHelpText('after', HELP)
        .action(show),
    );
}

async function show(flags: ShowFlags): Promise<void> {
  // Loaded here, because the help of the command does not need it.
  const { explainConfig } = await import('#config');
  const explained = explainConfig({
    file: configPath(flags.config, 'serve', process.env),
    env: process.env,
    mode: 'production',
    overrides: { 'server.host': flags.host, 'server.port': flags.port, 'server.data_dir': flags.data },
  });
  const options = explained.options.filter(({ source }) => !flags.changed || source !== 'default');
  if (flags.json) return void process.stdout.write(`${JSON.stringify({ ...explained, options }, null, 2)}\n`);
  const paint = painter();
  process.stdout.write(
    options.length === 0
      ? 'Every option has its default value.\n'
      : `${table(['OPTION', 'VALUE', 'FROM'], options.map(row), paint)}\n`,
  );
}

const row = ({ key, value, hidden, from }: ExplainedOption): string[] => [
  key,
  hidden ? '(secret)' : value === null ? '-' : textOf(value),
  from ?? 'default',
];

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value, exactly));

/** Bigints become strings, because amounts of money must stay exact. */
const exactly = (_key: string, value: unknown): unknown => (typeof value === 'bigint' ? String(value) : value);
