import { Command } from 'commander';
import type { ServeFlags } from './production-gateway.ts';

const HELP = `
Production: no demo, no play money; development keys are refused. Logs are JSON lines on standard output.
SIGTERM stops it gracefully: readiness turns to 503, running calls finish, a second signal stops it at once.

Secrets belong in the environment; the file names them:
  [[models]]
  name = "openai/gpt-4o-mini"
  display_name = "OpenAI: GPT-4o mini"
  provider_name = "OpenAI"
  [models.pricing]
  prompt = 0.15        # USD per 1M tokens
  completion = 0.60
  [models.params]
  model = "gpt-4o-mini"
  api_base = "https://api.openai.com/v1"
  api_key = "std::env::OPENAI_API_KEY"

Examples:
  tollgate serve --config tollgate.toml --validate
  DATABASE_URL=postgres://… tollgate serve --config tollgate.toml
  DATABASE_URL=postgres://… REDIS_URL=redis://… tollgate serve --config tollgate.toml --workers auto
  tollgate account create acme && tollgate account credit acme 25    (in another terminal)`;

export function serveCommand(): Command {
  return new Command('serve')
    .summary('run it: a production gateway')
    .usage('--config <file> [options]')
    .description('Run a production gateway.')
    .option('-c, --config <file>', 'TOML file of this gateway (TOLLGATE_CONFIG, or CONFIG_FILE_PATH)')
    .option('--validate', 'check the file, say everything that is wrong with it, and exit')
    .option(
      '--probe',
      'with --validate: also call each service of the file, which its provider may charge; of the models that [[providers]] lists the first of each provider, because the others have the same address and key',
    )
    .option('--host <address>', 'address to listen on (HOST)')
    .option('--port <number>', 'port to listen on (PORT)')
    .option('--workers <count>', 'run so many processes on the one port, or "auto" for one per core; needs PostgreSQL')
    .option('--data <directory>', 'where the embedded database and the identity are kept (TOLLGATE_DATA)')
    .addHelpText('after', HELP)
    .action(async (flags: ServeFlags) => {
      // Loaded here, because other commands do not need it.
      const { runProduction } = await import('./production-gateway.ts');
      await runProduction(flags);
    });
}
