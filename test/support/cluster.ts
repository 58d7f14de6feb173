import { atThisLoad } from './at-this-load.ts';
import { freshDatabase } from './fresh-database.ts';
import { startGatewayHere, type GatewayHere } from './gateway-here.ts';
import { startGateway, type Gateway, type GatewayOptions } from './gateway.ts';
import { pauses } from './pauses.ts';
import { startProvider, type TestProvider } from './provider.ts';
import { IDENTITY_SEED, startSpine, UNHURRIED, type Spine, type SpineOptions } from './spine.ts';
import { DOMAIN } from './wallets.ts';

/** With port 0, gateways of one database take any free port and find each other. */
export const CLUSTER_TOML = '[cluster]\nurl = "https://127.0.0.1:0"\nport = 0\n';

export interface ClusterOptions {
  /** A PostgreSQL server. The cluster creates its own database there. */
  readonly postgresUrl: string;
  readonly redisUrl?: string;
  readonly size?: number;
  /** Replaces the default rate limits, which no test reaches. */
  readonly toml?: string;
}

/** Gateways of one database, with one provider behind all of them. */
export interface Cluster<G> {
  /** The running gateways. `stop` stops them. */
  readonly gateways: readonly G[];
  readonly databaseUrl: string;
  readonly provider: TestProvider;
  /** Starts one more gateway. */
  add(): Promise<G>;
  /** Removes a gateway from the cluster, because the test itself stops or kills it. */
  forget(gateway: G): void;
  stop(): Promise<void>;
}

/** Starts gateways in this process. They share an account with money, whose key is valid at all of them. */
export async function startCluster(options: ClusterOptions & Pick<SpineOptions, 'env'>): Promise<Cluster<Spine>> {
  const { postgresUrl, redisUrl, toml = UNHURRIED, env } = options;
  return startAll(options.size ?? 3, postgresUrl, (databaseUrl, provider) =>
    startSpine({
      databaseUrl,
      provider,
      toml: `${toml}\n${CLUSTER_TOML}`,
      ...(redisUrl === undefined ? {} : { redisUrl }),
      ...(env ? { env } : {}),
    }),
  );
}

/** Starts gateways in separate processes. Each can use its own processor, and they can be killed. */
export async function startProcessCluster(options: ClusterOptions): Promise<Cluster<Gateway>> {
  return startAll(options.size ?? 3, options.postgresUrl, (databaseUrl, provider) =>
    // Several start at once, perhaps on a busy machine.
    startGateway({ ...gatewayOf(options, databaseUrl, provider), timeoutMs: atThisLoad(55_000) }),
  );
}

/** Starts the first gateway in its own process, so that it can be killed, and the others in this process. */
export async function startMixedCluster(
  options: ClusterOptions,
): Promise<Cluster<Gateway | GatewayHere> & { readonly killable: Gateway }> {
  let killable: Gateway | null = null;
  const cluster = await startAll<Gateway | GatewayHere>(
    options.size ?? 3,
    options.postgresUrl,
    async (databaseUrl, provider) => {
      const own = gatewayOf(options, databaseUrl, provider);
      return killable === null ? (killable = await startGateway(own)) : startGatewayHere(own);
    },
  );
  return { ...cluster, killable: killable! };
}

const gatewayOf = (
  { redisUrl, toml = UNHURRIED }: ClusterOptions,
  databaseUrl: string,
  provider: TestProvider,
): Pick<GatewayOptions, 'databaseUrl' | 'env' | 'toml' | 'redisUrl'> => ({
  databaseUrl,
  env: {
    TOLLGATE_IDENTITY_SEED: IDENTITY_SEED,
    TOLLGATE_SIGN_IN_DOMAINS: DOMAIN,
    TEST_UPSTREAM_KEY: 'upstream-secret-canary',
  },
  toml: `${toml.replaceAll('{provider}', provider.url)}\n${CLUSTER_TOML}`,
  ...(redisUrl === undefined ? {} : { redisUrl }),
});

async function startAll<G extends { stop(): Promise<void> }>(
  size: number,
  postgresUrl: string,
  start: (databaseUrl: string, provider: TestProvider) => Promise<G>,
): Promise<Cluster<G>> {
  const database = await freshDatabase(postgresUrl);
  const provider = await startProvider();
  const gateways: G[] = [];
  const cluster: Cluster<G> = {
    gateways,
    databaseUrl: database.url,
    provider,
    async add() {
      const gateway = await start(database.url, provider);
      gateways.push(gateway);
      return gateway;
    },
    forget(gateway) {
      gateways.splice(gateways.indexOf(gateway), 1);
    },
    async stop() {
      await Promise.all(gateways.splice(0).map((gateway) => gateway.stop()));
      await provider.stop();
      await database.drop();
    },
  };
  try {
    // The first gateway creates the tables.
    await cluster.add();
    await Promise.all(Array.from({ length: size - 1 }, () => cluster.add()));
  } catch (error) {
    await cluster.stop();
    throw error;
  }
  return cluster;
}

/** Polls until `isSo` is true. Resolves with the time that it took in milliseconds. */
export async function until(isSo: () => boolean | Promise<boolean>, what: string, ms = 15_000): Promise<number> {
  const begun = performance.now();
  const withinMs = atThisLoad(ms);
  for (const pause of pauses()) {
    if (await isSo()) break;
    if (performance.now() - begun > withinMs) throw new Error(`waited ${withinMs} ms in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
  return performance.now() - begun;
}

/** The offers of a model in the public API of a gateway. Empty if nobody offers it. */
export async function endpointsOf(origin: string, model: string): Promise<readonly Endpoint[]> {
  const response = await fetch(`${origin}/api/v1/models/${model}/endpoints`);
  const { data } = (await response.json()) as { data?: { endpoints: readonly Endpoint[] } };
  return data?.endpoints ?? [];
}

export interface Endpoint {
  readonly provider_id: string;
  readonly health: 'healthy' | 'untried' | 'cooling_down' | 'away';
  /** USD per token. */
  readonly pricing: { readonly prompt: string; readonly completion: string };
}

/**
 * Waits until all these gateways have a callable offer of the model. Resolves with the time that it took in
 * milliseconds.
 */
export const reachable = (origins: readonly string[], model: string, withinMs?: number): Promise<number> =>
  until(
    async () => {
      const known = await Promise.all(origins.map((origin) => endpointsOf(origin, model)));
      return known.every((endpoints) => endpoints.some(({ health }) => health === 'healthy' || health === 'untried'));
    },
    `${model} can be called at ${origins.length} gateways`,
    withinMs,
  );
