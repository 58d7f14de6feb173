import { databaseName } from '#store/database-name';
import { escrowOf, treasuryOf } from '#billing';
import { formatUsd, MICRO_PER_USD } from '#billing/amounts';
import { type Config, loadConfig, nearest, type Primitive, readTomlFile, type ServiceConfig } from '#config';
import { KNOWN_PROVIDERS, type KnownProviderName } from '#config/known-providers';
import { createConsumerStore } from '#accounts';
import { DEVELOPMENT_ACCOUNT } from '#accounts/names';
import { hashKey, parseKey } from '#auth';
import type { App } from '#app';
import { readBuild } from '../../../foundation/version.ts';
import { loadAdminKey } from '../admin/admin-key.ts';
import { askYesNo, say, painter, type Paint, CliError, USAGE_EXIT } from '../terminal.ts';
import { FIRST_MESSAGE, FIRST_TOOL_CALL, startDemo, type Demo } from './demo.ts';
import { realPath, writeDevFile, readDevFile, onDatabase } from '../discovery.ts';
import { NO_PROVIDERS } from './start-notices.ts';
import { OWN_NAME, START_WITH } from '../command-line.ts';
import { runGateway } from './gateway-process.ts';
import { createListedConfig, offersInWords } from './listed-config.ts';
import { findLocalProviders, type LocalProvider, offeredByKey } from './local-providers.ts';

export interface StartFlags {
  readonly config?: string;
  readonly host?: string;
  readonly port?: string;
  readonly data?: string;
  readonly withOllama?: boolean;
  readonly withOpenai?: boolean;
  readonly with?: readonly string[];
}

const PLAY_MONEY = 10n * MICRO_PER_USD;
const LOOPBACK = /^(?:127\.|localhost$|::1$)/;
const PLAY_TRANSFER = 'development-play-money';

/**
 * Runs a gateway for trying things, with the demo provider, an account with play money, and a key. Runs until a signal
 * ends it.
 */
export async function runDevelopment(flags: StartFlags): Promise<void> {
  const choice = wantedOf(flags);
  const paint = painter();
  const file = flags.config ?? null;
  const readText = () => (file === null ? '' : readTomlFile(file));
  const listed = createListedConfig<Config>({
    load: (text, offered = []) =>
      loadConfig({
        file,
        text,
        offered,
        env: process.env,
        mode: 'development',
        overrides: { 'server.host': flags.host, 'server.port': flags.port, 'server.data_dir': flags.data },
      }),
    providersOf: ({ providers }) => providers,
    readText,
  });
  let config = await listed.read();
  say(`Starts ${onDatabase(databaseName(config.databaseUrl), realPath(config.dataDir))}`);
  const adminKey = config.adminKey ?? loadAdminKey(config.dataDir);
  const [demo, local] = await Promise.all([startDemo(), findLocalProviders(process.env)]);
  const hints: string[] = [];
  if (!LOOPBACK.test(config.host))
    hints.push(
      `It listens on ${config.host}: others on the network can reach it. For more than a try use tollgate serve.`,
    );
  if (config.tunnel.providers === null) hints.push(`Providers: ${NO_PROVIDERS}.`);
  let key = '';

  const configured = config.providers.map(({ use }) => use);
  const choose = async () => {
    const { services, uses } = await chooseLocal(local, { flags, only: choice, configured, hints });
    if (uses.length > 0) config = await listed.read(`${readText()}\n${uses.map(providerLines).join('')}`);
    return services;
  };
  const offered = await choose().catch(async (error: unknown) => {
    await demo.close();
    throw error;
  });
  hints.push(...offersInWords(listed.offers()));
  const complete = (next: Config) => ({
    ...next,
    adminKey,
    services: [...demo.services, ...next.services, ...offered],
  });
  const { services } = complete(config);
  await runGateway(complete(config), {
    configFile: file,
    listed: { ...listed, current: async () => complete(await listed.current()) },
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
    stopping: () =>
      process.stdout.write(paint('dim', '\nStopping: running calls may finish. Ctrl-C again stops at once.\n')),
    cleanUp: () => demo.close(),
  });
}

const providerLines = (use: KnownProviderName): string => `[[providers]]\nuse = "${use}"\n`;

/** The gateway's own choice of providers beside the file. */
interface Chosen {
  readonly services: readonly ServiceConfig[];
  readonly uses: readonly KnownProviderName[];
}

interface ProviderChoice {
  readonly flags: StartFlags;
  readonly only: ReadonlySet<KnownProviderName>;
  readonly configured: readonly KnownProviderName[];
  readonly hints: string[];
}

/**
 * Decides which providers of this machine and of its environment to use: flags decide; else it asks on a terminal; else
 * it leaves a hint about the flag.
 */
async function chooseLocal(
  local: readonly LocalProvider[],
  { flags, only, configured, hints }: ProviderChoice,
): Promise<Chosen> {
  const services: ServiceConfig[] = [];
  const uses: KnownProviderName[] = [];
  const terminal = process.stdin.isTTY && process.stdout.isTTY;
  if (flags.withOllama && !local.some(({ name }) => name === 'Ollama'))
    hints.push('No Ollama answers. Start it, or say where it is: OLLAMA_HOST=host:port');
  for (const use of only) if (!local.some((provider) => provider.use === use)) hints.push(lacksKey(use));
  for (const provider of local) {
    const { use, name, flag } = provider;
    if (use !== null && configured.includes(use)) continue;
    const isWanted = use === null ? flags.withOllama : only.has(use);
    // A start with many keys must not be a row of questions.
    const asks = terminal && (use === null || use === 'openai');
    if (isWanted || (asks && (await askYesNo(`${provider.origin}. Route to ${name} too?`)))) {
      if (use !== null) uses.push(use);
      try {
        services.push(...(await provider.services()));
      } catch (error) {
        hints.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
      }
    } else if (!asks) hints.push(`${provider.origin}. To route to it too: ${START_WITH} ${flag}`);
  }
  return { services, uses };
}

/** The providers that flags name. Throws CliError for one that a key is not enough for. */
function wantedOf({ with: names = [], withOpenai = false }: StartFlags): ReadonlySet<KnownProviderName> {
  const providers = names.map((name) => {
    const use = offeredByKey.find((one) => one === name);
    if (use !== undefined) return use;
    const guess = nearest(name, offeredByKey);
    const help = guess === null ? 'Name others in a file: --config FILE' : `Did you mean ${guess}?`;
    throw new CliError(`--with takes ${offeredByKey.join(', ')}, not ${name}. ${help}`, { exitCode: USAGE_EXIT });
  });
  return new Set(withOpenai ? [...providers, 'openai'] : providers);
}

const lacksKey = (use: KnownProviderName): string =>
  `${KNOWN_PROVIDERS[use].keyVariables[0]!} is not set, so nothing is routed to ${KNOWN_PROVIDERS[use].name}.`;

function watch(demo: Demo, paint: Paint): void {
  demo.onExit((reason) => {
    process.stderr.write(
      `${paint('red', `The demo provider ended (${reason}).`)} Its models, tools and agent fail until the gateway is started again.\n`,
    );
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

const NAMES_SHOWN = 8;

async function welcome(app: App, { baseUrl, key, services, dataDir, hints, paint }: Welcome): Promise<string> {
  const balance = await app.ledger.balance(escrowOf(DEVELOPMENT_ACCOUNT));
  const namesOf = (primitive: Primitive) => {
    const names = [
      ...new Set(services.filter(({ service }) => service.primitive === primitive).map(({ service }) => service.name)),
    ];
    return (
      names.slice(0, NAMES_SHOWN).join('  ') +
      (names.length > NAMES_SHOWN ? `  and ${names.length - NAMES_SHOWN} more` : '')
    );
  };
  const row = (name: string, value: string) => `  ${paint('dim', name.padEnd(9))} ${value}\n`;
  const chat = `${baseUrl}/api/v1/chat/completions`;
  const question = { model: services[0]!.service.name, messages: [{ role: 'user', content: 'What is a tollgate?' }] };
  const { name, arguments: args } = FIRST_TOOL_CALL;
  const toolCall = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
  const message = { messageId: 'first', role: 'user', parts: [{ kind: 'text', text: FIRST_MESSAGE.text }] };
  const send = { jsonrpc: '2.0', id: 1, method: 'message/send', params: { message } };
  return [
    `\n  ${paint(['bold', 'green'], 'tollgate')} ${readBuild()}  ${paint('dim', 'development')}\n\n`,
    row('Address', `${baseUrl}/api/v1`),
    row('Balance', `${formatUsd(balance?.available ?? 0n)} USD of play money`),
    row('Models', namesOf('model')),
    row('Images', namesOf('image')),
    row('Videos', namesOf('video')),
    row('Tools', `${namesOf('tool')}  ${paint('dim', `all by MCP at ${baseUrl}/mcp`)}`),
    row('Agents', `${namesOf('agent')}  ${paint('dim', `by A2A at ${baseUrl}/a2a`)}`),
    row('Pages', `${baseUrl}/marketplace`),
    row('Reference', `${baseUrl}/docs`),
    row('Data', dataDir),
    row('Clients', `${OWN_NAME} connect --list  ${paint('dim', 'settings for Claude Code, Codex, SDKs, …')}`),
    `\n  ${paint('dim', 'Try it:')}\n\nexport KEY=${key}\n\n${curl(chat, question)}\n\n`,
    `  ${paint('dim', 'Streamed:')}\n\n${curl(chat, { ...question, stream: true })}\n\n`,
    `  ${paint('dim', 'A tool:')}\n\n${curl(`${baseUrl}/mcp/${FIRST_TOOL_CALL.service}`, toolCall)}\n\n`,
    `  ${paint('dim', 'An agent, that calls the tool and a model in turn (a new messageId rolls again):')}\n\n${curl(`${baseUrl}/a2a/${FIRST_MESSAGE.service}`, send)}\n\n`,
    // After the calls, because what is printed last is what people see.
    ...hints.map((hint) => `  ${paint('yellow', '•')} ${hint}\n\n`),
    `  ${paint('dim', 'Ctrl-C stops it.')}\n\n`,
  ].join('');
}

function curl(url: string, body: Readonly<Record<string, unknown>>): string {
  return [
    `curl ${body['stream'] === true ? '-N ' : ''}${url} \\`,
    `  -H "Authorization: Bearer $KEY" \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d '${JSON.stringify(body)}'`,
  ].join('\n');
}

/** The key of the last start if it still works on this database, else a new key. */
async function developmentKey(app: Pick<App, 'keys'>, dataDir: string): Promise<string> {
  const stored = readDevFile(dataDir)?.api_key ?? null;
  if (stored !== null && parseKey(stored)?.kind === 'development') {
    const record = await app.keys.findBySecret(hashKey(stored));
    const expired = record !== null && record.expiresAt !== null && record.expiresAt <= Date.now();
    if (record && record.account === DEVELOPMENT_ACCOUNT && !record.disabled && !expired) return stored;
  }
  const key = await app.keys.create({ account: DEVELOPMENT_ACCOUNT, label: 'development', kind: 'development' });
  if (!key)
    throw new CliError(
      `${DEVELOPMENT_ACCOUNT} has as many keys as an account may have.\nDelete some: tollgate key list dev, then tollgate key delete …`,
    );
  return key.text;
}
