// The entry point of the package `tollgate-provide`, which has only the files that are needed here.
import { Command } from 'commander';
import { readBuild } from '../../foundation/version.ts';
import { keygenCommand, siwxCommand } from './wallet.ts';
import { OWN_NAME } from './command-line.ts';
import { ownCommands } from './provider/own-commands.ts';
import { provideCommand } from './provider/provide.ts';
import { runProgram } from './run-program.ts';

/** The name `tollgate` on the registry belongs to somebody else, so no hint of this package may say it. */
const NAME = 'tollgate-provide';

const HELP = `
First steps:
  ${NAME} keygen --chain solana --out wallet.json     a wallet: it says who you are, and earns
  ${NAME} provide --config provider.toml --validate   check the file, and try each service
  ${NAME} provide --config provider.toml              dial in and serve
  ${NAME} status --config provider.toml               how it goes; also: calls, earnings, withdraw

Each command explains itself: ${NAME} <command> --help${OWN_NAME === NAME ? '' : `\n"${NAME}" stands for: ${OWN_NAME}`}`;

const program = new Command(NAME)
  .description("A provider's proxy: it sells calls of your own models, tools and agents through a gateway.")
  .version(readBuild(), '-V, --version', 'print the version and the commit')
  .addHelpText('after', HELP)
  .addCommand(provideCommand(NAME))
  .addCommand(keygenCommand(NAME))
  .addCommand(siwxCommand(NAME));

for (const command of ownCommands(NAME)) program.addCommand(command);

process.exitCode = await runProgram(program, process.argv);
