import { Command } from 'commander';
import { accountCommand } from './admin/account.ts';
import { adminKeyCommand, adminLogCommand } from './admin/administrators.ts';
import { analyticsCommand } from './admin/analytics.ts';
import { archiveCommand } from './admin/archive.ts';
import { backupCommand, restoreCommand, restoredCommand } from './admin/backup.ts';
import { auditCommand } from './admin/audit.ts';
import { callCommand } from './admin/call.ts';
import { configCommand } from './config.ts';
import { connectCommand } from './connect.ts';
import { identityCommand } from './admin/identity.ts';
import { keyCommand } from './admin/key.ts';
import { keygenCommand, siwxCommand } from './wallet.ts';
import { modelsCommand } from './models/models.ts';
import { OWN_NAME, START } from './command-line.ts';
import { ownCommands } from './provider/own-commands.ts';
import { provideCommand } from './provider/provide.ts';
import { providerCommand } from './admin/provider.ts';
import { reconcileCommand } from './admin/reconcile.ts';
import { reloadCommand } from './admin/reload.ts';
import { runProgram } from './run-program.ts';
import { serveCommand } from './gateway/serve.ts';
import { startCommand } from './gateway/start.ts';
import { servicesCommand, statusCommand } from './admin/status.ts';
import { treasuryCommand } from './admin/treasury.ts';
import { focusCommand, statementCommand } from './admin/statement.ts';
import { callsCommand, usageCommand } from './admin/usage.ts';
import { readBuild } from '../../foundation/version.ts';

const NAME = 'tollgate';

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

export function createProgram(): Command {
  return (
    new Command(NAME)
      .description('A gateway for AI calls that are paid by use.')
      .version(readBuild(), '-V, --version', 'print the version and the commit')
      .addHelpText('after', HELP)
      // Else options after `call end` or `services test` would be those of `call` or `services`.
      .enablePositionalOptions()
      .addCommand(startCommand())
      .addCommand(connectCommand())
      .addCommand(serveCommand())
      .addCommand(configCommand())
      .addCommand(modelsCommand())
      .addCommand(reloadCommand())
      .addCommand(
        ownCommands(`${NAME} provide`).reduce((provide, own) => provide.addCommand(own), provideCommand(NAME)),
      )
      .addCommand(accountCommand())
      .addCommand(providerCommand())
      .addCommand(identityCommand())
      .addCommand(keyCommand())
      .addCommand(callCommand())
      .addCommand(callsCommand())
      .addCommand(usageCommand())
      .addCommand(statementCommand())
      .addCommand(focusCommand())
      .addCommand(statusCommand())
      .addCommand(servicesCommand())
      .addCommand(adminKeyCommand())
      .addCommand(adminLogCommand())
      .addCommand(auditCommand())
      .addCommand(reconcileCommand())
      .addCommand(treasuryCommand())
      .addCommand(analyticsCommand())
      .addCommand(archiveCommand())
      .addCommand(backupCommand())
      .addCommand(restoreCommand())
      .addCommand(restoredCommand())
      .addCommand(keygenCommand(NAME))
      .addCommand(siwxCommand(NAME))
  );
}

export const runCli = (argv: readonly string[]): Promise<number> => runProgram(createProgram(), argv);
