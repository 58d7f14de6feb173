import { randomUUID } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { connectRedis, type Database } from '#store';
import { clientAddress, createTrust, GatewayError } from '#wire';
import {
  createLedger,
  createPriceBook,
  createReceiptSigner,
  expireOrphans,
  type AuditReport,
  type Ledger,
} from '#billing';
import type { Config } from '#config';
import {
  allowPages,
  createArrivals,
  createCatalog,
  createExecute,
  createFree,
  createHealth,
  createIdempotency,
  createLockPayments,
  createPipeline,
  createRateLimiter,
  createRatePolicies,
  createReplyMemory,
  createRetryBudget,
  createRouter,
  createRuns,
  createServer,
  offersFromConfig,
  openKeptFigures,
  withFirstSeen,
  type Catalog,
  type Offer,
  type PipelineOptions,
  type ServerOptions,
} from '#gateway';
import { createCardKey, createIdentity, type KeyStore } from '#auth';
import {
  createHttpUpstream,
  createRegistry,
  createTunnels,
  createConsumerTag,
  createTunnelUpstream,
  createUpstream,
  pricesOf,
  type Tunnels,
} from '#network';
import {
  countAnswers,
  createCallLog,
  createRefusalLog,
  createCallObserver,
  createLogger,
  createTracer,
  createTunnelObserver,
  type Logger,
  type Metrics,
} from '#observe';
import { referenceRoutes } from '#pages';
import type { Mcp } from '#mcp';
import { openAccess } from './access.ts';
import { openBilling } from './billing.ts';
import { closeGracefully } from './close.ts';
import { openCluster } from './cluster.ts';
import type { AppOptions } from './options.ts';
import { auditWithJournal, openJournaled } from './journal/journal.ts';
import { operatorRoutes } from './operator.ts';
import { pageRoutes } from './pages.ts';
import { openPayments, type OpenPayments } from './payments.ts';
import { openMetrics } from './metrics.ts';
import { openProtocols } from './protocols.ts';
import { openSweeper } from './sweep.ts';
import { createPastReceipts } from './receipts.ts';
import { openTasks } from './tasks.ts';
import { VERSION } from '../version.ts';

export interface App {
  readonly server: FastifyInstance;
  readonly database: Database;
  readonly ledger: Ledger;
  readonly keys: KeyStore;
  readonly catalog: Catalog;
  readonly logger: Logger;
  readonly metrics: Metrics;
  audit(): Promise<AuditReport>;
  /** Resolves with the address it listens on. */
  listen(): Promise<{ readonly url: string }>;
  /** Refuses new calls at once, lets running ones finish within the drain limit, then closes everything. */
  close(): Promise<void>;
}

/**
 * Puts the rooms together: plain calls, in the order of their dependencies. What was opened is closed again when a
 * later step fails.
 */
export async function createApp(config: Config, options: AppOptions = {}): Promise<App> {
  const { now = Date.now, random = Math.random } = options;
  const elapsed = options.elapsed ?? options.now ?? (() => performance.now());
  const cleanUp: (() => unknown)[] = [];
  const closeAll = async () => {
    for (const close of cleanUp.splice(0).reverse()) await close();
  };
  try {
    const log = createLogger(config, {
      color: options.color ?? false,
      ...(options.writeLog ? { write: options.writeLog } : {}),
    });
    const { logger } = log;
    cleanUp.push(() => log.flush());

    // The database is the truth; everything else can be made again.
    const { database, journal } = await openJournaled(config, { now, logger });
    cleanUp.push(() => database.close());
    cleanUp.push(() => journal.close());
    // Figures are asked for of rooms that are opened later.
    let tunnels: Tunnels | null = null;
    let tools: Mcp | null = null;
    let funds: OpenPayments | null = null;
    let ownOffers: ReadonlySet<string> = new Set();
    const metrics = openMetrics({
      config,
      database,
      tunnels: () => tunnels,
      tools: () => tools,
      funds: () => funds,
      ownOffers: () => ownOffers,
      now,
    });
    const ledger = await createLedger({
      database,
      now,
      onBatch: journal.noting((batch) => metrics.ledgerBatch(batch)),
    });
    cleanUp.push(() => ledger.close());
    // Nobody else can have the embedded database open: what is locked now belongs to calls that died with their
    // process.
    if (database.engine === 'sqlite') await expireOrphans(ledger);

    const identity = createIdentity(
      config.identitySeed === null ? { dataDir: config.dataDir } : { seed: config.identitySeed },
    );
    const receipts = createReceiptSigner(identity.receiptKey.privateKey);
    const pastReceipts = createPastReceipts(
      receipts,
      ledger,
      config.chains.map(({ network }) => network),
    );
    const cardKey = createCardKey(identity);
    const redis =
      config.redisUrl === null
        ? null
        : await connectRedis(config.redisUrl, {
            onError: (error) => logger.debug({ err: error }, 'the Redis connection failed'),
          });
    if (redis) cleanUp.push(() => redis.disconnect());

    const tracer = await createTracer(config, {
      version: VERSION,
      onError: (error) => logger.warn({ err: error }, 'traces could not be sent'),
    });
    cleanUp.push(() => tracer.close());
    const hasOperation = (offer: Offer, tool: string) => tools?.hasTool(offer, tool) ?? false;
    // Whoever tries a gateway looks at its log; in production anybody could fill it.
    const refusals = createRefusalLog(logger, config.mode === 'development' ? 'info' : 'debug');
    const observer = createCallObserver([createCallLog(logger), refusals.sink, metrics.sink, tracer.sink], {
      now: elapsed,
      hasOperation,
    });

    const catalog = createCatalog();
    const offers = await withFirstSeen(
      database,
      offersFromConfig(config.services, { providerId: identity.providerId, createdAt: now() }),
    );
    ownOffers = new Set(offers.map(({ id }) => id));
    const priceBook = createPriceBook(database);
    await priceBook.remember(pricesOf(offers));
    catalog.replace('config', offers);
    // Other gateways need to know where this one is before it knows of any tunnel that they could ask for.
    const { peerListener, peers } = await openCluster(config, {
      database,
      identity,
      logger,
      session: (connection) => tunnels?.session(connection) ?? null,
    });
    if (peerListener) cleanUp.push(() => peerListener.close(0));
    if (peers) cleanUp.push(() => peers.close());
    const registry = await createRegistry({
      database,
      catalog,
      node: { id: randomUUID(), url: peerListener?.url ?? null },
      now,
      ...config.tunnel,
      reservedNames: config.services.map(({ service }) => service.providerName),
      onError: (error) =>
        logger.warn(
          { err: error },
          'the registry of providers cannot reach the database; what is known stands for now',
        ),
      onRestored: () => logger.info('the registry of providers reaches the database again'),
    });
    cleanUp.push(() => registry.close());

    funds = await openPayments({ config, database, ledger, logger, now });
    cleanUp.push(funds.close);
    const payments = options.payments ?? funds.payments;
    const lockPayments = createLockPayments(payments);

    const access = await openAccess({
      config,
      database,
      ledger,
      identity,
      logger,
      anonymous: payments.open,
      now,
      elapsed,
    });
    const { keys, attempts, signIn, nonces, oauth, runTokens, authenticator } = access;
    cleanUp.push(() => authenticator.close());
    const limiter = createRateLimiter({
      redis,
      now: elapsed,
      onChange: (shared, error) =>
        shared
          ? logger.info('rate limits are shared through Redis again')
          : logger.warn({ err: error }, 'Redis does not answer: rate limits are local for now'),
    });
    const policies = createRatePolicies(config.limits);

    const present = ({ endpoint }: Offer) => endpoint.kind === 'direct' || registry.locate(endpoint.provider) !== null;
    const health = createHealth({
      now: elapsed,
      epochOffsetMs: now() - elapsed(),
      cooldownMs: config.upstream.cooldownMs,
      present,
    });
    registry.onReturned(health.returned);
    const onUnsaved = (error: Error) =>
      logger.warn({ err: error }, 'the figures of offers cannot be saved; they are saved later');
    const keptFigures = await openKeptFigures({ database, figures: health, now, onError: onUnsaved });
    cleanUp.push(() => keptFigures.close());
    const arrivals = createArrivals({ present, onReturned: registry.onReturned, waitMs: config.tunnel.waitMs });
    cleanUp.push(() => arrivals.close());
    const router = createRouter({ health, random, ...config.upstream, now: elapsed });

    // A client that stalls holds the end of its call up for as long as it may, and its settlement with it.
    const graceMs = Math.max(config.billing.drainMs, config.limits.clientStallMs);
    let draining = false;
    const authenticate: PipelineOptions['authenticate'] = (headers, address, calls) => {
      if (draining)
        throw new GatewayError(
          'service_unavailable',
          'This gateway is shutting down; retry on another or in a moment',
          { retryAfterS: 1 },
        );
      return authenticator.authenticate(headers, address, calls);
    };
    const onError: ServerOptions['onError'] = (error, request) =>
      logger.error({ err: error, request_id: request.id, method: request.method }, 'a request failed');
    const trust = createTrust(config.trustedProxies);
    const server = createServer({ trust, limits: config.limits, onError });
    cleanUp.push(() => server.close());
    await allowPages(server, config.corsOrigins);
    countAnswers(server, metrics);
    refusals.watch(server);
    await referenceRoutes(server, {
      version: VERSION,
      payable: payments.open,
      exampleModel: () => catalog.offers('model')[0]?.service ?? null,
      publicUrl: config.publicUrl,
    });
    const ownTunnels = createTunnels({
      server,
      authenticate,
      identity,
      registry,
      config: config.tunnel,
      domains: signIn.domains,
      version: VERSION,
      addressOf: ({ socket, headers }) => clientAddress(socket.remoteAddress ?? '', headers['x-forwarded-for'], trust),
      observer: createTunnelObserver(logger, metrics),
    });
    tunnels = ownTunnels;
    const upstream = createUpstream({
      direct: createHttpUpstream(config.upstream),
      tunnel: createTunnelUpstream({
        tunnels: ownTunnels,
        peers,
        registry,
        consumerTag: createConsumerTag(identity.secret('consumers of tools')),
        waitMs: config.tunnel.waitMs,
        ...config.upstream,
      }),
    });
    cleanUp.push(() => upstream.close());

    const common = { config, database, ledger, logger, now };
    const bill = openBilling({
      ...common,
      prices: priceBook,
      payments: lockPayments,
      receipts,
      observer,
      health,
      limiter,
      policies,
      graceMs,
    });
    const replyMemory = createReplyMemory(config.upstream);
    const execute = createExecute({
      replyMemory,
      upstream,
      health,
      router,
      retryBudget: createRetryBudget({ now: elapsed }),
      observer,
      now: elapsed,
    });
    const pipeline = createPipeline({
      authenticate,
      limiter,
      policy: (caller) => policies.of(caller),
      onRateLimited: metrics.rateLimited,
      catalog,
      router,
      health,
      arrivals,
      catchUp: registry.catchUp,
      attemptsMax: config.upstream.attemptsMax,
      callTimeoutMs: config.upstream.callTimeoutMs,
      billed: bill(execute),
      unbilled: createFree(observer)(execute),
      observer,
      now,
      elapsed,
    });

    const idempotency = createIdempotency(database, {
      ...config.limits,
      now,
      runningTtlMs: config.upstream.callTimeoutMs + graceMs + 60_000,
    });
    if (database.engine === 'sqlite') await idempotency.endRunning();
    const sweeper = openSweeper({
      ledger,
      swept: [idempotency, nonces, keptFigures],
      everyMs: config.billing.sweepMs,
      logger,
      now,
    });
    cleanUp.push(() => sweeper.close());

    const audited = () => auditWithJournal(config, database, { now });
    const taskRoom = openTasks({
      ...common,
      receipt: pastReceipts.ofRecord,
      identity,
      prices: priceBook,
      catalog,
      metrics,
      present,
      flagged: health.flagged,
      random,
    });
    const { tasks, push } = taskRoom;
    cleanUp.push(() => taskRoom.close());
    const { mcp, a2a } = await openProtocols(server, {
      ...common,
      identity,
      pipeline,
      catalog,
      idempotency,
      tasks,
      receiptOf: pastReceipts.ofCall,
      runs: createRuns({ ledger, now, graceMs, payments: lockPayments }),
      payments,
      runTokens,
      push,
      sign: { ...cardKey, jku: null },
      oauth,
      metrics,
      present,
      random,
      elapsed,
      onError,
      keepAliveMs: options.keepAliveMs,
    });
    tools = mcp;
    cleanUp.push(() => mcp.close());
    const watch = taskRoom.watch({ agent: a2a.look, tool: mcp.lookAtTask });
    cleanUp.push(() => watch.close());
    const pages = pageRoutes({
      catalog,
      health,
      registry,
      nonces,
      signIn,
      listings: mcp.listings,
      identity,
      database,
      admit: pipeline.admit,
      keys,
      networks: config.chains.map(({ network }) => network),
      now,
    });
    await server.register(pages, { prefix: '/api/v1' });
    await server.register(
      operatorRoutes({
        config,
        database,
        registry,
        catalog,
        attempts,
        logger,
        ledger,
        keys,
        nonces,
        receipts,
        pastReceipts,
        cardKey,
        admit: pipeline.admit,
        audit: audited,
        funds: funds.funds,
        payments,
        signIn,
        identity,
        draining: () => draining,
        metrics: { contentType: metrics.contentType, text: options.metricsText ?? metrics.text },
        now,
      }),
    );

    return {
      server,
      database,
      ledger,
      keys,
      catalog,
      logger,
      metrics,
      audit: audited,
      async listen() {
        const url = await server.listen({ host: config.host, port: config.port });
        return { url };
      },
      close: () =>
        closeGracefully({
          server,
          drainMs: config.limits.drainOnShutdownMs,
          inFlight: pipeline.inFlight,
          refuse() {
            draining = true;
            arrivals.close();
            mcp.drain();
            a2a.drain(config.limits.drainOnShutdownMs);
          },
          // Proxies look for another gateway at once; what other gateways' calls and our own do in the tunnels may end.
          closeTunnels: (drainMs) => Promise.all([ownTunnels.close(drainMs), peerListener?.close(drainMs)]),
          closeRest: closeAll,
        }),
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}
