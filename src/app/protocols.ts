import type { FastifyInstance } from 'fastify';
import { createOriginGuard } from '#wire';
import {
  type CallRequest,
  createRuns,
  createCounter,
  createToolPins,
  quoteCall,
  type TargetAdapters,
  type Counter,
} from '#gateway';
import { createCardKey, type CardKey } from '#auth';
import { createKeptResponses, createSessionStore } from '#tasks';
import { createA2a, createCardOrigin, type A2a } from '#a2a';
import { createMcp, oldTransport, type Mcp } from '#mcp';
import {
  chatRoutes,
  createBackground,
  createModelTarget,
  createSealedCalls,
  createSealedThinking,
  embeddingsRoutes,
  completionsRoutes,
  messagesRoutes,
  responsesRoutes,
} from '#openai';
import { createImageTarget, createVideoTarget, imageRoutes, videoRoutes } from '#media';
import { createFetchInputs } from './fetch-input.ts';
import { quotables } from './quotables.ts';
import { quoteRoutes } from '#pages';
import { rpcRoutes } from '#rpc';
import { VERSION } from '../version.ts';
import type { Opened } from './foundation.ts';
import type { Middle } from './middle.ts';
import { mount } from './mount.ts';
import { openMedia } from './media.ts';
import { openTasks, watchTasks } from './tasks.ts';

export type Protocols = Opened<typeof openProtocols>;

/** The parts that the routes of MCP and A2A share. */
interface Endpoints extends Middle, ReturnType<typeof openTasks> {
  readonly listeners: Counter;
  readonly targets: () => Partial<TargetAdapters>;
  readonly keepAlive: { readonly keepAliveMs?: number };
}

/**
 * Phase 4: the routes of all protocols. Each route gets the target adapters of the other protocols, so any primitive
 * can be called through any route. It also starts the watch of tasks.
 */
export async function openProtocols(middle: Middle) {
  const { catalog, config, options, opened, late, now } = middle;
  // The routes need each other's target adapters, so they are created first and look the target adapters up later.
  const speaking: { -readonly [name in keyof TargetAdapters]?: TargetAdapters[name] } = {};
  const longWork = openTasks(middle);
  const media = await openMedia(middle, longWork);
  const endpoints: Endpoints = {
    ...middle,
    ...longWork,
    listeners: createCounter(),
    targets: () => speaking,
    keepAlive: options.keepAliveMs ? { keepAliveMs: options.keepAliveMs } : {},
  };
  const cardKey = createCardKey(middle.identity);
  const mcp = openMcp(endpoints, media);
  const a2a = openA2a(endpoints, media, cardKey);
  speaking.mcp = mcp.target;
  speaking.a2a = a2a.target;
  speaking.model = createModelTarget({ catalog, config, now });
  const fetchInputs = createFetchInputs(config.webhooks, middle.server.requestBodies);
  speaking.image = createImageTarget({ catalog, config, fetchInputs });
  const ownUrl = () => ownUrlOf(endpoints);
  speaking.video = createVideoTarget({ catalog, ...media.videoRouteDeps, fetchInputs, ownUrl });
  opened.defer(() => mcp.close());
  // Closed before the tools that responses in the background may call.
  const kept = await openKept(middle);
  await mountEndpoints(endpoints, { ...media, ...kept }, mcp, a2a, fetchInputs);
  late.mcp = mcp;
  late.pollAgent = a2a.poll;
  watchTasks(middle, endpoints, {
    polls: { agent: a2a.poll, tool: mcp.pollTask, video: media.videos.poll },
    pollsAtExpiry: { video: media.videos.pollAtExpiry },
  });
  return {
    ...middle,
    cardKey,
    mcp,
    a2a,
    tasks: longWork.tasks,
    notices: longWork.notices,
    blobs: media.blobs,
    ...kept,
  };
}

/**
 * Responses that are kept for later requests, and those that are made in the background. `kept` and `background` are
 * null if none are kept; old ones are removed nevertheless.
 */
async function openKept({ config, database, identity, opened, outages, now }: Middle) {
  const secret = identity.secret('kept responses');
  const keptResponses = createKeptResponses({ database, limits: config.responses, secret, now });
  if (config.responses.keepMs === 0) return { keptResponses, kept: null, background: null };
  const background = createBackground({
    kept: keptResponses,
    onError: (error) =>
      outages.failed(
        'background',
        { err: error },
        'a response in the background could not be stored; it is tried again',
      ),
  });
  // No other process can have the embedded database open, so every response that is under way died with its process.
  if (database.engine === 'sqlite') await background.endOrphans();
  opened.defer(() => background.close());
  return { keptResponses, kept: keptResponses, background };
}

/** The files that hold large replies for repeated requests. */
type Files = Pick<Awaited<ReturnType<typeof openMedia>>, 'blobs'>;

function openMcp(endpoints: Endpoints, { blobs }: Files) {
  const { config, database, identity, pipeline, catalog, idempotency, payments, logger } = endpoints;
  const { tasks, targets, listeners, keepAlive, now, elapsed, random, onError } = endpoints;
  return createMcp({
    pipeline,
    catalog,
    sessions: createSessionStore(database, { now }),
    pins: createToolPins(database, { now }),
    tasks,
    blobs,
    receiptOf: endpoints.pastReceipts.ofCall,
    present: endpoints.present,
    random,
    onUnlisted: (error, { service, provider }) =>
      logger.debug({ err: error, service, provider: provider.name }, 'the tools of a service could not be listed'),
    onShared: (name, first, later) =>
      logger.warn({ name, service: first, later }, 'two services have the same name at /mcp: the older one keeps it'),
    onUnseen: (error) => logger.debug({ err: error }, 'a task of a tool could not be checked'),
    idempotency,
    payments,
    config,
    targets,
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
    challenge: endpoints.oauth.challengeFor,
    strangers: config.oauth.issuer === null,
    onSessionEnded: endpoints.metrics.mcpSessionEnded,
    ...keepAlive,
  });
}

function openA2a(endpoints: Endpoints, { blobs }: Files, cardKey: CardKey) {
  const { config, identity, pipeline, catalog, idempotency, payments, logger } = endpoints;
  const { tasks, push, targets, listeners, keepAlive, now, elapsed, random, onError } = endpoints;
  return createA2a({
    pipeline,
    catalog,
    tasks,
    blobs,
    idempotency,
    payments,
    runTokens: endpoints.runTokens,
    listeners,
    push,
    targets,
    config,
    ownUrl: () => ownUrlOf(endpoints),
    sign: { ...cardKey, jku: null },
    auth: { openIdConnectUrl: discoveryOf(config.oauth.issuer), scopes: config.oauth.scopes },
    challenge: endpoints.oauth.challengeFor,
    origin: createCardOrigin({
      publicUrl: config.publicUrl,
      ownOrigin: endpoints.ownOrigin,
      listening: () => (LISTENS_EVERYWHERE.has(config.host) ? null : listeningAt(endpoints.server, config.host)),
      domains: [...config.signIn.domains, ...config.allowedHosts],
    }),
    secret: identity.secret('unpaid tasks'),
    version: VERSION,
    now,
    elapsed,
    random,
    onError,
    onUnseen: (error) => logger.debug({ err: error }, 'the card of an agent could not be read'),
    ...keepAlive,
  });
}

async function mountEndpoints(
  endpoints: Endpoints,
  {
    videoRouteDeps,
    kept,
    background,
  }: Awaited<ReturnType<typeof openMedia>> & Pick<Awaited<ReturnType<typeof openKept>>, 'kept' | 'background'>,
  mcp: Mcp,
  a2a: A2a,
  fetchInputs: ReturnType<typeof createFetchInputs>,
): Promise<void> {
  const { config, pipeline, idempotency, payments, quotes, catalog, ledger, lockPayments, server } = endpoints;
  const { targets, keepAlive, push, oauth, graceMs, now, onError } = endpoints;
  const prefix = '/api/v1';
  const runs = createRuns({ ledger, now, graceMs, payments: lockPayments });
  const toolLoop = { catalog, runs, toolsOf: mcp.toolsOf, budgetMax: config.billing.runCostMax };
  const { blobs } = videoRouteDeps;
  const chat = {
    pipeline,
    idempotency,
    payments,
    config,
    targets,
    toolLoop,
    catalog,
    blobs,
    now,
    onError,
    ...keepAlive,
  };
  const secret = endpoints.identity.secret('thinking of models');
  const sealed = { thinking: createSealedThinking(secret), calls: createSealedCalls(secret) };
  const quote = (request: CallRequest) => quoteCall({ pipeline, quotes, health: endpoints.health }, request);
  const priced = { pipeline, idempotency, payments, quotes, quote, config, fetchInputs, onError };
  const paidEndpoints = {
    chat: chatRoutes(chat),
    completions: completionsRoutes(chat),
    embeddings: embeddingsRoutes(chat),
    messages: messagesRoutes({ ...chat, ...sealed }),
    responses: responsesRoutes({
      ...chat,
      ...sealed,
      kept,
      background,
      listeners: endpoints.listeners,
    }),
    images: imageRoutes({ ...priced, blobs }),
    quotes: quoteRoutes({ admit: pipeline.admit, quotables: quotables(endpoints, targets), quote }),
    videos: videoRoutes({ ...videoRouteDeps, fetchInputs, idempotency, payments, quotes, quote }),
  };
  await mount(server, paidEndpoints, { prefix });
  await mount(server, { oauth: oauth.routes, oldTransport });
  await mount(server, { oldTransport }, { prefix });
  await mount(server, { mcp: mcp.routes });
  await mount(server, { mcp: mcp.routes }, { prefix });
  a2a.addCards(server);
  await mount(server, { push: push.routes, a2a: a2a.routes });
  await mount(server, { a2a: a2a.routes }, { prefix });
  const inject = server.inject.bind(server);
  const hasRoute: typeof server.hasRoute = (route) => server.hasRoute(route);
  const rpc = rpcRoutes({ inject, hasRoute, pipeline, config, version: VERSION, onError });
  await mount(server, { rpc }, { prefix });
}

/** The address of an issuer's metadata (OpenID Connect Discovery 1.0 section 4). */
const discoveryOf = (issuer: string | null): string | null =>
  issuer === null ? null : `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;

/**
 * The public address of this gateway. null if it is not configured, or if a development gateway does not listen yet.
 */
const ownUrlOf = ({ config, server }: Pick<Endpoints, 'config' | 'server'>): string | null =>
  config.publicUrl ?? (config.mode === 'development' ? listeningAt(server, '127.0.0.1') : null);

/** Addresses to listen on that mean all addresses of the machine. */
const LISTENS_EVERYWHERE: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

/** The server's origin at `host`, an address on which it listens. null before it listens. */
function listeningAt({ server }: FastifyInstance, host: string): string | null {
  const address = server.address();
  if (address === null || typeof address === 'string') return null;
  return `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
}
