import { createScrubber } from '#security';
import { ConfigError, type Config, secretsOf, type ServiceConfig } from '#config';
import { WalletError } from '#proxy/wallet';
import { VERSION } from '../../../foundation/version.ts';
import { checkTreasuries, listenFaults } from './start-checks.ts';
import {
  admitsProviders,
  agentsLackAddress,
  NO_AGENT_ADDRESS,
  NO_PROVIDERS,
  NO_SIGN_IN,
  secretsIn,
} from './start-notices.ts';
import { describeService, printChecks, silentLog } from './service-report.ts';
import { findGateway, realPath } from '../discovery.ts';
import { CliError, painter, type Paint } from '../terminal.ts';

/**
 * Prints a summary of the file. If the file is wrong, prints all problems and sets the exit code. A port that is taken
 * is only a warning: the file may be meant for another machine.
 */
export async function validate(
  load: () => Promise<Config>,
  { file, workers, probe }: { readonly file: string | null; readonly workers: number; readonly probe: boolean },
): Promise<void> {
  const paint = painter();
  try {
    const config = await load();
    const lines = [
      ...summarise(config, file, paint),
      ...(await chainLines(config, paint)),
      ...(await portLines(config, workers, paint)),
      ...otherGatewayLines(config, file, paint),
    ];
    process.stdout.write(`${lines.join('\n')}\n`);
    if (config.providers.length > 0)
      process.stdout.write('What the providers offer, and at which prices: tollgate models\n');
    if (config.services.length === 0) return;
    if (probe) await tryServices(config);
    else process.stdout.write('The services were not called. To call each of them: --validate --probe\n');
  } catch (error) {
    if (!(error instanceof ConfigError || error instanceof WalletError || error instanceof CliError)) throw error;
    process.stdout.write(`${paint('red', '✗')} ${error.message}\n`);
    process.exitCode = 1;
  }
}

/** Calls each service of the file as `tollgate provide --validate` does. */
async function tryServices(config: Config): Promise<void> {
  // Loaded here, because other commands do not need it.
  const { loadChecks } = await import('#proxy');
  const { serviceChecks, runChecks } = await loadChecks();
  const run = { env: process.env, version: VERSION, log: await silentLog() };
  process.stdout.write('\n');
  const services = tried(config.services);
  const names = services.map(({ service: { name } }) => name);
  const isShared = (name: string) => names.indexOf(name) !== names.lastIndexOf(name);
  await printChecks(
    services.flatMap((each) => {
      const { name, providerName } = each.service;
      const checks = serviceChecks(each, run);
      return isShared(name) ? checks.map((check) => ({ ...check, name: `${check.name} (${providerName})` })) : checks;
    }),
    runChecks,
    createScrubber(secretsOf(config)),
  );
}

/** Of the models that a provider lists only the first, because its other models have the same address and key. */
function tried(services: readonly ServiceConfig[]): readonly ServiceConfig[] {
  const known = new Set<string>();
  return services.filter(({ service: { providerName }, listed }) => {
    if (!listed) return true;
    const isFirst = !known.has(providerName);
    known.add(providerName);
    return isFirst;
  });
}

function summarise(config: Config, file: string | null, paint: Paint): readonly string[] {
  const tick = paint('green', '✓');
  const lines = [
    `${tick} ${file ?? 'no file: defaults and environment'}`,
    `${tick} listens on ${config.host}:${config.port}`,
    ...(config.cluster.url === null || config.databaseUrl === null
      ? []
      : [
          `${tick} gateways  reach this one at ${hostOf(config.cluster.url)}, on ${config.cluster.host}:${config.cluster.port}`,
        ]),
    `${tick} database  ${config.databaseUrl === null ? `embedded, in ${config.dataDir}` : `PostgreSQL at ${hostOf(config.databaseUrl)}`}`,
    ...(config.signIn.domains.length > 0 ? [`${tick} wallets   sign in for ${config.signIn.domains.join(', ')}`] : []),
    ...peopleLines(config, tick),
    `${tick} counters  ${config.redisUrl === null ? 'in the process' : `Redis at ${hostOf(config.redisUrl)}`}`,
    `${tick} traces    ${config.otlpEndpoint === null ? 'off' : `sent to ${hostOf(config.otlpEndpoint)}`}`,
    ...(config.logsExporter === 'otlp' && config.otlpEndpoint !== null
      ? [`${tick} logs      sent to ${hostOf(config.otlpEndpoint)} too`]
      : []),
    ...config.services
      .filter(({ listed }) => !listed)
      .map((one) => `${tick} ${one.service.primitive.padEnd(9)} ${describeService(one)}`),
    ...config.providers.map(
      ({ use, prefix, url }) => `${tick} provider  ${use}  ${prefix}/…${url === '' ? '' : `  → ${url}`}`,
    ),
  ];
  const warn = paint('yellow', '!');
  if (config.signIn.domains.length === 0) lines.push(`${warn} ${NO_SIGN_IN}`);
  if (agentsLackAddress(config)) lines.push(`${warn} ${NO_AGENT_ADDRESS}`);
  const secrets = secretsIn(file);
  if (secrets !== null) lines.push(`${warn} ${secrets}`);
  lines.push(...sellerLines(config, { tick, warn }));
  if (config.services.length === 0)
    lines.push(
      `${warn} no [[models]]: there is nothing to call${admitsProviders(config) ? ' until a provider dials in' : ''}`,
    );
  return lines;
}

/** A line about the sign-in of people, with the address that their provider has to know. */
function peopleLines({ people, publicUrl }: Config, tick: string): readonly string[] {
  if (people.issuer === null) return [];
  return [
    `${tick} people    sign in at ${people.issuer}, which needs the redirect address ${publicUrl}/api/v1/auth/people/callback`,
  ];
}

/** Lines about the providers that may connect, and the names that they may use. */
function sellerLines(
  { tunnel, services }: Config,
  marks: { readonly tick: string; readonly warn: string },
): readonly string[] {
  const { providers, sharedNames } = tunnel;
  const own = new Set(services.map(({ service }) => service.name));
  const unknown = sharedNames.filter((name) => !own.has(name) && !name.endsWith('/*'));
  return [
    providers === null
      ? `${marks.warn} providers ${NO_PROVIDERS}`
      : providers === 'nobody'
        ? `${marks.tick} providers nobody may connect`
        : providers === 'anyone'
          ? `${marks.warn} providers anybody with a wallet may connect and sell, under any name but the ones above`
          : `${marks.tick} providers ${providers.length === 1 ? 'one may connect' : `${providers.length} may connect`}`,
    ...unknown.map((name) => `${marks.warn} tunnel.shared_names has ${name}, which is no service of this file`),
  ];
}

/**
 * Lines about the chains, with the address of each treasury. Rejects with WalletError for a key that cannot be used.
 */
async function chainLines({ chains }: Config, paint: Paint): Promise<readonly string[]> {
  const tick = paint('green', '✓');
  const treasuries = await checkTreasuries({ chains });
  return chains.map(({ network }) => {
    const address = treasuries.get(network);
    return address === undefined
      ? `${tick} chain     ${network}: asked about contract wallets`
      : `${tick} chain     ${network}: money, with the treasury ${address}`;
  });
}

async function portLines(config: Config, workers: number, paint: Paint): Promise<readonly string[]> {
  const faults = await listenFaults(config, workers);
  return faults.map((fault) => `${paint('yellow', '!')} ${fault.replaceAll('\n', '\n  ')}`);
}

/** Lines about a gateway that runs on the same data directory with another file: this one could not start beside it. */
function otherGatewayLines({ dataDir, port }: Config, file: string | null, paint: Paint): readonly string[] {
  const { gateway } = findGateway(dataDir);
  if (gateway === null || gateway.config === (file === null ? null : realPath(file))) return [];
  return [
    `${paint('yellow', '!')} A gateway with another file runs on the data directory ${dataDir}, at ${gateway.base_url} (process ${gateway.pid}).\n` +
      `  End it before you start this one, or give this one its own: --data ./gateway --port ${port + 1}`,
  ];
}

function hostOf(url: string): string {
  const { host, pathname } = new URL(url);
  return `${host}${pathname.replace(/\/$/, '')}`;
}
