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
  type ReservedNames,
  isPresent,
} from '#network';
import { createSdkWorkers } from '#ai-sdk';
import { createTunnelObserver } from '#observe';
import { callGraceMs, createArrivals, createRouter } from '#call/compose';
import { createHealth, openKeptFigures, type Offer } from '#catalog';
import { createRateLimiter, createRatePolicies } from '#limits';
import { VERSION } from '../../foundation/version.ts';
import type { Access } from './server.ts';
import type { PhaseParts } from './foundation.ts';

export type Network = PhaseParts<typeof openNetwork>;

/** The way to providers: direct, through tunnels into this gateway, and through other gateways of the database. */
export async function openNetwork(access: Access) {
  const { config, logger, opened, late, identity, metrics, server, trust, drain, signIn } = access;
  // The cluster opens first: the registry needs this gateway's address for other gateways before it announces a tunnel
  // that they may call through.
  const cluster = await openCluster(access);
  const reservedNames = createReservedNames(config.services, config.tunnel.sharedNames);
  const registry = await openRegistry(access, { url: cluster.listener?.url ?? null, reservedNames });
  const payoutRules = () => ({
    networks: access.funds?.terms.map(({ network }) => network) ?? [],
    text: config.payments.payouts,
  });
  const tunnels = createTunnels({
    server,
    authenticate: drain.authenticate,
    identity,
    isClosed: async (account) => (await access.states.stateOf(account)) === 'closed',
    registry,
    config: config.tunnel,
    domains: signIn.domains,
    version: VERSION,
    payoutRules,
    addressOf: ({ socket, headers }) => clientAddress(socket.remoteAddress ?? '', headers['x-forwarded-for'], trust),
    observer: createTunnelObserver(logger, metrics),
  });
  late.tunnels = tunnels;
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
      consumerTag: createConsumerTag(identity.secret('consumers of tools')),
      waitMs: config.tunnel.waitMs,
      ...config.upstream,
    }),
  });
  opened.defer(() => upstream.close());
  return {
    ...access,
    registry,
    reservedNames,
    payoutRules,
    upstream,
    dial: createDialSocket({ tunnels, peers: cluster.peers, registry }),
    packages,
    cluster,
    admitProviders: tunnels.admitOnly,
    /** The network that the provider of an offer dials this gateway from; null if it does not. */
    providerNetwork({ endpoint }: Offer): string | null {
      const found = endpoint.kind === 'tunnel' ? registry.locate(endpoint.provider) : null;
      return found?.kind === 'here' ? tunnels.network(found.connection) : null;
    },
    closeTunnels: (drainMs: number) => Promise.all([tunnels.close(drainMs), cluster.listener?.close(drainMs)]),
  };
}

/** The connections from and to other gateways of the same database. Both are null for a single gateway. */
async function openCluster({ config: { cluster }, opened, database, identity, outages, late }: Access) {
  const url = database.engine === 'postgres' ? cluster.url : null;
  if (url === null) return { listener: null, peers: null };
  const secret = cluster.secret === null ? identity.secret('cluster') : Buffer.from(cluster.secret);
  const listener = createPeerListener({
    secret,
    host: cluster.host,
    port: cluster.port,
    url,
    tunnels: { session: (connection) => late.tunnels.session(connection) },
    giveFile: (stream, asked) => late.giveFile(stream, asked),
    endCall: (call) => late.endCall(call),
  });
  await listener.listen();
  opened.defer(() => listener.close(0));
  const onError = (node: { readonly url: string }, error: unknown) =>
    outages.failed(`gateway ${node.url}`, { err: error, gateway: node.url }, 'another gateway could not be reached');
  const peers = createPeers({ secret, onError });
  opened.defer(() => peers.close());
  return { listener, peers };
}

async function openRegistry(
  { config, opened, database, catalog, logger, now }: Access,
  { url, reservedNames }: { readonly url: string | null; readonly reservedNames: ReservedNames },
) {
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
  opened.defer(() => registry.close());
  return registry;
}

export type Routed = PhaseParts<typeof openRouting>;

/** The choice of a provider for a call, and the rate limits of callers. */
export async function openRouting(network: Network) {
  const { config, logger, outages, opened, database, redis, registry, now, elapsed, random } = network;
  const limiter = createRateLimiter({
    redis,
    now: elapsed,
    onChange: (shared, error) =>
      shared
        ? logger.info('rate limits are shared through Redis again')
        : logger.warn({ err: error }, 'Redis does not answer: rate limits are local for now'),
  });
  const present = (offer: Offer) => isPresent(registry, offer);
  const health = createHealth({
    now: elapsed,
    epochOffsetMs: now() - elapsed(),
    cooldownMs: config.upstream.cooldownMs,
    present,
  });
  registry.onReturned(health.returned);
  const onError = (error: Error) =>
    outages.failed('figures of offers', { err: error }, 'the figures of offers cannot be saved; they are saved later');
  const keptFigures = await openKeptFigures({ database, figures: health, now, onError });
  opened.defer(() => keptFigures.close());
  const arrivals = createArrivals({ present, onReturned: registry.onReturned, waitMs: config.tunnel.waitMs });
  opened.defer(() => arrivals.close());
  return {
    ...network,
    graceMs: callGraceMs(config),
    limiter,
    policies: createRatePolicies(config.limits),
    present,
    health,
    keptFigures,
    arrivals,
    router: createRouter({ health, random, ...config.upstream, now: elapsed }),
  };
}
