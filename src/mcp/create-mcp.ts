import { randomUUID } from 'node:crypto';
import type { FastifyPluginAsync } from 'fastify';
import { createKeepAlive, createSeals, GatewayError } from '#wire';
import type { Config } from '#config';
import {
  pinned,
  type Catalog,
  createListenPlaces,
  createServe,
  type Idempotency,
  type Offer,
  type Payments,
  type Pipeline,
  type Speakers,
  type Tally,
  type ToolListings,
  type ToolPins,
} from '#gateway';
import type { Look, SessionStore, Tasks } from '#tasks';
import { createAnswerCall } from './call/answer-call.ts';
import { createAggregate } from './own/aggregate/aggregate.ts';
import type { OnShared } from './own/aggregate/slugs.ts';
import { createLegacyAggregate } from './own/aggregate/legacy-aggregate.ts';
import { createAggregateListen } from './own/aggregate/listen.ts';
import { createAggregateDoor } from './own/aggregate/standalone-door.ts';
import { createDecorate } from './catalogue/decorate.ts';
import { createToolCatalogue } from './catalogue/tool-catalogue.ts';
import { createClientRequests } from './turn/client-requests.ts';
import { createReach } from './call/free-call.ts';
import { createAnswerAsk } from './own/front/answer-ask.ts';
import { createFront } from './own/front/create-front.ts';
import { createSpokenSearch } from './own/front/spoken-search.ts';
import { createHeldCalls } from './servers/held-calls.ts';
import { createLegacyToLegacy } from './servers/legs/legacy-to-legacy.ts';
import { createLegacyToModern } from './servers/legs/legacy-to-modern.ts';
import { initializeResult } from './servers/legs/legacy-to-modern/initialize-result.ts';
import { createModernToLegacy } from './servers/legs/modern-to-legacy.ts';
import { createModernToModern } from './servers/legs/modern-to-modern.ts';
import { createListen } from './door/listen.ts';
import { createOwnLists } from './call/own-lists.ts';
import { createReadPaid } from './call/paid-request.ts';
import { createReplays } from './call/replays.ts';
import { createRunTurn } from './call/run-turn.ts';
import { mcpRoutes, type McpRoutesDeps } from './door/routes.ts';
import { createServers } from './servers/servers.ts';
import { boundedListens } from './call/bounded-listens.ts';
import { createSessionDoor } from './door/session-door.ts';
import type { SessionEnd } from './sessions/session-state.ts';
import { createSessions } from './sessions/sessions.ts';
import { createStandalone, type Knock } from './call/standalone.ts';
import { isTaskMethod } from './tasks/extension.ts';
import { createLookAtTask } from './tasks/look-at-task.ts';
import { createTaskDoor, type TaskAddress } from './tasks/task-door.ts';
import { createToolSpeaker, type ToolSpeaker } from './call/tool-speaker/tool-speaker.ts';
import type { TurnCallDeps } from './call/turn-call.ts';
import { createKnownAddress } from './door/known-address.ts';
import { createUpstreamSessions } from './servers/upstream-sessions.ts';

export interface McpOptions extends Pick<McpRoutesDeps, 'guard' | 'challenge' | 'strangers' | 'onError'> {
  readonly pipeline: Pipeline;
  readonly catalog: Catalog;
  readonly idempotency: Idempotency;
  readonly sessions: SessionStore;
  readonly pins: ToolPins;
  readonly tasks: Tasks;
  /** Told of two services that would have one name at `/mcp`. */
  readonly onShared: OnShared;
  /** The signed receipt of a settled call; null for one that was not charged. */
  readonly receiptOf: (callId: string) => Promise<string | null>;
  /** Whether the provider of an offer is connected. */
  readonly present: (offer: Offer) => boolean;
  readonly payments: Payments;
  readonly config: Pick<Config, 'limits' | 'upstream' | 'billing' | 'mcp' | 'tasks'>;
  /** What else than tools can be called, asked for with each request; default nothing. */
  readonly speakers?: () => Partial<Speakers>;
  /** Streams that each account listens on, whatever protocol they are of; default those of MCP alone. */
  readonly listeners?: Tally;
  /** For what clients carry, shared by all gateways of one installation. */
  readonly secret: Buffer;
  readonly version: string;
  readonly now: () => number;
  /** Milliseconds that only go on, whatever the machine's clock is set to. */
  readonly elapsed: () => number;
  readonly random: () => number;
  /** Told of servers whose lists could not be had. */
  readonly onUnlisted: (error: Error, offer: Offer) => void;
  /** Told of tasks that could not be looked at; it is tried again. */
  readonly onUnseen: (error: Error) => void;
  /** Told of every session of a client that this gateway ends. */
  readonly onSessionEnded?: (end: SessionEnd) => void;
  /** A stream that is silent this long gets a comment; default 15 s. */
  readonly keepAliveMs?: number;
}

/** MCP as one thing: its routes, and what it keeps. */
export interface Mcp extends ToolSpeaker {
  readonly routes: FastifyPluginAsync;
  /** The tools of all services, for the market's pages. */
  readonly listings: ToolListings;
  /** Looks at a task that a server keeps, that its end is seen although no client asks. */
  readonly lookAtTask: Look;
  /** Whether a server lists a tool. */
  hasTool(offer: Offer, tool: string): boolean;
  /** What is open at this moment. */
  counts(): { readonly sessions: number; readonly heldCalls: number; readonly listens: number };
  /** The gateway stops: those who only listen are sent away, so that nobody waits for them. */
  drain(): void;
  close(): Promise<void>;
}

/** A round of a call, with the time that a person takes to answer what a server asks. */
const STATE_TTL_MS = 10 * 60_000;
const KEEP_ALIVE_MS = 15_000;
const SWEEP_MS = 5_000;
/** A session in which lists are fetched is not kept for the next time. */
const OWN_SESSION_IDLE_MS = 5_000;
/** Of one page of a list: more than all that is kept of a server's lists. */
const OWN_REPLY_BYTES_MAX = 16 * 1024 * 1024;

export function createMcp(options: McpOptions): Mcp {
  const { pipeline, catalog, config, now, elapsed, version } = options;
  const { replyBytesMax } = config.upstream;
  // Cancelling is leaving: both have the same time to be paid for what is done all the same.
  const cancelGraceMs = config.billing.drainMs;
  const onError = (error: unknown) => options.onError(error, { id: '', method: 'POST', url: '/mcp' });
  const keepAlive = createKeepAlive(options.keepAliveMs ?? KEEP_ALIVE_MS);
  const seals = createSeals({ secret: options.secret, ttlMs: STATE_TTL_MS, now });
  const servers = createServers({ version, replyBytesMax, now: elapsed });

  const offerOf = (id: string): Offer | null => {
    try {
      return catalog.resolve(pinned(id), 'tool').offers.find((offer) => offer.id === id) ?? null;
    } catch (error) {
      // A provider may be gone for good.
      if (error instanceof GatewayError) return null;
      throw error;
    }
  };
  const sessions = createSessions({
    store: options.sessions,
    config: config.mcp,
    offerOf,
    initializeResult,
    reach: createReach(pipeline),
    now,
    ...(options.onSessionEnded ? { onEnded: options.onSessionEnded } : {}),
    onError,
  });
  const clientRequests = createClientRequests();
  const upstreamSessions = createUpstreamSessions({ version, replyBytesMax });
  const held = createHeldCalls({ nodeId: randomUUID() });
  const modernToLegacy = createModernToLegacy({ sessions: upstreamSessions, held, seals, replyBytesMax });
  // The schemas of tools are known once their servers have been asked, which takes the legs.
  const ownSessions = createUpstreamSessions({ version, replyBytesMax, idleMs: OWN_SESSION_IDLE_MS });
  const ownBytesMax = Math.min(replyBytesMax, OWN_REPLY_BYTES_MAX);
  const ownLegs = {
    modern: createModernToModern({ seals, replyBytesMax: ownBytesMax, schemaOf: () => null, version }),
    legacy: createModernToLegacy({ sessions: ownSessions, held, seals, replyBytesMax: ownBytesMax }),
  };
  const catalogue = createToolCatalogue({
    ...createOwnLists({ pipeline, servers, legs: ownLegs, version }),
    catalog,
    pins: options.pins,
    present: options.present,
    now,
    elapsed,
    random: options.random,
    onError: options.onUnlisted,
  });
  const { schemaOf } = catalogue;
  const decorate = createDecorate({ catalogue, now });
  const modernToModern = createModernToModern({ seals, replyBytesMax, schemaOf, version });
  const raw = createLegacyToLegacy({ replyBytesMax, renew: sessions.renew, cancelGraceMs });
  const bridge = createLegacyToModern({ clientRequests, schemaOf, replyBytesMax, cancelGraceMs });
  const places = createListenPlaces({
    max: config.limits.listensMax,
    ...(options.listeners ? { ofAccount: options.listeners } : {}),
  });
  const listening = { bytesMax: replyBytesMax, renew: sessions.renew, listenModern: bridge.listenModern };
  const listen = createListen({ ...listening, places });
  const replays = createReplays({ now: elapsed });

  const answerCall = createAnswerCall({
    pipeline,
    serve: createServe({ idempotency: options.idempotency, payments: options.payments }),
    onError,
  });
  const readPaid = createReadPaid(options.payments);
  const asksOfTasks = { tasks: options.tasks, replyBytesMax, ttlMs: config.tasks.ttlMs, version, now };
  const turns: TurnCallDeps = {
    keepTask: asksOfTasks,
    servers,
    legs: {
      modern: { modern: modernToModern, legacy: modernToLegacy },
      bare: { modern: modernToModern, legacy: modernToLegacy },
      legacy: { modern: bridge.leg, legacy: raw.leg },
    },
    schemaOf,
    lacks(offer, tool) {
      const listing = catalogue.listingOf(offer);
      if (!listing || listing.truncated || listing.tools.has(tool)) return false;
      return catalog
        .resolve(offer.service, 'tool')
        .offers.some((other) => other.id !== offer.id && catalogue.schemaOf(other, tool) !== null);
    },
    decorate: (result, offer, { session, service }) =>
      decorate(result, offer, session ? [offer] : catalog.resolve(service, 'tool').offers),
  };
  const runTurn = createRunTurn({ answerCall, ...turns });
  const tools = createToolSpeaker({ ...turns, catalog, catalogue, limits: config.limits, bytesMax: replyBytesMax });
  const { receipts } = config.billing;
  const toService = createStandalone({ runTurn, readPaid, seals, receipts });
  const toServiceInPlaces = boundedListens(toService, places);
  const speakers = options.speakers ?? (() => ({}));
  const answerAsk = createAnswerAsk({ answerCall, readPaid, speakers, receipts, charsMax: replyBytesMax });
  const aggregate = createAggregate({
    catalogue,
    version,
    spoken: createSpokenSearch({ speakers, catalog }),
    onShared: options.onShared,
  });
  const taskDoor = createTaskDoor({ ...asksOfTasks, pipeline, receipts, receiptOf: options.receiptOf });
  const listenToAll = createAggregateListen({ aggregate, catalogue, toService, places, bytesMax: replyBytesMax });
  const toAll = createAggregateDoor({ aggregate, toService, listen: listenToAll, answerAsk });
  const toSessions = {
    pipeline,
    sessions,
    replays,
    servers,
    runTurn,
    readPaid,
    raw,
    bridge,
    clientRequests,
    receipts,
    keepAlive,
    onError,
  };
  const sessionDoor = createSessionDoor({ ...toSessions, listen });
  // A stream of the aggregate is counted as one, whatever it is made of. Each part of it is a session, and no
  // session has two.
  const partPlaces = createListenPlaces({ max: config.mcp.sessionsMax });
  const legacyAggregate = createLegacyAggregate({
    ...toSessions,
    aggregate,
    answerAsk,
    catalogue,
    listen: createListen({ ...listening, places: partPlaces }),
    places,
    store: options.sessions,
    config: config.mcp,
    bytesMax: replyBytesMax,
    now,
  });
  const front = createFront({
    speakers,
    catalog,
    catalogue,
    version,
    answerAsk,
    store: options.sessions,
    config: config.mcp,
    keepAlive,
    now,
    onError,
  });
  const knownAddress = createKnownAddress({ catalog, pipeline, speakers });
  const addressOf = (service: string | null, { caller, selection }: Knock): TaskAddress => {
    if (service === null) return { ...aggregate, includes: aggregate.scope(caller, selection).includes };
    return { includes: (name) => service === name || service.endsWith(`:${name}`), toClient: (text) => text };
  };
  const doorOf = (service: string | null) => {
    if (service === null) return legacyAggregate.door;
    return front.has(service) ? front.sessionDoor : sessionDoor;
  };

  const sweeper = setInterval(() => {
    replays.sweep();
    sessions.sweep().catch(onError);
    legacyAggregate.sessions.sweep().catch(onError);
    front.sessions.sweep().catch(onError);
  }, SWEEP_MS).unref();

  return {
    routes: mcpRoutes({
      ...options,
      admit: pipeline.admit,
      count: pipeline.count,
      limits: config.limits,
      keepAlive,
      async standalone(service, request, knock, answer) {
        if (isTaskMethod(request.message.method)) await taskDoor(addressOf(service, knock), request, knock, answer);
        else if (service === null) await toAll(knock.selection, request, knock, answer);
        else if (front.has(service)) await front.standalone(service, request, knock, answer);
        else {
          await knownAddress(service);
          await toServiceInPlaces(service, request, knock, answer);
        }
      },
      legacy: {
        async post(service, inbound, ...request) {
          if (service !== null && inbound.kind === 'initialize' && !front.has(service)) await knownAddress(service);
          await doorOf(service).post(service, inbound, ...request);
        },
        listen: (service, ...request) => doorOf(service).listen(service, ...request),
        end: (service, ...request) => doorOf(service).end(service, ...request),
      },
    }),
    listings: catalogue,
    ...tools,
    lookAtTask: createLookAtTask({ ...asksOfTasks, pipeline, onUnseen: options.onUnseen }),
    hasTool: (offer, tool) => catalogue.schemaOf(offer, tool) !== null,
    counts: () => ({
      sessions: sessions.count + legacyAggregate.sessions.count + front.sessions.count,
      heldCalls: held.size,
      listens: places.count,
    }),
    drain() {
      places.drain();
      partPlaces.drain();
      catalogue.close();
      // Nobody can go on with what is held, as no round is taken any more. It would keep the tunnels that it runs
      // through open.
      held.close();
      upstreamSessions.drain();
      ownSessions.drain();
    },
    async close() {
      clearInterval(sweeper);
      held.close();
      catalogue.close();
      await Promise.all([upstreamSessions.close(), ownSessions.close()]);
      sessions.close();
      legacyAggregate.sessions.close();
      front.sessions.close();
    },
  };
}
