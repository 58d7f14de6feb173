import type { FastifyInstance } from 'fastify';
import type { Database } from '#store';
import { createOriginGuard } from '#wire';
import type { Config } from '#config';
import {
  createTally,
  createToolPins,
  type Catalog,
  type Idempotency,
  type Offer,
  type Payments,
  type Pipeline,
  type Runs,
  type ServerOptions,
  type Speakers,
} from '#gateway';
import type { Identity, ProtectedResource, RunTokens } from '#auth';
import { createSessionStore, type Tasks } from '#tasks';
import type { Logger, Metrics } from '#observe';
import { createA2a, createCardOrigin, type A2a, type PushNotifications, type SignBytes } from '#a2a';
import { createMcp, oldTransport, type Mcp } from '#mcp';
import { chatRoutes, createModelSpeaker } from '#openai';
import { rpcRoutes } from '#rpc';
import { VERSION } from '../version.ts';

export interface ProtocolsOptions {
  readonly config: Config;
  readonly database: Database;
  readonly identity: Identity;
  readonly pipeline: Pipeline;
  readonly catalog: Catalog;
  readonly idempotency: Idempotency;
  readonly tasks: Tasks;
  /** The signed receipt of a settled call; null for one that was not charged. */
  readonly receiptOf: (callId: string) => Promise<string | null>;
  readonly runs: Runs;
  readonly payments: Payments;
  readonly runTokens: RunTokens;
  readonly push: PushNotifications;
  readonly sign: SignBytes | null;
  readonly oauth: ProtectedResource;
  readonly metrics: Pick<Metrics, 'mcpSessionEnded'>;
  readonly logger: Logger;
  readonly present: (offer: Offer) => boolean;
  readonly random: () => number;
  readonly now: () => number;
  /** Milliseconds that only go on, whatever the machine's clock is set to. */
  readonly elapsed: () => number;
  readonly onError: ServerOptions['onError'];
  /** A stream that is silent this long gets a comment; default 15 s. */
  readonly keepAliveMs?: number | undefined;
}

export interface Protocols {
  readonly mcp: Mcp;
  readonly a2a: A2a;
}

/** Opens the doors of all protocols on `server`, each with what the others speak: any primitive through any door. */
export async function openProtocols(server: FastifyInstance, options: ProtocolsOptions): Promise<Protocols> {
  const {
    config,
    database,
    identity,
    pipeline,
    catalog,
    idempotency,
    payments,
    logger,
    now,
    elapsed,
    random,
    onError,
  } = options;
  const keepAlive = options.keepAliveMs ? { keepAliveMs: options.keepAliveMs } : {};
  // Every door can be asked for what the others have, so they are made before they know of each other.
  const speaking: { -readonly [name in keyof Speakers]?: Speakers[name] } = {};
  const speakers = () => speaking;
  const listeners = createTally();

  const mcp = createMcp({
    pipeline,
    catalog,
    sessions: createSessionStore(database, { now }),
    pins: createToolPins(database, { now }),
    tasks: options.tasks,
    receiptOf: options.receiptOf,
    present: options.present,
    random,
    onUnlisted: (error, { service, provider }) =>
      logger.debug({ err: error, service, provider: provider.name }, 'the tools of a service could not be listed'),
    onShared: (name, first, later) =>
      logger.warn({ name, service: first, later }, 'two services would have one name at /mcp: the older one has it'),
    onUnseen: (error) => logger.debug({ err: error }, 'a task of a tool could not be looked at'),
    idempotency,
    payments,
    config,
    speakers,
    listeners,
    secret: identity.secret('mcp state'),
    version: VERSION,
    now,
    elapsed,
    onError,
    guard: createOriginGuard({
      ...config,
      allowedOrigins: [...config.allowedOrigins, ...config.corsOrigins],
      signInDomains: config.signIn.domains,
      bindHost: config.host,
    }),
    challenge: options.oauth.challengeFor,
    strangers: config.oauth.issuer === null,
    onSessionEnded: options.metrics.mcpSessionEnded,
    ...keepAlive,
  });
  const a2a = createA2a({
    pipeline,
    catalog,
    tasks: options.tasks,
    idempotency,
    payments,
    runTokens: options.runTokens,
    listeners,
    push: options.push,
    speakers,
    config,
    ownUrl: () => config.publicUrl ?? (config.mode === 'development' ? listeningAt(server) : null),
    sign: options.sign,
    auth: { openIdConnectUrl: discoveryOf(config.oauth.issuer), scopes: config.oauth.scopes },
    challenge: options.oauth.challengeFor,
    origin: createCardOrigin({
      publicUrl: config.publicUrl,
      domains: [...config.signIn.domains, ...config.allowedHosts],
    }),
    secret: identity.secret('unpaid tasks'),
    version: VERSION,
    now,
    elapsed,
    random,
    onError,
    onUnseen: (error) => logger.debug({ err: error }, 'an agent could not be looked at'),
    ...keepAlive,
  });
  speaking.mcp = mcp.speaker;
  speaking.a2a = a2a.speaker;
  speaking.model = createModelSpeaker({ catalog, config, now });

  await server.register(
    chatRoutes({
      pipeline,
      idempotency,
      payments,
      config,
      speakers,
      toolLoop: { catalog, runs: options.runs, toolsOf: mcp.toolsOf, budgetMax: config.billing.runCostMax },
      now,
      onError,
      ...keepAlive,
    }),
    { prefix: '/api/v1' },
  );
  await server.register(options.oauth.routes);
  await server.register(oldTransport);
  await server.register(oldTransport, { prefix: '/api/v1' });
  await server.register(mcp.routes);
  await server.register(mcp.routes, { prefix: '/api/v1' });
  a2a.addCards(server);
  await server.register(options.push.routes);
  await server.register(a2a.routes);
  await server.register(a2a.routes, { prefix: '/api/v1' });
  const inject = server.inject.bind(server);
  await server.register(
    rpcRoutes({ inject, hasRoute: (route) => server.hasRoute(route), pipeline, config, version: VERSION, onError }),
    {
      prefix: '/api/v1',
    },
  );
  return { mcp, a2a };
}

/** Where an issuer tells of itself (OpenID Connect Discovery 1.0 section 4). */
const discoveryOf = (issuer: string | null): string | null =>
  issuer === null ? null : `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;

/** Where programs of this machine reach the server; null before it listens. */
function listeningAt({ server }: FastifyInstance): string | null {
  const address = server.address();
  return address === null || typeof address === 'string' ? null : `http://127.0.0.1:${address.port}`;
}
