import { Command } from 'commander';
import { START } from './command-line.ts';
import type { ConnectFlags } from './connect/run.ts';

const HELP = `
It prints what the client needs, and writes nothing without --write. With --write it changes the client's own files:
other settings in them stay, and the file as it was is kept beside it. It asks before it changes a file that holds for
all projects; --project writes into the file of the project in this folder instead. --undo takes back what it wrote.

The gateway is asked first, so that a wrong address, key or model is told at once. Without --url it is the gateway
that runs on the data directory. The key is that of --key or of TOLLGATE_API_KEY. A gateway that was found on the data
directory gets the key of --key or the one that ${START} made, and has to be on this machine.

Examples:
  tollgate connect --list
  tollgate connect claude-code                            print it
  tollgate connect claude-code --write                    write it, for all projects
  tollgate connect claude-code --project --write          write it, for the project in this folder
  tollgate connect claude-code --undo                     as it was before
  tollgate connect codex --model a2a/demo/agent        an agent in the place of a model
  tollgate connect cursor --mcp --write                   the gateway's tools
  tollgate connect opencode --url https://gateway.example --key svc-sk-…`;

export function connectCommand(): Command {
  return new Command('connect')
    .summary('use it: settings for Claude Code, Codex, opencode and other clients')
    .usage('<client> [options]')
    .argument('[client]', 'see --list')
    .description('Print or write what a client needs to use a gateway.')
    .option('-l, --list', 'print the clients')
    .option(
      '-m, --model <name>',
      'model, a2a/<agent> or mcp/<service>/<tool>; by default the model with the largest context',
    )
    .option('--mcp', 'the tools of the gateway, as an MCP server of the client')
    .option('-w, --write', "write it into the client's files")
    .option('--project', 'the files of the project in this folder, for clients that read such files')
    .option('-y, --yes', 'with --write: no question before a file is changed that holds for all projects')
    .option('--undo', 'give the values that it wrote their old values again; needs no gateway')
    .option('--url <address>', 'address of the gateway (TOLLGATE_URL)')
    .option('--key <key>', 'API key; better in TOLLGATE_API_KEY, which process lists do not show')
    .option('--data <directory>', 'data directory (TOLLGATE_DATA) to find the running gateway by')
    .addHelpText('after', HELP)
    .action(async (client: string | undefined, flags: ConnectFlags & { readonly list?: boolean }, command: Command) => {
      if (client === undefined && !flags.list)
        command.error('Name a client, such as claude-code. tollgate connect --list prints all.');
      // Loaded here, because other commands do not need it.
      const { connectClient, listClients } = await import('./connect/run.ts');
      if (client === undefined) listClients();
      else await connectClient(client, flags);
    });
}
