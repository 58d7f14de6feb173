import { type Command, CommanderError } from 'commander';
import { CliError, USAGE_EXIT, painter } from './terminal.ts';

/**
 * Runs one command line of a program. Resolves to the exit code. Every failure is printed on standard error, with
 * advice if the cause is known.
 */
export async function runProgram(program: Command, argv: readonly string[]): Promise<number> {
  process.stdout.off('error', endWithOutput).on('error', endWithOutput);
  process.stderr.off('error', goOn).on('error', goOn);
  prepare(program, program.name());
  if (argv.length <= 2) {
    program.outputHelp();
    return 0;
  }
  try {
    await program.parseAsync(argv);
    return Number(process.exitCode ?? 0);
  } catch (error) {
    return report(program, error);
  }
}

/**
 * Ends the program: quietly when its reader has seen enough (`| head`), with a message when a disk is full. A result
 * that the command has found already keeps its exit code.
 */
function endWithOutput(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit();
  process.stderr.write(`Standard output cannot be written: ${error.message}. What was printed is not complete.\n`);
  process.exit(1);
}

/** Without a listener, a reader of standard error that has gone would end the command before it has done its work. */
function goOn(): void {}

/** Makes usage errors exceptions. They end with a line about help, and have their own exit code. */
function prepare(command: Command, path: string): void {
  command.exitOverride().showHelpAfterError(`\nHelp: ${path} --help`).helpOption('-h, --help', 'explain this command');
  // A command with options of its own also runs without one of its commands.
  const isGroup = command.options.every(({ long }) => long === '--version');
  if (command.commands.length > 0) command.helpCommand('help [command]', 'explain a command');
  if (command.commands.length > 0 && isGroup) command.usage('<command> [options]');
  for (const child of command.commands) prepare(child, `${path} ${child.name()}`);
}

/**
 * Errors of lower modules whose message is written for people. They are matched by name, so that no module has to be
 * loaded.
 */
const EXPLAINED: ReadonlySet<string> = new Set([
  'ArchiveError',
  'BackupError',
  'ConfigError',
  'DatabaseError',
  'GatewayError',
  'IdentityError',
  'JournalLost',
  'MoneyError',
  'PaymentsSetupError',
  'WalletError',
]);

function report(program: Command, error: unknown): number {
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
    `${paint('red', `${program.name()} failed with an unexpected error:`)}\n${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
  );
  return 1;
}
