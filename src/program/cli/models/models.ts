import { Command } from 'commander';
import type { ModelsFlags } from './models-report.ts';

const HELP = `
Shows the models of a file: those of [[models]], and those that its [[providers]] would offer now, with the price of
each and where it comes from. Below are the models that are not offered, with the reason. Nothing is started, and no
model is called: each provider is asked for its list of models.

Without a file it shows what the named providers would offer, or all whose key is in the environment.

Exit codes:
  0   a list was printed
  1   a provider does not accept its key, or the file is wrong
  2   wrong command line

Examples:
  tollgate models --config tollgate.toml
  OPENAI_API_KEY=sk-… tollgate models
  tollgate models openai anthropic --offline
  tollgate models --config tollgate.toml --json | jq '.models[] | [.name, .pricing.prompt]'`;

export function modelsCommand(): Command {
  return new Command('models')
    .summary('what a file, or a provider named in one line, offers at which prices')
    .description('Show models with their prices, and where each price comes from.')
    .argument('[providers...]', 'providers by their names in `use`, instead of a file')
    .option('-c, --config <file>', 'TOML file of the gateway (TOLLGATE_CONFIG, or CONFIG_FILE_PATH)')
    .option('--offline', 'ask no provider: the models of the list of prices')
    .option('--json', 'print JSON')
    .addHelpText('after', HELP)
    .action(async (providers: readonly string[], flags: ModelsFlags) => {
      // Loaded here, because other commands do not need it.
      const { showModels } = await import('./models-report.ts');
      await showModels(providers, flags);
    });
}
