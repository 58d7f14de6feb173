import type { KeepAlive, Seals } from '#wire';
import { createListenPlaces } from '#gateway';
import type { AnswerCall } from '../call/answer-call.ts';
import { boundedListens } from '../call/bounded-listens.ts';
import { createReadPaid } from '../call/paid-request.ts';
import { createReplays } from '../call/replays.ts';
import type { RunTurn } from '../call/run-turn.ts';
import { createStandalone, type RequestContext } from '../call/standalone.ts';
import type { ToolCatalogue } from '../catalogue/tool-catalogue.ts';
import type { McpOptions } from '../create-mcp.ts';
import { createAggregate } from '../own/aggregate/aggregate.ts';
import { createLegacyAggregate } from '../own/aggregate/legacy-aggregate.ts';
import { createAggregateListen } from '../own/aggregate/listen.ts';
import { createAggregateDoor } from '../own/aggregate/standalone-door.ts';
import { createAnswerAsk } from '../own/front/answer-ask.ts';
import { createFront } from '../own/front/create-front.ts';
import { createSpokenSearch } from '../own/front/spoken-search.ts';
import type { Legs } from '../servers/create-legs.ts';
import type { Servers } from '../servers/servers.ts';
import type { CancelNotes } from '../sessions/cancel-notes.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { AskOfTaskDeps } from '../tasks/ask-of-task.ts';
import { isTaskMethod } from '../tasks/extension.ts';
import { createTaskDoor, type TaskAddress, type TaskDoorDeps } from '../tasks/task-door.ts';
import type { ClientRequests } from '../turn/client-requests.ts';
import { createKnownAddress } from './known-address.ts';
import { createListen } from './listen.ts';
import type { LegacyDoor } from './legacy-door.ts';
import type { StandaloneDoor } from './routes.ts';
import { createSessionDoor } from './session-door.ts';

interface DoorsDeps {
  readonly options: McpOptions;
  readonly servers: Servers;
  readonly sessions: Sessions;
  readonly cancels: CancelNotes;
  readonly catalogue: ToolCatalogue;
  readonly legs: Pick<Legs, 'raw' | 'bridge'>;
  readonly seals: Seals;
  readonly clientRequests: ClientRequests;
  readonly answerCall: AnswerCall;
  readonly runTurn: RunTurn;
  readonly asksOfTasks: AskOfTaskDeps & Pick<TaskDoorDeps, 'tasks'>;
  readonly keepAlive: KeepAlive;
  readonly onError: (error: unknown) => void;
}

/** The doors of all addresses, with their open sessions and streams. */
export interface Doors {
  readonly standalone: StandaloneDoor;
  readonly legacy: LegacyDoor;
  counts(): { readonly sessions: number; readonly listens: number };
  /** Ends all streams of clients that only listen. */
  drain(): void;
  close(): void;
}

const SWEEP_MS = 5_000;

export function createDoors(deps: DoorsDeps): Doors {
  const { options, servers, sessions, cancels, catalogue, legs, answerCall, asksOfTasks, keepAlive, onError } = deps;
  const { pipeline, catalog, config, version, now, speakers = () => ({}) } = options;
  const { replyBytesMax: bytesMax } = config.upstream;
  const { receipts } = config.billing;
  const readPaid = createReadPaid(options.payments);
  const replays = createReplays({ now: options.elapsed });
  const places = createListenPlaces({
    max: config.limits.listensMax,
    ...(options.listeners ? { ofAccount: options.listeners } : {}),
  });
  // A stream of the aggregate counts as one. Its parts are sessions with one stream each; this bounds those.
  const partPlaces = createListenPlaces({ max: config.mcp.sessionsMax });
  const listening = { bytesMax, renew: sessions.renew, listenModern: legs.bridge.listenModern };
  const kept = { store: options.sessions, config: config.mcp, replays, keepAlive, now, onError };

  const toService = createStandalone({ ...deps, readPaid, receipts });
  const answerAsk = createAnswerAsk({ answerCall, readPaid, speakers, receipts, charsMax: bytesMax });
  const spoken = createSpokenSearch({ speakers, catalog });
  const aggregate = createAggregate({ catalogue, version, spoken, onShared: options.onShared });
  const listen = createAggregateListen({ aggregate, catalogue, toService, places, bytesMax });
  const toSessions = { ...deps, ...legs, pipeline, servers, readPaid, receipts, replays };
  const legacyAggregate = createLegacyAggregate({
    ...toSessions,
    ...kept,
    aggregate,
    answerAsk,
    listen: createListen({ ...listening, places: partPlaces }),
    places,
    bytesMax,
  });
  const front = createFront({ ...kept, cancels, speakers, catalog, catalogue, version, answerAsk });
  const all = [sessions, legacyAggregate.sessions, front.sessions];
  const sweeper = setInterval(() => {
    replays.sweep();
    for (const one of [...all, cancels]) one.sweep().catch(onError);
  }, SWEEP_MS).unref();

  const toAll = createAggregateDoor({ aggregate, toService, listen, answerAsk });
  const toServiceInPlaces = boundedListens(toService, places);
  const sessionDoor = createSessionDoor({ ...toSessions, listen: createListen({ ...listening, places }) });
  const taskDoor = createTaskDoor({ ...asksOfTasks, pipeline, receipts, receiptOf: options.receiptOf });
  const knownAddress = createKnownAddress({ catalog, pipeline, speakers });

  const addressOf = (service: string | null, { caller, selection }: RequestContext): TaskAddress => {
    if (service === null) return { ...aggregate, includes: aggregate.scope(caller, selection).includes };
    return { includes: (name) => service === name || service.endsWith(`:${name}`), toClient: (text) => text };
  };
  const doorOf = (service: string | null) => {
    if (service === null) return legacyAggregate.door;
    return front.has(service) ? front.sessionDoor : sessionDoor;
  };

  return {
    standalone(service, request, context, answer) {
      if (isTaskMethod(request.message.method)) return taskDoor(addressOf(service, context), request, context, answer);
      if (service === null) return toAll(context.selection, request, context, answer);
      if (front.has(service)) return front.standalone(service, request, context, answer);
      const known = knownAddress(service);
      const run = () => toServiceInPlaces(service, request, context, answer);
      return known === null ? run() : known.then(run);
    },
    legacy: {
      async post(service, inbound, ...request) {
        if (service !== null && inbound.kind === 'initialize' && !front.has(service)) await knownAddress(service);
        await doorOf(service).post(service, inbound, ...request);
      },
      listen: (service, ...request) => doorOf(service).listen(service, ...request),
      end: (service, ...request) => doorOf(service).end(service, ...request),
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
