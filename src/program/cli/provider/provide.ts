import { Command, Option } from 'commander';
import type { ProvideFlags } from './provider-process.ts';

const help = (program: string) => `
The proxy dials out to the router and keeps the connection; nothing has to be opened to the internet. It comes as a
wallet (${program} keygen makes one) or with an API key. Upstream keys, addresses and commands never leave this machine.

  [router]
  url = "https://gateway.example"
  [router.siwx]
  chain_id = "solana:mainnet"
  keypair_file = "provider.json"

  [[models]]
  name = "mine/llama"
  display_name = "Mine: Llama"
  provider_name = "Mine"
  [models.pricing]
  prompt = 0.15        # USD per 1M tokens
  completion = 0.60
  [models.params]
  model = "llama3"
  api_base = "http://127.0.0.1:11434/v1"
  api_key = "std::env::UPSTREAM_KEY"

Also [[tools]] (MCP servers, by endpoint or by command), [[agents]], [[images]] and [[videos]].

It dials again whenever the connection is lost. SIGTERM and Ctrl-C stop it: no new calls, those that run may finish
within 30 s; a second signal stops it at once.

SIGHUP, and --reload in another terminal, have a running proxy read its file again: new prices and services are
registered over the connection that is there, and running calls go on. A file with problems changes nothing. The
router and the wallet need a restart.

Exit codes:
  0   stopped as asked; with --validate: all is well; with --reload: the file is in force
  1   the file is wrong, a probe failed, the router refused the services, or there is no proxy to reload
  2   the command line is wrong, or the router does not let this provider in: it is not on its list, or the API key
      is wrong (refused three times, and never accepted)
  3   another proxy of the same provider took over

Examples:
  ${program} provide --config provider.toml --validate
  ${program} provide --config provider.toml --reload
  CONFIG_FILE_PATH=provider.toml ${program} provide`;

export function provideCommand(program: string): Command {
  return new Command('provide')
    .summary('sell calls: connect your own models, tools and agents to a gateway')
    .usage('[command] --config <file> [options]')
    .description("Run a provider's proxy.")
    .option('-c, --config <file>', 'TOML file of this provider (CONFIG_FILE_PATH, or TOLLGATE_CONFIG)')
    .option('--validate', 'check the file, say everything that is wrong with it, try out what it names, and exit')
    .option('--reload', 'have the proxy that runs with this file read it again, print what changed, and exit')
    .option('--no-probe', 'with --validate: the file alone, without asking the router, the upstreams and the tools')
    .addOption(
      new Option('--log-level <level>', 'how much is logged')
        .choices(['debug', 'info', 'warn', 'error', 'silent'])
        .default('info'),
    )
    .addHelpText('after', help(program))
    .action(async (flags: ProvideFlags) => {
      // Loaded here, because other commands do not need them.
      if (flags.reload) {
        const { reloadProvider } = await import('./provider-reload.ts');
        return reloadProvider(flags);
      }
      const { runProvider } = await import('./provider-process.ts');
      await runProvider(flags);
    });
}
