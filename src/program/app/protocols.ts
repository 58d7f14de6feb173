import { LISTENS_EVERYWHERE, listeningAt, ownUrlOf } from './own-url.ts';
import { clientAddress, createOriginGuard } from '#security';
import { GatewayError } from '#errors';
import { isObject } from '#wire';
import type { CallRequest, Quotable } from '#call';
import { createRuns, quoteCall } from '#call/compose';
import { createCounter, type Counter } from '#limits';
import { createToolPins } from '#catalog';
import type { TargetAdapters, TargetRequest, TargetAdapter } from '#bridge';
import type { RequestBodies } from '#http';
import { createCardKey, type CardKey } from '#auth';
import { createKeptResponses } from '#kept-responses';
import { createSessionStore, createMcp, oldTransport } from '#mcp';
import { createA2a, createCardOrigin } from '#a2a';
import {
  addRealtime,
  CHAT_WIRES,
  clientSecretRoutes,
  createBackground,
  createModelTarget,
  createSealedCalls,
  createSealedThinking,
  cohereRerankRoutes,
  embeddingsRoutes,
  moderationsRoutes,
  rerankRoutes,
  quotableModel,
  speechRoutes,
  transcriptionRoutes,
} from '#openai';
import {
  createImageTarget,
  createVideoTarget,
  imageRoutes,
  videoRoutes,
  quotableImages,
  quotableVideos,
  type FetchInputs,
} from '#media';
import { quoteRoutes } from '#pages';
import { rpcRoutes } from '#rpc';
import type { Config } from '#config';
import { createGuardedFetch, OutboundFailure } from '#network';
import { VERSION } from '../../foundation/version.ts';
import type { PhaseParts } from './foundation.ts';
import type { Middle } from './middle.ts';
import { openBatches } from './batches.ts';
import { mount } from './mount.ts';
import { openMedia, openTasks, watchTasks } from './tasks.ts';

export type Protocols = PhaseParts<typeof openProtocols>;

/** The parts that MCP and A2A are made of: all that is open before them, and what several routes share. */
interface RouteParts extends Middle, ReturnType<typeof openTasks> {
  readonly listeners: Counter;
  readonly targets: () => Partial<TargetAdapters>;
  readonly keepAlive: { readonly keepAliveMs?: number };
}

/**
 * Phase 4: the routes of all protocols. Each route gets the target adapters of the other protocols, so any primitive
 * can be called through any route. It also starts the watch of tasks.
 */
export async function openProtocols(middle: Middle) {
  const { config, options, server, identity, pipeline, catalog, ledger, lockPayments, idempotency, payments } = middle;
  const { quotes, health, oauth, graceMs, opened, late, now, onError } = middle;
  // The routes need each other's target adapters, so they are created first and look the target adapters up later.
  const targets: { -readonly [name in keyof TargetAdapters]?: TargetAdapters[name] } = {};
  const longWork = openTasks(middle);
  const media = await openMedia(middle, longWork);
  const { blobs, videoRouteDeps } = media;
  const parts: RouteParts = {
    ...middle,
    ...longWork,
    listeners: createCounter(),
    targets: () => targets,
    keepAlive: options.keepAliveMs ? { keepAliveMs: options.keepAliveMs } : {},
  };
  const cardKey = createCardKey(identity);
  const mcp = openMcp(parts, media);
  const a2a = openA2a(parts, media, cardKey);
  targets.mcp = mcp.target;
  targets.a2a = a2a.target;
  targets.model = createModelTarget({ catalog, config, now });
  const fetchInputs = createFetchInputs(config.webhooks, server.requestBodies);
  targets.image = createImageTarget({ catalog, config, pipeline, fetchInputs });
  const ownUrl = () => ownUrlOf(parts);
  targets.video = createVideoTarget({ catalog, ...videoRouteDeps, fetchInputs, ownUrl });
  opened.defer(() => mcp.close());
  // Closed before the tools that responses in the background may call.
  const kept = await openKept(middle);
  const prefix = '/api/v1';
  const runs = createRuns({ ledger, now, graceMs, payments: lockPayments, running: middle.runningCalls });
  const toolLoop = { catalog, runs, toolsOf: mcp.toolsOf, budgetMax: config.billing.runCostMax };
  const chat = {
    pipeline,
    idempotency,
    payments,
    config,
    targets: parts.targets,
    toolLoop,
    catalog,
    blobs,
    now,
    onError,
    ...parts.keepAlive,
  };
  const secret = identity.secret('thinking of models');
  const wireDeps = {
    ...chat,
    thinking: createSealedThinking(secret),
    calls: createSealedCalls(secret),
    kept: kept.kept,
    background: kept.background,
    listeners: parts.listeners,
  };
  const quote = (request: CallRequest) => quoteCall({ pipeline, quotes, health }, request);
  const priced = { pipeline, idempotency, payments, quotes, quote, config, fetchInputs, onError };
  const chatWiresAt = (at: string) =>
    Object.fromEntries(
      CHAT_WIRES.filter((wire) => wire.prefix === at).map((wire) => [wire.name, wire.routes(wireDeps)]),
    );
  const routes = {
    ...chatWiresAt(prefix),
    embeddings: embeddingsRoutes(chat),
    speech: speechRoutes(chat),
    transcriptions: transcriptionRoutes(chat),
    rerank: rerankRoutes(chat),
    moderations: moderationsRoutes(chat),
    clientSecrets: clientSecretRoutes(middle),
    images: imageRoutes({ ...priced, blobs }),
    quotes: quoteRoutes({ admit: pipeline.admit, quotables: quotables(middle, parts.targets), quote }),
    videos: videoRoutes({ ...videoRouteDeps, fetchInputs, idempotency, payments, quotes, quote }),
  };
  // Lines of batches call models alone: no tools that the gateway calls, and nothing that is kept for later requests.
  const { toolLoop: _toolLoop, ...ofLines } = { ...wireDeps, targets: () => ({}), kept: null, background: null };
  const ofLine = (name: string) => CHAT_WIRES.find((wire) => wire.name === name)!;
  const batches = await openBatches(middle, {
    webhooks: longWork.webhooks,
    runs,
    lineRoutes: (linePipeline) => ({
      ...Object.fromEntries(
        ['chat', 'completions', 'responses'].map((name) => [
          name,
          ofLine(name).routes({ ...ofLines, pipeline: linePipeline }),
        ]),
      ),
      embeddings: embeddingsRoutes({ ...ofLines, pipeline: linePipeline }),
    }),
  });
  await mount(server, { ...routes, ...batches.routes }, { prefix });
  await mount(server, chatWiresAt('/api'), { prefix: '/api' });
  await mount(server, { rerank: cohereRerankRoutes(chat) }, { prefix: '/api/v2' });
  await mount(server, { oauth: oauth.routes, oldTransport });
  await mount(server, { oldTransport }, { prefix });
  await mount(server, { mcp: mcp.routes });
  await mount(server, { mcp: mcp.routes }, { prefix });
  a2a.addCards(server);
  await mount(server, { push: longWork.push.routes, a2a: a2a.routes });
  await mount(server, { a2a: a2a.routes }, { prefix });
  const inject = server.inject.bind(server);
  const hasRoute: typeof server.hasRoute = (route) => server.hasRoute(route);
  const rpc = rpcRoutes({ inject, hasRoute, pipeline, config, version: VERSION, onError });
  await mount(server, { rpc }, { prefix });
  const realtime = openRealtime(middle);
  late.mcp = mcp;
  late.pollAgent = a2a.poll;
  late.batchWasEnded = batches.batches.wasEnded;
  watchTasks(middle, parts, {
    polls: { agent: a2a.poll, tool: mcp.pollTask, video: media.videos.poll },
    pollsAtExpiry: { video: media.videos.pollAtExpiry },
  });
  batches.start();
  return {
    ...middle,
    batches: batches.batches,
    files: batches.files,
    endTasks: { agent: a2a.endTask, tool: mcp.endTask, video: media.videos.end },
    cardKey,
    mcp,
    a2a,
    realtime,
    tasks: longWork.tasks,
    notices: longWork.notices,
    blobs,
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

/** Most elements of a list that a line of the log names. */
const LEFT_OUT_LOGGED = 5;

function openMcp(parts: RouteParts, { blobs }: Files) {
  const { config, database, identity, pipeline, catalog, idempotency, payments, logger } = parts;
  const { tasks, targets, listeners, keepAlive, now, elapsed, random, onError } = parts;
  return createMcp({
    pipeline,
    catalog,
    sessions: createSessionStore(database, { now }),
    pins: createToolPins(database, { now }),
    tasks,
    blobs,
    receiptOf: parts.pastReceipts.ofCall,
    present: parts.present,
    networkOf: parts.providerNetwork,
    random,
    onUnlisted: (error, { service, provider }) =>
      logger.debug({ err: error, service, provider: provider.name }, 'the tools of a service could not be listed'),
    onLeftOut: (leftOut, { service, provider }) =>
      logger.warn(
        { service, provider: provider.name, left_out: leftOut.length, first: leftOut.slice(0, LEFT_OUT_LOGGED) },
        leftOut.length === 0
          ? 'clients can read all lists of a service again'
          : 'parts of the lists of a service cannot be read by clients and are not listed',
      ),
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
    guard: originGuardOf(config),
    challenge: parts.oauth.challengeFor,
    strangers: config.oauth.issuer === null,
    onSessionEnded: parts.metrics.mcpSessionEnded,
    ...keepAlive,
  });
}

function openRealtime({ config, server, pipeline, clientSecrets, dial, trust, onError }: Middle) {
  return addRealtime(server, {
    pipeline,
    config,
    clientSecrets,
    dial,
    guard: originGuardOf(config),
    addressOf: ({ socket, headers }) => clientAddress(socket.remoteAddress ?? '', headers['x-forwarded-for'], trust),
    onError: (error) => onError(error, { id: '', method: 'GET', url: '/api/v1/realtime' }),
  });
}

const originGuardOf = (config: Config) =>
  createOriginGuard({
    ...config,
    allowedOrigins: [...config.allowedOrigins, ...config.corsOrigins],
    signInDomains: config.signIn.domains,
    bindHost: config.host,
  });

function openA2a(parts: RouteParts, { blobs }: Files, cardKey: CardKey) {
  const { config, identity, pipeline, catalog, idempotency, payments, logger } = parts;
  const { tasks, push, targets, listeners, keepAlive, now, elapsed, random, onError } = parts;
  return createA2a({
    pipeline,
    catalog,
    tasks,
    blobs,
    idempotency,
    payments,
    runTokens: parts.runTokens,
    listeners,
    push,
    targets,
    config,
    ownUrl: () => ownUrlOf(parts),
    sign: { ...cardKey, jku: null },
    auth: { openIdConnectUrl: discoveryOf(config.oauth.issuer), scopes: config.oauth.scopes },
    challenge: parts.oauth.challengeFor,
    origin: createCardOrigin({
      publicUrl: config.publicUrl,
      ownOrigin: parts.ownOrigin,
      listening: () => (LISTENS_EVERYWHERE.has(config.host) ? null : listeningAt(parts.server, config.host)),
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

/** The address of an issuer's metadata (OpenID Connect Discovery 1.0 section 4). */
const discoveryOf = (issuer: string | null): string | null =>
  issuer === null ? null : `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;

const QUOTED: Omit<TargetRequest, 'turns' | 'arguments'> = {
  contextId: null,
  taskId: null,
  maxTokens: null,
  stream: false,
};

/** Readers of calls that can be quoted, by the name of the primitive. */
function quotables({ config, now }: Pick<Middle, 'config' | 'now'>, targets: () => Partial<TargetAdapters>) {
  return {
    model: quotableModel({ config, now }),
    image: quotableImages(config),
    video: quotableVideos(config),
    tool: bridged('tool', () => targets().mcp),
    agent: bridged('agent', () => targets().a2a),
  } satisfies Record<string, Quotable>;
}

/** Quotes a tool or an agent. Its price does not depend on the content of the request, so a sample text is used. */
function bridged(member: 'tool' | 'agent', targetOf: () => TargetAdapter | undefined): Quotable {
  return async (body, { caller, requestId }) => {
    const name = body[member];
    if (typeof name !== 'string' || name === '')
      throw new GatewayError('invalid_request', `${member} must be the name of the ${member}`, { param: member });
    const target = targetOf();
    if (target === undefined) throw new GatewayError('not_found', `There are no ${member}s here`, { param: member });
    const given = body['arguments'];
    const ask: TargetRequest = {
      ...QUOTED,
      turns: [{ role: 'user', parts: [{ kind: 'text', text: 'A quote' }] }],
      arguments: member === 'tool' ? (isObject(given) ? given : {}) : null,
    };
    return target.toCall(name, ask, { caller, requestId, traceparent: null, wantsReceipt: false });
  };
}

const FETCH_MS = 15_000;

/**
 * Fetches files that requests name by their URLs. A URL must be https on the public internet; with `allowPrivate`, http
 * and private addresses are allowed too. The files count as bodies of requests.
 */
function createFetchInputs({ allowPrivate }: Config['webhooks'], bodies: Pick<RequestBodies, 'open'>): FetchInputs {
  const fetch = createGuardedFetch({ allowPrivate });
  return (account, network) => {
    const memory = bodies.open(account, network);
    return {
      async fetch(url, bytesMax) {
        try {
          const { status, body } = await fetch(url, {
            timeoutMs: FETCH_MS,
            bodyBytesMax: bytesMax,
            takeMemory: memory.grow,
          });
          if (status === 200) return body;
          throw new OutboundFailure(`the answer has status ${status}, and must have 200`);
        } catch (error) {
          if (!(error instanceof OutboundFailure)) throw error;
          throw new GatewayError('invalid_request', `could not be fetched: ${error.message}`, { cause: error });
        }
      },
      release: memory.release,
    };
  };
}
