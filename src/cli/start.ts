import { Command, Option } from 'commander';
import { escrowOf, formatUsd, MICRO_PER_USD, treasuryOf } from '#billing';
import { createConsumerStore, loadConfig, type ServiceConfig } from '#gateway';
import type { App } from '../app.ts';
import { loadAdminKey } from './admin-key.ts';
import { askYesNo } from './ask.ts';
import { startDemo, type Demo } from './demo.ts';
import { developmentKey, DEVELOPMENT_ACCOUNT } from './development-key.ts';
import { writeDevFile } from './discovery.ts';
import { runGateway } from './gateway-process.ts';
import { findLocalProviders, type LocalProvider } from './local-providers.ts';
import { painter, type Paint } from './terminal.ts';
import { VERSION } from '../version.ts';

interface StartFlags {
  readonly config?: string;
  readonly host?: string;
  readonly port?: string;
  readonly data?: string;
  readonly withOllama?: boolean;
  readonly withOpenai?: boolean;
}

const PLAY_MONEY = 10n * MICRO_PER_USD;
const PLAY_TRANSFER = 'development-play-money';

const HELP = `
Starts a gateway to try things with: a demo provider with two models, an account with 10 USD of play money
and a key for it. It prints the key and calls to paste, and writes both to <data>/dev.json for programs.

Examples:
  npm start                                  on 127.0.0.1:8402, data in .tollgate
  PORT=9000 npm start                        on another port
  npm start -- --config tollgate.toml        with the models of a file beside the demo's
  npm start -- --with-ollama                 with the models of the Ollama on this machine

For anything that others use: tollgate serve --help`;

/** `tollgate start`: the development gateway. */
export function startCommand(): Command {
  return new Command('start')
    .summary('try it: a gateway with demo models, play money and a key')
    .usage('[options]')
    .description('Start a development gateway.')
    .option('-c, --config <file>', 'TOML file whose [[models]] are added to the demo')
    .option('--host <address>', 'address to listen on (HOST)')
    .option('--port <number>', 'port to listen on (PORT)')
    .option('--data <directory>', 'where data is kept (TOLLGATE_DATA)')
    .addOption(new Option('--with-ollama', 'route to the Ollama on this machine as well, without asking'))
    .addOption(new Option('--with-openai', 'route to OpenAI with OPENAI_API_KEY as well, without asking'))
    .addHelpText('after', HELP)
    .action(start);
}

async function start(flags: StartFlags): Promise<void> {
  const paint = painter();
  const config = loadConfig({
    file: flags.config ?? null,
    env: process.env,
    mode: 'development',
    overrides: { 'server.host': flags.host, 'server.port': flags.port, 'server.data_dir': flags.data },
  });
  const adminKey = config.adminKey ?? loadAdminKey(config.dataDir);
  const [demo, found] = await Promise.all([startDemo(), findLocalProviders(process.env)]);
  const hints: string[] = [];
  let key = '';

  const offered = await chooseLocal(found, flags, hints).catch(async (error: unknown) => {
    await demo.close();
    throw error;
  });
  const services = [...demo.services, ...config.services, ...offered];
  await runGateway(
    { ...config, adminKey, services },
    {
      async prepare(app) {
        await app.ledger.transfer({
          id: PLAY_TRANSFER,
          from: treasuryOf('dev'),
          to: escrowOf(DEVELOPMENT_ACCOUNT),
          amount: PLAY_MONEY,
          memo: 'play money of the development account',
        });
        await createConsumerStore(app.database, { now: Date.now }).create(DEVELOPMENT_ACCOUNT, 'development');
        key = await developmentKey(app, config.dataDir);
      },
      async ready(app, baseUrl) {
        writeDevFile(config.dataDir, { base_url: baseUrl, api_key: key, admin_key: adminKey });
        watch(demo, paint);
        process.stdout.write(await welcome(app, { baseUrl, key, services, dataDir: config.dataDir, hints, paint }));
      },
      stopping: () => process.stdout.write(paint('dim', '\nStopping: running calls may finish. Ctrl-C again stops at once.\n')),
      cleanUp: () => demo.close(),
    },
  );
}

/** Asks on a terminal, obeys flags anywhere, and otherwise leaves a hint at how it is done. */
async function chooseLocal(found: readonly LocalProvider[], flags: StartFlags, hints: string[]): Promise<readonly ServiceConfig[]> {
  const services: ServiceConfig[] = [];
  const wanted = { '--with-ollama': flags.withOllama, '--with-openai': flags.withOpenai };
  for (const [flag, on] of Object.entries(wanted)) {
    if (on && !found.some((provider) => provider.flag === flag)) {
      hints.push(flag === '--with-ollama' ? 'No Ollama answers. Start it, or say where it is: OLLAMA_HOST=host:port' : 'OPENAI_API_KEY is not set, so nothing is routed to OpenAI.');
    }
  }
  const terminal = process.stdin.isTTY && process.stdout.isTTY;
  for (const provider of found) {
    const yes = wanted[provider.flag] ?? (terminal && (await askYesNo(`${provider.found}. Route to ${provider.name} too?`)));
    if (yes) {
      try {
        services.push(...(await provider.services()));
      } catch (error) {
        hints.push(`${provider.name}: ${error instanceof Error ? error.message : String(error)}`);
      }
    } else if (!terminal) hints.push(`${provider.found}. To route to it too: npm start -- ${provider.flag}`);
  }
  return services;
}

function watch(demo: Demo, paint: Paint): void {
  demo.onExit((reason) => {
    process.stderr.write(`${paint('red', `The demo provider ended (${reason}).`)} Its models fail until the gateway is started again.\n`);
  });
}

interface Welcome {
  readonly baseUrl: string;
  readonly key: string;
  readonly services: readonly ServiceConfig[];
  readonly dataDir: string;
  readonly hints: readonly string[];
  readonly paint: Paint;
}

const MODELS_SHOWN = 8;

async function welcome(app: App, { baseUrl, key, services, dataDir, hints, paint }: Welcome): Promise<string> {
  const balance = await app.ledger.balance(escrowOf(DEVELOPMENT_ACCOUNT));
  const names = [...new Set(services.map((service) => service.name))];
  const more = names.length > MODELS_SHOWN ? `  and ${names.length - MODELS_SHOWN} more` : '';
  const row = (name: string, value: string) => `  ${paint('dim', name.padEnd(9))} ${value}\n`;
  const model = names[0]!;
  return [
    `\n  ${paint(['bold', 'green'], 'tollgate')} ${VERSION}  ${paint('dim', 'development')}\n\n`,
    row('Address', `${baseUrl}/api/v1`),
    row('Key', key),
    row('Balance', `${formatUsd(balance?.available ?? 0n)} USD of play money`),
    row('Models', names.slice(0, MODELS_SHOWN).join('  ') + more),
    row('Reference', `${baseUrl}/docs`),
    row('Data', dataDir),
    ...hints.map((hint) => `\n  ${paint('yellow', '•')} ${hint}\n`),
    `\n  ${paint('dim', 'Try it:')}\n\n${curl(baseUrl, key, model, false)}\n\n  ${paint('dim', 'Streamed:')}\n\n${curl(baseUrl, key, model, true)}\n\n`,
    `  ${paint('dim', 'Ctrl-C stops it.')}\n\n`,
  ].join('');
}

function curl(baseUrl: string, key: string, model: string, stream: boolean): string {
  const body = { model, messages: [{ role: 'user', content: 'What is a tollgate?' }], ...(stream ? { stream: true } : {}) };
  return [
    `curl ${stream ? '-N ' : ''}${baseUrl}/api/v1/chat/completions \\`,
    `  -H 'Authorization: Bearer ${key}' \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d '${JSON.stringify(body)}'`,
  ].join('\n');
}
