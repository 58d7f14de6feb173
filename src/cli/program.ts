import { Command, CommanderError } from 'commander';
import { accountCommand } from './account.ts';
import { analyticsCommand } from './analytics.ts';
import { auditCommand } from './audit.ts';
import { CliError, USAGE_EXIT } from './cli-error.ts';
import { connectCommand } from './connect.ts';
import { keyCommand } from './key.ts';
import { keygenCommand } from './keygen.ts';
import { OWN_NAME, START } from './own-name.ts';
import { provideCommand } from './provide.ts';
import { restoredCommand } from './restored.ts';
import { serveCommand } from './serve.ts';
import { siwxCommand } from './siwx.ts';
import { startCommand } from './start.ts';
import { painter } from './terminal.ts';
import { treasuryCommand } from './treasury.ts';
import { VERSION } from '../version.ts';

const HELP = `
First steps:
  ${START.padEnd(46)} a gateway to try: a model, a tool and an agent to call, and play money
  tollgate connect claude-code                   settings for a client: Claude Code, Codex, opencode, SDKs, …
  tollgate serve --config tollgate.toml          a gateway for real
  tollgate account create acme                   then credit it, and make it a key:
  tollgate account credit acme 25
  tollgate key create acme
  tollgate audit                                 prove that the books are right
  tollgate keygen --chain solana --out key.json  a wallet to sign in with, instead of a key
  tollgate provide --config provider.toml        sell calls of your own models, tools and agents through a gateway

Each command explains itself: tollgate <command> --help${OWN_NAME === 'tollgate' ? '' : `\n"tollgate" stands for: ${OWN_NAME}`}`;

function createProgram(): Command {
  const program = new Command('tollgate')
    .description('A gateway for AI calls that are paid by use.')
    .version(VERSION, '-V, --version', 'print the version')
    .addHelpText('after', HELP)
    .addCommand(startCommand())
    .addCommand(connectCommand())
    .addCommand(serveCommand())
    .addCommand(provideCommand())
    .addCommand(accountCommand())
    .addCommand(keyCommand())
    .addCommand(auditCommand())
    .addCommand(treasuryCommand())
    .addCommand(analyticsCommand())
    .addCommand(restoredCommand())
    .addCommand(keygenCommand())
    .addCommand(siwxCommand());
  prepare(program, 'tollgate');
  return program;
}

/** Usage errors are thrown, end with how to get help, and leave a code that no outcome of a command has. */
function prepare(command: Command, path: string): void {
  command.exitOverride().showHelpAfterError(`\nHelp: ${path} --help`).helpOption('-h, --help', 'explain this command');
  if (command.commands.length > 0)
    command.usage('<command> [options]').helpCommand('help [command]', 'explain a command');
  for (const child of command.commands) prepare(child, `${path} ${child.name()}`);
}

/**
 * Runs one command line; resolves with the exit code. Whatever fails is told on standard error, in words that say
 * what to do.
 */
export async function runCli(argv: readonly string[]): Promise<number> {
  const program = createProgram();
  if (argv.length <= 2) {
    program.outputHelp();
    return 0;
  }
  try {
    await program.parseAsync(argv);
    return Number(process.exitCode ?? 0);
  } catch (error) {
    return report(error);
  }
}

/** Errors of the rooms below whose message is written for people. By name, so that no room is loaded for it. */
const EXPLAINED: ReadonlySet<string> = new Set([
  'ConfigError',
  'DatabaseError',
  'GatewayError',
  'IdentityError',
  'JournalLost',
  'MoneyError',
  'PaymentsSetupError',
  'WalletError',
]);

function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE_EXIT;
  const paint = painter(process.stderr);
  if (error instanceof CliError) {
    process.stderr.write(`${paint('red', error.message)}\n`);
    return error.exitCode;
  }
  if (error instanceof Error && EXPLAINED.has(error.name)) {
    process.stderr.write(`${paint('red', error.message)}\n`);
    return 1;
  }
  process.stderr.write(
    `${paint('red', 'tollgate failed in a way that it does not know:')}\n${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
  );
  return 1;
}
