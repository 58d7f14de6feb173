import { type KeepAlive, type Seals, GatewayError, printable } from '#wire';
import { createStreamQuota, type Catalog, nearestHint, type Pipeline, type TargetAdapters } from '#gateway';
import type { AnswerCall } from '../call/answer-call.ts';
import { boundedListens, createStateless, type RequestContext } from '../call/stateless.ts';
import { createReadPaid } from '../call/paid-request.ts';
import { createReplays } from '../call/replays.ts';
import type { RunRequest } from '../call/request-call.ts';
import type { ToolCatalogue } from '../catalogue/tool-catalogue.ts';
import type { McpOptions } from '../create-mcp.ts';
import { createAggregate } from '../own/aggregate/aggregate.ts';
import { createLegacyAggregate } from '../own/aggregate/session-transport.ts';
import { createAggregateListen } from '../own/aggregate/listen.ts';
import { createAggregateStateless } from '../own/aggregate/route-request.ts';
import { createAnswerAsk } from '../own/builtin/answer-ask.ts';
import { createBuiltinServers } from '../own/builtin/builtin-servers.ts';
import { createBridgedSearch, fullName, BRIDGED_KINDS, WORD } from '../own/builtin/bridged-services.ts';
import type { EraTranslators } from '../translators/create-translators.ts';
import type { Servers } from '../servers/servers.ts';
import type { CancelNotes } from '../request/cancellation.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { AskOfTaskDeps } from '../tasks/ask-of-task.ts';
import { isTaskMethod } from '../tasks/extension.ts';
import { createTaskEndpoint, type TaskAddress, type TaskEndpointDeps } from '../tasks/task-endpoint.ts';
import type { ClientRequests } from '../request/client-requests.ts';
import { createListen } from './listen.ts';
import type { SessionTransport } from './session-transport.ts';
import type { StatelessTransport } from './routes.ts';
import { createServiceTransport } from './session-messages.ts';

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
interface Endpoints {
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

interface KnownAddressDeps {
  readonly catalog: Pick<Catalog, 'resolve' | 'offers'>;
  readonly pipeline: Pick<Pipeline, 'lookUp'>;
  readonly targets: () => Partial<TargetAdapters>;
}

/** Most names of each kind that a wrong name is compared with. */
const NEAR_MAX = 1_000;

/**
 * Returns null if a tool service has the name. Else looks it up: resolves if any gateway has such a service. Rejects
 * with GatewayError `not_found`, with the nearest names, if no gateway has one.
 */
function createKnownAddress({
  catalog,
  pipeline,
  targets,
}: KnownAddressDeps): (service: string) => Promise<void> | null {
  function* names(): Generator<string> {
    yield* new Set(catalog.offers('tool').map(({ service }) => service));
    for (const kind of BRIDGED_KINDS)
      for (const { name } of targets()[kind]?.list(NEAR_MAX) ?? []) yield fullName(kind, name);
  }

  const isKnown = (service: string): boolean => {
    try {
      catalog.resolve(service, 'tool');
      return true;
    } catch {
      return false;
    }
  };
  const lookUp = async (service: string): Promise<void> => {
    const known = pipeline.lookUp(service, 'tool');
    if (known !== null) await known;
    try {
      catalog.resolve(service, 'tool');
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'not_found') throw error;
      const kind = BRIDGED_KINDS.find((one) => service.startsWith(`${one}/`));
      const word = kind === undefined ? 'Service' : WORD[kind].replace(/^./, (letter) => letter.toUpperCase());
      const hint = nearestHint(service, names());
      throw new GatewayError('not_found', `${word} not found: ${printable(service)}${hint === '' ? '' : `. ${hint}`}`);
    }
  };
  return (service) => (isKnown(service) ? null : lookUp(service));
}
