import { Command } from 'commander';
import { formatUsd, METERS } from '#billing';
import { ConfigError, loadConfig, type Config, type ServiceConfig } from '#gateway';
import { loadAdminKey } from './admin-key.ts';
import { runGateway } from './gateway-process.ts';
import { painter, type Paint } from './terminal.ts';

interface ServeFlags {
  readonly config?: string;
  readonly host?: string;
  readonly port?: string;
  readonly data?: string;
  readonly validate?: boolean;
}

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
  tollgate account create acme && tollgate account credit acme 25    (in another terminal)`;

/** `tollgate serve`: the production gateway. */
export function serveCommand(): Command {
  return new Command('serve')
    .summary('run it: a production gateway')
    .usage('--config <file> [options]')
    .description('Run a production gateway.')
    .option('-c, --config <file>', 'TOML file of this gateway (TOLLGATE_CONFIG)')
    .option('--validate', 'check the file, say everything that is wrong with it, and exit')
    .option('--host <address>', 'address to listen on (HOST)')
    .option('--port <number>', 'port to listen on (PORT)')
    .option('--data <directory>', 'where the embedded database and the identity are kept (TOLLGATE_DATA)')
    .addHelpText('after', HELP)
    .action(serve);
}

async function serve(flags: ServeFlags): Promise<void> {
  const file = flags.config ?? (process.env['TOLLGATE_CONFIG'] || null);
  const load = () =>
    loadConfig({
      file,
      env: process.env,
      mode: 'production',
      overrides: { 'server.host': flags.host, 'server.port': flags.port, 'server.data_dir': flags.data },
    });
  if (flags.validate) return validate(load, file);

  const config = load();
  const adminKey = config.adminKey ?? loadAdminKey(config.dataDir);
  await runGateway(
    { ...config, adminKey },
    {
      ready: (app, baseUrl) => app.logger.info({ address: baseUrl, models: config.services.length, data: config.dataDir }, 'listening'),
      stopping: (app) => app.logger.info('stopping: running calls may finish'),
    },
  );
}

function validate(load: () => Config, file: string | null): void {
  const paint = painter();
  try {
    process.stdout.write(`${summarise(load(), file, paint).join('\n')}\n`);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stdout.write(`${paint('red', '✗')} ${error.message}\n`);
    process.exitCode = 1;
  }
}

function summarise(config: Config, file: string | null, paint: Paint): readonly string[] {
  const tick = paint('green', '✓');
  const lines = [
    `${tick} ${file ?? 'no file: defaults and environment'}`,
    `${tick} listens on ${config.host}:${config.port}`,
    `${tick} database  ${config.databaseUrl === null ? `embedded, in ${config.dataDir}` : `PostgreSQL at ${hostOf(config.databaseUrl)}`}`,
    `${tick} counters  ${config.redisUrl === null ? 'in the process' : `Redis at ${hostOf(config.redisUrl)}`}`,
    `${tick} traces    ${config.otlpEndpoint === null ? 'off' : `sent to ${config.otlpEndpoint}`}`,
    ...config.services.map((service) => `${tick} model     ${describeService(service)}`),
  ];
  if (config.services.length === 0) lines.push(`${paint('yellow', '!')} no [[models]]: there is nothing to call`);
  return lines;
}

function describeService({ name, providerName, rates, apiBase, apiKey }: ServiceConfig): string {
  const prices = METERS.filter((meter) => rates[meter] !== undefined).map((meter) =>
    meter === 'prompt' || meter === 'completion' ? `${meter} ${formatUsd(rates[meter]!)}/1M` : `${meter} ${formatUsd(rates[meter]! / 1_000_000n)}`,
  );
  return `${name}  by ${providerName}  ${prices.join(', ')}  → ${apiBase}${apiKey === null ? ' (no key)' : ''}`;
}

function hostOf(url: string): string {
  const { host, pathname } = new URL(url);
  return `${host}${pathname}`;
}
