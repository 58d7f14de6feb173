import type { KeepAlive, Seals } from '#wire';
import { createStreamQuota } from '#gateway';
import type { AnswerCall } from '../call/answer-call.ts';
import { boundedListens } from '../call/bounded-listens.ts';
import { createReadPaid } from '../call/paid-request.ts';
import { createReplays } from '../call/replays.ts';
import type { RunRequest } from '../call/run-request.ts';
import { createStateless, type RequestContext } from '../call/stateless.ts';
import type { ToolCatalogue } from '../catalogue/tool-catalogue.ts';
import type { McpOptions } from '../create-mcp.ts';
import { createAggregate } from '../own/aggregate/aggregate.ts';
import { createLegacyAggregate } from '../own/aggregate/legacy-aggregate.ts';
import { createAggregateListen } from '../own/aggregate/listen.ts';
import { createAggregateStateless } from '../own/aggregate/stateless.ts';
import { createAnswerAsk } from '../own/builtin/answer-ask.ts';
import { createBuiltinServers } from '../own/builtin/create-builtin-servers.ts';
import { createBridgedSearch } from '../own/builtin/bridged-search.ts';
import type { EraTranslators } from '../servers/create-translators.ts';
import type { Servers } from '../servers/servers.ts';
import type { CancelNotes } from '../sessions/cancel-notes.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { AskOfTaskDeps } from '../tasks/ask-of-task.ts';
import { isTaskMethod } from '../tasks/extension.ts';
import { createTaskEndpoint, type TaskAddress, type TaskEndpointDeps } from '../tasks/task-endpoint.ts';
import type { ClientRequests } from '../request/client-requests.ts';
import { createKnownAddress } from './known-address.ts';
import { createListen } from './listen.ts';
import type { SessionTransport } from './session-transport.ts';
import type { StatelessTransport } from './routes.ts';
import { createServiceTransport } from './service-transport.ts';

interface TransportsDeps {
  readonly options: McpOptions;
  readonly servers: Servers;
  readonly sessions: Sessions;
  readonly cancels: CancelNotes;
  readonly catalogue: ToolCatalogue;
  readonly translators: Pick<EraTranslators, 'raw' | 'bridge'>;
  readonly seals: Seals;
  readonly clientRequests: ClientRequests;
  readonly answerCall: AnswerCall;
  readonly runRequest: RunRequest;
  readonly asksOfTasks: AskOfTaskDeps & Pick<TaskEndpointDeps, 'tasks'>;
  readonly keepAlive: KeepAlive;
  readonly onError: (error: unknown) => void;
}

/** The routes of all addresses, with their open sessions and streams. */
export interface Endpoints {
  readonly stateless: StatelessTransport;
  readonly legacy: SessionTransport;
  counts(): { readonly sessions: number; readonly listens: number };
  /** Ends all streams of clients that only listen. */
  drain(): void;
  close(): void;
}

const SWEEP_MS = 5_000;

export function createTransports(deps: TransportsDeps): Endpoints {
  const { options, servers, sessions, cancels, catalogue, translators, answerCall, asksOfTasks, keepAlive, onError } =
    deps;
  const { pipeline, catalog, config, version, now, targets = () => ({}) } = options;
  const { replyBytesMax: bytesMax } = config.upstream;
  const { receipts } = config.billing;
  const readPaid = createReadPaid(options.payments);
  const replays = createReplays({ now: options.elapsed });
  const places = createStreamQuota({
    max: config.limits.listensMax,
    ...(options.listeners ? { ofAccount: options.listeners } : {}),
  });
  // A stream of the aggregate counts as one. Its parts are sessions with one stream each; this bounds those.
  const partPlaces = createStreamQuota({ max: config.mcp.sessionsMax });
  const listening = { bytesMax, renew: sessions.renew, listenModern: translators.bridge.listenModern };
  const kept = { store: options.sessions, config: config.mcp, replays, keepAlive, now, onError };

  const toService = createStateless({ ...deps, readPaid, receipts });
  const answerAsk = createAnswerAsk({ answerCall, readPaid, targets, receipts, charsMax: bytesMax });
  const bridged = createBridgedSearch({ targets, catalog });
  const aggregate = createAggregate({ catalogue, version, bridged, onShared: options.onShared });
  const listen = createAggregateListen({ aggregate, catalogue, toService, places, bytesMax });
  const toSessions = { ...deps, ...translators, pipeline, servers, readPaid, receipts, replays };
  const legacyAggregate = createLegacyAggregate({
    ...toSessions,
    ...kept,
    aggregate,
    answerAsk,
    listen: createListen({ ...listening, places: partPlaces }),
    places,
    bytesMax,
  });
  const builtinServers = createBuiltinServers({ ...kept, cancels, targets, catalog, catalogue, version, answerAsk });
  const all = [sessions, legacyAggregate.sessions, builtinServers.sessions];
  const sweeper = setInterval(() => {
    replays.sweep();
    for (const one of [...all, cancels]) one.sweep().catch(onError);
  }, SWEEP_MS).unref();

  const toAll = createAggregateStateless({ aggregate, toService, listen, answerAsk });
  const toServiceInPlaces = boundedListens(toService, places);
  const serviceTransport = createServiceTransport({ ...toSessions, listen: createListen({ ...listening, places }) });
  const taskEndpoint = createTaskEndpoint({ ...asksOfTasks, pipeline, receipts, receiptOf: options.receiptOf });
  const knownAddress = createKnownAddress({ catalog, pipeline, targets });

  const addressOf = (service: string | null, { caller, selection }: RequestContext): TaskAddress => {
    if (service === null) return { ...aggregate, includes: aggregate.scope(caller, selection).includes };
    return { includes: (name) => service === name || service.endsWith(`:${name}`), toClient: (text) => text };
  };
  const transportOf = (service: string | null) => {
    if (service === null) return legacyAggregate.transport;
    return builtinServers.has(service) ? builtinServers.serviceTransport : serviceTransport;
  };

  return {
    stateless(service, request, context, answer) {
      if (isTaskMethod(request.message.method))
        return taskEndpoint(addressOf(service, context), request, context, answer);
      if (service === null) return toAll(context.selection, request, context, answer);
      if (builtinServers.has(service)) return builtinServers.stateless(service, request, context, answer);
      const known = knownAddress(service);
      const run = () => toServiceInPlaces(service, request, context, answer);
      return known === null ? run() : known.then(run);
    },
    legacy: {
      async post(service, inbound, ...request) {
        if (service !== null && inbound.kind === 'initialize' && !builtinServers.has(service))
          await knownAddress(service);
        await transportOf(service).post(service, inbound, ...request);
      },
      listen: (service, ...request) => transportOf(service).listen(service, ...request),
      end: (service, ...request) => transportOf(service).end(service, ...request),
    },
    counts: () => ({ sessions: all.reduce((sum, one) => sum + one.count(), 0), listens: places.count }),
    drain() {
      places.drain();
      partPlaces.drain();
    },
    close() {
      clearInterval(sweeper);
      for (const one of all) one.close();
    },
  };
}
