import { randomUUID } from 'node:crypto';
import { clientAddress } from '#security';
import {
  createConsumerTag,
  createDialSocket,
  createHttpUpstream,
  createPeerListener,
  createPeers,
  createRegistry,
  createReservedNames,
  createSdkUpstream,
  createTunnels,
  createTunnelUpstream,
  createUpstream,
  type DialSocket,
  type PayoutRules,
  type PeerListener,
  type Peers,
  type Registry,
  type ReservedNames,
  type Tunnels,
} from '#network';
import { createSdkWorkers, type SdkWorkers } from '#ai-sdk';
import { createTunnelObserver } from '#observe';
import type { Upstream } from '#call';
import { type Arrivals, callGraceMs, createArrivals, createRouter, type Router } from '#call/compose';
import {
  type Catalog,
  createHealth,
  type Health,
  type KeptFigures,
  type OfferFigures,
  openKeptFigures,
} from '#catalog';
import { createRateLimiter, createRatePolicies, type RateLimiter, type RatePolicies } from '#limits';
import { VERSION } from '../../foundation/version.ts';
import type { Access } from './access.ts';
import type { Foundation } from './foundation.ts';
import type { Money } from './money.ts';
import type { Observers } from './observers.ts';

/** Phase 5: the ways to providers: direct, through tunnels into this gateway, and through other gateways. */
export interface Network {
  readonly registry: Registry;
  readonly reservedNames: ReservedNames;
  readonly payoutRules: () => PayoutRules;
  readonly tunnels: Tunnels;
  readonly upstream: Upstream;
  readonly dial: DialSocket;
  /** The packages of the AI SDK that services name, each in a process of its own. */
  readonly packages: SdkWorkers;
  readonly cluster: Cluster;
  readonly routing: Routing;
}

/** The connections from and to other gateways of the same database. Both are null for a single gateway. */
interface Cluster {
  readonly listener: PeerListener | null;
  readonly peers: Peers | null;
}

/** The choice of a provider for a call, and the rate limits of callers. */
interface Routing {
  readonly graceMs: number;
  readonly limiter: RateLimiter;
  readonly policies: RatePolicies;
  readonly health: Health & OfferFigures;
  readonly keptFigures: KeptFigures;
  readonly arrivals: Arrivals;
  readonly router: Router;
}

export async function openNetwork(
  foundation: Foundation,
  observers: Observers,
  money: Money,
  access: Access,
): Promise<Network> {
  const { config, logger, resources, identity } = foundation;
  const { drain, http, signIn, states } = access;
  // The cluster opens first: the registry needs this gateway's address for other gateways before it announces a tunnel
  // that they may call through.
  const cluster = await openCluster(foundation);
  const reservedNames = createReservedNames(config.services, config.tunnel.sharedNames);
  const registry = await openRegistry(foundation, http.catalog, { url: cluster.listener?.url ?? null, reservedNames });
  const payoutRules = () => ({
    networks: money.chains.funds?.terms.map(({ network }) => network) ?? [],
    text: config.payments.payouts,
  });
  const tunnels = createTunnels({
    server: http.server,
    authenticate: drain.authenticate,
    identity,
    isClosed: async (account) => (await states.stateOf(account)) === 'closed',
    registry,
    config: config.tunnel,
    domains: signIn.domains,
    version: VERSION,
    payoutRules,
    addressOf: ({ socket, headers }) =>
      clientAddress(socket.remoteAddress ?? '', headers['x-forwarded-for'], http.trust),
    observer: createTunnelObserver(logger, observers.metrics),
  });
  observers.metrics.show({ tunnels: tunnels.count });
  const packages = createSdkWorkers({
    ...config.upstream,
    ...config.packages,
    hidden: [config.dataDir],
    log: (sdk, text) => logger.warn({ sdk }, `a package of the AI SDK: ${text}`),
    tell: ({ text, keeps, why }) => (why === null ? logger.info({ keeps }, text) : logger.warn({ reason: why }, text)),
  });
  await packages.prepare(config.services.map(({ target }) => target));
  const upstream = createUpstream({
    direct: createHttpUpstream(config.upstream),
    sdk: createSdkUpstream({ ...config.upstream, open: packages.open, close: packages.close }),
    tunnel: createTunnelUpstream({
      tunnels,
      peers: cluster.peers,
      registry,
      consumerTag: createConsumerTag(identity.secretBy('consumers of tools', null)),
      waitMs: config.tunnel.waitMs,
      ...config.upstream,
    }),
  });
  resources.defer(() => upstream.close());
  return {
    registry,
    reservedNames,
    payoutRules,
    tunnels,
    upstream,
    dial: createDialSocket({ tunnels, peers: cluster.peers, registry }),
    packages,
    cluster,
    routing: await openRouting(foundation, registry, tunnels),
  };
}

async function openCluster({
  config: { cluster },
  resources,
  database,
  identity,
  outages,
}: Foundation): Promise<Cluster> {
  const url = database.engine === 'postgres' ? cluster.url : null;
  if (url === null) return { listener: null, peers: null };
  const secret = cluster.secret === null ? identity.accepted('cluster') : Buffer.from(cluster.secret);
  const listener = createPeerListener({
    secret,
    host: cluster.host,
    port: cluster.port,
    url,
  });
  await listener.listen();
  resources.defer(() => listener.close(0));
  const onError = (node: { readonly url: string }, error: unknown) =>
    outages.failed(`gateway ${node.url}`, { err: error, gateway: node.url }, 'another gateway could not be reached');
  const peers = createPeers({ secret, onError });
  resources.defer(() => peers.close());
  return { listener, peers };
}

interface RegistryPlace {
  /** The URL for other gateways; null if they cannot reach this one. */
  readonly url: string | null;
  readonly reservedNames: ReservedNames;
}

async function openRegistry(
  { config, resources, database, logger, now }: Foundation,
  catalog: Catalog,
  { url, reservedNames }: RegistryPlace,
): Promise<Registry> {
  const registry = await createRegistry({
    database,
    catalog,
    node: { id: randomUUID(), url },
    now,
    ...config.tunnel,
    reservedNames,
    onError: (error) =>
      logger.warn(
        { err: error },
        'the registry of providers cannot reach the database: the last known state stays in use',
      ),
    onRestored: () => logger.info('the registry of providers reaches the database again'),
  });
  resources.defer(() => registry.close());
  return registry;
}

async function openRouting(
  foundation: Foundation,
  registry: Registry,
  { isStranger }: Pick<Tunnels, 'isStranger'>,
): Promise<Routing> {
  const { config, logger, outages, resources, database, redis, now, elapsed, random } = foundation;
  const limiter = createRateLimiter({
    redis,
    now: elapsed,
    onChange: (shared, error) =>
      shared
        ? logger.info('rate limits are shared through Redis again')
        : logger.warn({ err: error }, 'Redis does not answer: rate limits are local for now'),
  });
  const health = createHealth({
    now: elapsed,
    epochOffsetMs: now() - elapsed(),
    cooldownMs: config.upstream.cooldownMs,
    present: registry.isPresent,
    isStranger,
  });
  registry.onReturned(health.returned);
  const onError = (error: Error) =>
    outages.failed('figures of offers', { err: error }, 'the figures of offers cannot be saved; they are saved later');
  const keptFigures = await openKeptFigures({ database, figures: health, now, onError });
  resources.defer(() => keptFigures.close());
  const arrivals = createArrivals({
    present: registry.isPresent,
    onReturned: registry.onReturned,
    waitMs: config.tunnel.waitMs,
  });
  resources.defer(() => arrivals.close());
  return {
    graceMs: callGraceMs(config),
    limiter,
    policies: createRatePolicies(config.limits),
    health,
    keptFigures,
    arrivals,
    router: createRouter({ health, random, ...config.upstream, now: elapsed }),
  };
}
