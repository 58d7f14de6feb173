import { randomUUID } from 'node:crypto';
import type { FastifyPluginAsync } from 'fastify';
import { createKeepAlive } from '#http';
import { createSeals, printable, type SealSecret } from '#security';
import type { Access } from '#accounts';
import { GatewayError } from '#errors';
import type { Config } from '#config';
import { pinned, type Catalog, type LeftOut, type Offer, type ToolListings, type ToolPins } from '#catalog';
import type { Idempotency, Pipeline } from '#call';
import { createStreamQuota, type StreamShares } from '#limits';
import type { Payments } from '#payments';
import type { TargetAdapters } from '#bridge';
import { type Blobs, createKeptReplies } from '#files';
import type { EndTask, TaskPoll, Tasks } from '#tasks';
import type { SessionStore } from './request/session-store.ts';
import { createAnswerCall } from './call/answer-call.ts';
import type { OnShared } from './own/aggregate/names.ts';
import { createDecorate } from './catalogue/decorate.ts';
import type { ToolCatalogue } from './catalogue/tool-catalogue.ts';
import { createOwnCatalogue } from './call/own-catalogue.ts';
import { createClientRequests } from './request/client-requests.ts';
import { createFreeRequest } from './request/free-call.ts';
import { createHeldCalls } from './servers/held-calls.ts';
import { initializeResult } from './request/legacy-to-modern-text.ts';
import { createRunRequest, createUnlistedTool, type RequestCallDeps } from './call/request-call.ts';
import { mcpRoutes, type McpRoutesDeps, type StatelessTransport } from './http/routes.ts';
import { createKnownAddress } from './own/known-address.ts';
import { createListen } from './http/listen.ts';
import type { SessionTransport } from './http/session-transport.ts';
import { createServiceTransport } from './http/session-messages.ts';
import { boundedListens, createStateless, type RequestContext } from './call/stateless.ts';
import { createReadPaid } from './request/paid-request.ts';
import { createReplays } from './call/replays.ts';
import { createAggregate } from './own/aggregate/aggregate.ts';
import type { IsStranger } from './own/aggregate/strangers.ts';
import { createLegacyAggregate } from './own/aggregate/session-transport.ts';
import { createAggregateListen } from './own/aggregate/listen.ts';
import { createAggregateStateless } from './own/aggregate/route-request.ts';
import { createAnswerAsk } from './own/builtin/answer-ask.ts';
import { createBuiltinServers } from './own/builtin/builtin-servers.ts';
import { createBridgedSearch } from './own/builtin/bridged-services.ts';
import { isTaskMethod } from './request/extension.ts';
import { createTaskEndpoint, type TaskAddress } from './http/task-endpoint.ts';
import { createTranslators } from './call/create-translators.ts';
import { createServers } from './servers/servers.ts';
import { createCancelNotes } from './request/cancellation.ts';
import { createSessions, type SessionEnd } from './sessions/sessions.ts';
import { createPollTask } from './tasks/ask-of-task.ts';
import { createEndTask } from './tasks/end-task.ts';
import { createToolTarget, type ToolTarget } from './call/tool-target.ts';
import { createUpstreamSessions } from './servers/upstream-sessions.ts';

interface McpOptions extends Pick<McpRoutesDeps, 'guard' | 'challenge' | 'strangers' | 'onError' | 'onRefused'> {
  readonly pipeline: Pipeline;
  readonly catalog: Catalog;
  readonly idempotency: Idempotency;
  readonly sessions: SessionStore;
  readonly pins: ToolPins;
  readonly tasks: Tasks;
  /** Stores large outcomes, so that a repeated request gets them again. Default: they are not stored. */
  readonly blobs?: Pick<Blobs, 'write' | 'find' | 'read'>;
  /** Called with two services that would have the same name at `/mcp`. */
  readonly onShared: OnShared;
  readonly receiptOf: (callId: string) => Promise<string | null>;
  readonly present: (offer: Offer) => boolean;
  readonly networkOf: (offer: Offer) => string | null;
  /** Default: nobody is one. */
  readonly isStranger?: IsStranger;
  readonly payments: Payments;
  readonly config: Pick<Config, 'limits' | 'upstream' | 'billing' | 'mcp' | 'tasks'>;
  /** The agents and models that can be called. Asked for again with each request. Default: none. */
  readonly targets?: () => Partial<TargetAdapters>;
  /** The streams that each account listens on, over all protocols. Default: those of MCP alone. */
  readonly listeners?: StreamShares;
  /** Seals the states that clients carry. All gateways of one installation share it. */
  readonly secret: SealSecret;
  readonly version: string;
  readonly now: () => number;
  /** Milliseconds of a monotonic clock. */
  readonly elapsed: () => number;
  readonly random: () => number;
  /** Called with each server whose lists could not be read. */
  readonly onUnlisted: (error: Error, offer: Offer) => void;
  readonly onLeftOut?: (leftOut: readonly LeftOut[], offer: Offer) => void;
  /** Called when tasks could not be read. The gateway tries again. */
  readonly onUnseen: (error: Error) => void;
  /** Called with every session of a client that this gateway ends. */
  readonly onSessionEnded?: (end: SessionEnd) => void;
  /** After this much silence a stream gets a comment. Default: 15 s. */
  readonly keepAliveMs?: number;
}

export interface Mcp extends ToolTarget {
  readonly routes: FastifyPluginAsync;
  readonly listings: ToolListings;
  readonly pollTask: TaskPoll;
  readonly endTask: EndTask;
  hasTool(offer: Offer, tool: string): boolean;
  counts(): { readonly sessions: number; readonly heldCalls: number; readonly listens: number };
  /** Called when the gateway stops. Ends the streams of clients that only listen. */
  drain(): void;
  close(): Promise<void>;
}

/** How long a state between two rounds is valid. It is long, because a person may have to answer. */
const STATE_TTL_MS = 10 * 60_000;
const KEEP_ALIVE_MS = 15_000;
const SWEEP_MS = 5_000;

export function createMcp(options: McpOptions): Mcp {
  const { pipeline, catalog, config, now, elapsed, version, payments, targets = () => ({}) } = options;
  const { replyBytesMax } = config.upstream;
  const { receipts } = config.billing;
  const onError = (error: unknown) => options.onError(error, { id: '', method: 'POST', url: '/mcp' });
  const keepAlive = createKeepAlive(options.keepAliveMs ?? KEEP_ALIVE_MS);
  const seals = createSeals({ secret: options.secret, ttlMs: STATE_TTL_MS, now });

  // The servers, and the sessions with them.
  const servers = createServers({ version, replyBytesMax, now: elapsed, networkOf: options.networkOf });
  const sessions = createSessions({
    store: options.sessions,
    config: config.mcp,
    offerOf: (id) => offerOf(catalog, id),
    initializeResult,
    freeRequest: createFreeRequest(pipeline),
    now,
    ...(options.onSessionEnded ? { onEnded: options.onSessionEnded } : {}),
    onError,
  });
  const cancels = createCancelNotes({ store: options.sessions, now, onError });
  const clientRequests = createClientRequests();
  const upstreamSessions = createUpstreamSessions({ version, replyBytesMax });
  const held = createHeldCalls({ nodeId: randomUUID() });
  // Schemas of tools are known only after their servers were asked. The catalogue asks with its own translators.
  const ownCatalogue = createOwnCatalogue({ ...options, replyBytesMax, servers, held, seals });
  const { catalogue } = ownCatalogue;
  const { schemaOf, listingOf } = catalogue;
  const decorate = createDecorate({ catalogue, now });
  const { translators, raw, bridge } = createTranslators({
    sessions: upstreamSessions,
    held,
    seals,
    clientRequests,
    schemaOf,
    renew: sessions.renew,
    hasEnded: sessions.hasEnded,
    cancels,
    drainMs: config.billing.drainMs,
    replyBytesMax,
    version,
  });

  // Calls.
  const readPaid = createReadPaid(payments);
  const answerCall = createAnswerCall({
    pipeline,
    paid: { idempotency: options.idempotency, payments },
    onError,
    onRefused: options.onRefused,
    ...(options.blobs ? { largeReplies: createKeptReplies(options.blobs, config.upstream.imagesReplyBytesMax) } : {}),
  });
  const asksOfTasks = { tasks: options.tasks, replyBytesMax, ttlMs: config.tasks.ttlMs, version, now };
  const toCalls: RequestCallDeps = {
    keepTask: asksOfTasks,
    servers,
    translators,
    schemaOf,
    listingOf,
    refusal: (offer, tool, access) =>
      unlistedFor(access, catalogue, offer, tool) ?? refusalOf(catalog, catalogue, offer, tool),
    admitted: (offers, tool) => admitted(offers, catalogue, tool),
    decorate: (result, offer, { session, service }) =>
      decorate(result, offer, session ? [offer] : catalog.resolve(service, 'tool').offers),
  };
  const runRequest = createRunRequest({
    answerCall,
    unlistedTool: createUnlistedTool({ catalog, catalogue }),
    ...toCalls,
  });
  const tools = createToolTarget({ ...toCalls, catalog, catalogue, limits: config.limits, bytesMax: replyBytesMax });
  const toService = createStateless({ runRequest, readPaid, seals, receipts });
  const taskEndpoint = createTaskEndpoint({ ...asksOfTasks, pipeline, receipts, receiptOf: options.receiptOf });

  // The gateway's own servers, and sessions with all kinds of servers.
  const replays = createReplays({ now: elapsed });
  const places = createStreamQuota({
    max: config.limits.listensMax,
    ...(options.listeners ? { ofAccounts: options.listeners } : {}),
  });
  // A stream of the aggregate counts as one. Its parts are sessions with one stream each; this bounds those.
  const partPlaces = createStreamQuota({ max: config.mcp.sessionsMax });
  const listening = { bytesMax: replyBytesMax, renew: sessions.renew, listenModern: bridge.listenModern };
  const sessionParts = { store: options.sessions, config: config.mcp, replays, keepAlive, now, onError };
  const toSessions = {
    pipeline,
    sessions,
    servers,
    runRequest,
    admitted: toCalls.admitted,
    readPaid,
    raw,
    bridge,
    cancels,
    clientRequests,
    receipts,
    ...sessionParts,
  };
  const answerAsk = createAnswerAsk({ answerCall, readPaid, targets, receipts, charsMax: replyBytesMax });
  const { isStranger = () => false } = options;
  const bridged = createBridgedSearch({ targets, catalog, isStranger });
  const aggregate = createAggregate({ catalogue, version, bridged, isStranger, onShared: options.onShared });
  const listen = createAggregateListen({ aggregate, catalogue, toService, places, bytesMax: replyBytesMax });
  const toAll = createAggregateStateless({ aggregate, toService, listen, answerAsk });
  const legacyAggregate = createLegacyAggregate({
    ...toSessions,
    catalogue,
    aggregate,
    answerAsk,
    listen: createListen({ ...listening, places: partPlaces }),
    places,
    bytesMax: replyBytesMax,
  });
  const builtinServers = createBuiltinServers({
    ...sessionParts,
    cancels,
    targets,
    catalog,
    catalogue,
    version,
    answerAsk,
  });
  const serviceTransport = createServiceTransport({ ...toSessions, listen: createListen({ ...listening, places }) });
  const allSessions = [sessions, legacyAggregate.sessions, builtinServers.sessions];
  const sweeper = setInterval(() => {
    replays.sweep();
    for (const one of [...allSessions, cancels]) one.sweep().catch(onError);
  }, SWEEP_MS).unref();

  // The address of a request decides who answers it.
  const toServiceInPlaces = boundedListens(toService, places);
  const knownAddress = createKnownAddress({ catalog, pipeline, targets });
  const addressOf = (service: string | null, { caller, selection }: RequestContext): TaskAddress => {
    if (service === null) return { ...aggregate, includes: aggregate.scope(caller, selection).includes };
    return { includes: (name) => service === name || service.endsWith(`:${name}`), toClient: (text) => text };
  };
  const stateless: StatelessTransport = (service, request, context, answer) => {
    if (isTaskMethod(request.message.method))
      return taskEndpoint(addressOf(service, context), request, context, answer);
    if (service === null) return toAll(context.selection, request, context, answer);
    if (builtinServers.has(service)) return builtinServers.stateless(service, request, context, answer);
    const known = knownAddress(service);
    const run = () => toServiceInPlaces(service, request, context, answer);
    return known === null ? run() : known.then(run);
  };
  const transportOf = (service: string | null) => {
    if (service === null) return legacyAggregate.transport;
    return builtinServers.has(service) ? builtinServers.serviceTransport : serviceTransport;
  };
  const legacy: SessionTransport = {
    async post(service, inbound, ...request) {
      if (service !== null && inbound.kind === 'initialize' && !builtinServers.has(service))
        await knownAddress(service);
      await transportOf(service).post(service, inbound, ...request);
    },
    listen: (service, ...request) => transportOf(service).listen(service, ...request),
    end: (service, ...request) => transportOf(service).end(service, ...request),
  };

  return {
    routes: mcpRoutes({
      ...options,
      admit: pipeline.admit,
      count: pipeline.count,
      limits: config.limits,
      keepAlive,
      stateless,
      legacy,
    }),
    listings: catalogue,
    ...tools,
    pollTask: createPollTask({ ...asksOfTasks, pipeline, onUnseen: options.onUnseen }),
    endTask: createEndTask({ ...asksOfTasks, pipeline, onUnseen: options.onUnseen }),
    hasTool: (offer, tool) => catalogue.schemaOf(offer, tool) !== null,
    counts: () => ({
      sessions: allSessions.reduce((sum, one) => sum + one.count(), 0),
      heldCalls: held.size,
      listens: places.count,
    }),
    drain() {
      places.drain();
      partPlaces.drain();
      // No later round can go on with a held call now, and an open held call would keep its tunnel open.
      held.close();
      upstreamSessions.drain();
      ownCatalogue.drain();
    },
    async close() {
      held.close();
      await Promise.all([upstreamSessions.close(), ownCatalogue.close()]);
      clearInterval(sweeper);
      for (const one of allSessions) one.close();
      cancels.close();
    },
  };
}

function offerOf(catalog: Catalog, id: string): Offer | null {
  try {
    return catalog.resolve(pinned(id), 'tool').offers.find((offer) => offer.id === id) ?? null;
  } catch (error) {
    if (error instanceof GatewayError) return null;
    throw error;
  }
}

/**
 * A stranger beside the one to whom a service belongs may sell the tools that this one lists, and nothing else: neither
 * tools of its own nor lists, prompts and texts. Who names its provider gets those.
 */
function admitted(offers: readonly Offer[], catalogue: ToolCatalogue, tool: string | null): readonly Offer[] {
  if (offers.length < 2) return offers;
  const definers = catalogue.definers(offers);
  const isSold = tool !== null && definers.some((offer) => catalogue.listingOf(offer)?.tools.has(tool));
  return isSold ? offers : definers;
}

/** The error of a call of a tool that its server has to list by this name, and does not: see Access.onlyListed. */
function unlistedFor(access: Access | null, catalogue: ToolCatalogue, offer: Offer, tool: string): GatewayError | null {
  if (access === null || !access.onlyListed(offer.service, tool)) return null;
  const listing = catalogue.listingOf(offer);
  if (listing?.tools.has(tool)) return null;
  const fullName = `the tool ${printable(tool)} of ${offer.service}`;
  if (listing === null)
    return new GatewayError(
      'service_unavailable',
      `The list of tools of ${offer.service} is not known at the moment, and this API key may use only some of them: retry shortly, or name ${fullName} in the key's allowed_services`,
    );
  return new GatewayError(
    'permission_denied',
    `This API key may not use ${fullName}: it is limited to some tools, and the server does not list this one. Name it in the key's allowed_services`,
    { param: 'params.name' },
  );
}

/**
 * The error of a call of a tool that an offer does not list, if another offer of its service lists it, or if it is left
 * out because clients cannot read its definition. Null for a tool that its server may have.
 */
function refusalOf(catalog: Catalog, catalogue: ToolCatalogue, offer: Offer, tool: string): GatewayError | null {
  const listing = catalogue.listingOf(offer);
  if (!listing || listing.tools.has(tool)) return null;
  const broken = listing.leftOut.find(({ kind, name }) => kind === 'tool' && name === tool);
  if (broken)
    return new GatewayError(
      'invalid_request',
      `There is no tool ${printable(tool)} here: its definition cannot be read (${broken.fault}), so it is not listed`,
      { param: 'params.name' },
    );
  if (listing.truncated) return null;
  const { offers } = catalog.resolve(offer.service, 'tool');
  if (!offers.some((other) => other.id !== offer.id && catalogue.schemaOf(other, tool) !== null)) return null;
  return new GatewayError('unprocessable', `${offer.provider.name} has no tool ${printable(tool)}`, { param: 'name' });
}
