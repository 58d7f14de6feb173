// The entry point of the package `tollgate-provide`, which has only the files that are needed here.
import { Command } from 'commander';
import { VERSION } from '../version.ts';
import { keygenCommand } from './keygen.ts';
import { OWN_NAME } from './own-name.ts';
import { provideCommand } from './provide.ts';
import { runProgram } from './run-program.ts';
import { siwxCommand } from './siwx.ts';

const HELP = `
First steps:
  tollgate keygen --chain solana --out wallet.json          a wallet: it says who you are, and earns
  tollgate provide --config provider.toml --validate        check the file, and try each service
  tollgate provide --config provider.toml                   dial in and serve

Each command explains itself: tollgate <command> --help
"tollgate" stands for: ${OWN_NAME}`;

const program = new Command('tollgate-provide')
  .description("A provider's proxy: it sells calls of your own models, tools and agents through a gateway.")
  .version(VERSION, '-V, --version', 'print the version')
  .addHelpText('after', HELP)
  .addCommand(provideCommand())
  .addCommand(keygenCommand())
  .addCommand(siwxCommand());

process.exitCode = await runProgram(program, process.argv);
