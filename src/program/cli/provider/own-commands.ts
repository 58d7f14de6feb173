import { Command, Option } from 'commander';
import type { OwnFlags } from './own-reports.ts';

interface OwnCommand {
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly help?: string;
  readonly options?: (command: Command) => Command;
}

const withdrawHelp = (program: string) => `
The money goes to the wallet of the provider's file and nowhere else. A provider with an API key is paid to the wallet
that it has bound to its account. Without <usd>, everything that can be withdrawn is.

Examples:
  ${program} withdraw --config provider.toml
  ${program} withdraw 25 --network eip155:8453 --config provider.toml`;

const commandsOf = (program: string): readonly OwnCommand[] => [
  {
    name: 'status',
    summary: 'are you connected, and how do your services do',
    description: 'Show the connection, the services and the earnings of this provider. Ends with 1 while it is away.',
  },
  {
    name: 'calls',
    summary: 'the newest calls of your services, and with --failed those that failed and why',
    description: 'List the calls that your services answered, the one that ended last first.',
    options: (command) =>
      command
        .option('--failed', 'those that failed: the newest 20 of each service, with the cause and the id')
        .option('--limit <calls>', 'at most so many', '50'),
  },
  {
    name: 'earnings',
    summary: 'what you earned, by day and service, and what was paid out',
    description: 'Show earnings by day and service, after the fee, and payouts, withdrawals and refunds.',
    options: (command) =>
      command
        .option('--from <date>', 'the first UTC day, such as 2026-10-01; by default 7 days ago')
        .option('--to <date>', 'the last day; by default today'),
  },
  {
    name: 'withdraw',
    summary: 'pay earnings to your wallet',
    description: 'Withdraw earnings over a chain, to the wallet of this provider.',
    help: withdrawHelp(program),
    options: (command) =>
      command
        .argument('[usd]', 'how much, such as 25 or 0.5; by default all')
        .option('--network <chain>', 'the chain as CAIP-2, if the gateway pays over several')
        .option('--reference <text>', 'a repetition with the same one withdraws once'),
  },
];

/**
 * The commands with which a provider looks at its own figures, and withdraws. They sign in with the credential of its
 * file. `program` is how their help calls what they belong to.
 */
export const ownCommands = (program: string): readonly Command[] =>
  commandsOf(program).map(({ name, summary, description, help, options = (command) => command }) => {
    const command = new Command(name).summary(summary).description(description);
    options(command)
      .option('--json', 'print JSON instead of text')
      .addOption(new Option('-c, --config <file>', 'TOML file of this provider (CONFIG_FILE_PATH, or TOLLGATE_CONFIG)'))
      .action(async () => {
        // Loaded here, because other commands do not need it.
        const { REPORTS } = await import('./own-reports.ts');
        // `provide` has --config too, and takes it for itself.
        await REPORTS[name as keyof typeof REPORTS](command.optsWithGlobals<OwnFlags>(), command.args);
      });
    return help === undefined ? command : command.addHelpText('after', help);
  });
