import { Command, Option } from 'commander';
import { START, START_WITH } from '../command-line.ts';
import type { StartFlags } from './development-gateway.ts';

const HELP = `
Starts a gateway to try things with: a demo provider with models, tools, an agent, images and videos, an account
with 10 USD of play money and a key for it. It prints the key and calls to paste, and writes both to <data>/dev.json for programs.

Examples:
  ${START.padEnd(42)} on 127.0.0.1:8402, data in .tollgate
  ${`PORT=9000 ${START}`.padEnd(42)} on another port
  ${`${START_WITH} --config tollgate.toml`.padEnd(42)} with the services of a file beside the demo's
  ${`${START_WITH} --with-ollama`.padEnd(42)} with the models of the Ollama on this machine
  ${`${START_WITH} --with openai anthropic`.padEnd(42)} with the models of these, at their list prices

For anything that others use: tollgate serve --help`;

export function startCommand(): Command {
  return new Command('start')
    .summary('try it: a gateway with demo models, tools and an agent, play money and a key')
    .usage('[options]')
    .description('Start a development gateway.')
    .option('-c, --config <file>', 'TOML file whose services are added to the demo')
    .option('--host <address>', 'address to listen on (HOST)')
    .option('--port <number>', 'port to listen on (PORT)')
    .option('--data <directory>', 'where data is kept (TOLLGATE_DATA)')
    .addOption(new Option('--with-ollama', 'route to the Ollama on this machine as well, without asking'))
    .addOption(new Option('--with-openai', 'offer the models of OpenAI with OPENAI_API_KEY as well, without asking'))
    .option('--with <providers...>', 'the same for other providers whose key is set: anthropic, google, mistral, …')
    .addHelpText('after', HELP)
    .action(async (flags: StartFlags) => {
      // Loaded here, because other commands do not need it.
      const { runDevelopment } = await import('./development-gateway.ts');
      await runDevelopment(flags);
    });
}
