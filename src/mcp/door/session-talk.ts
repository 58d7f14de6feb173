import type { Answer, NotificationMessage, RequestId, RequestMessage, ResponseMessage } from '#wire';
import { LISTEN_MS, pinned, type Pipeline } from '#gateway';
import type { ClientRequests } from '../turn/client-requests.ts';
import { runFreeCall } from '../call/free-call.ts';
import { notifyInitialized } from '../servers/legacy-server.ts';
import type { LegacyToLegacy } from '../servers/legs/legacy-to-legacy.ts';
import type { LegacyToModern } from '../servers/legs/legacy-to-modern.ts';
import type { Listen, Listening } from './listen.ts';
import type { ReadPaid } from '../call/paid-request.ts';
import type { Recording } from '../call/replays.ts';
import { CLIENT_NOTIFICATIONS, LEGACY_METHODS } from '../wire/revisions.ts';
import type { RunTurn } from '../call/run-turn.ts';
import type { Servers } from '../servers/servers.ts';
import type { LegacySession } from '../turn/session.ts';
import type { Opened, Sessions } from '../sessions/sessions.ts';
import { ownMeta, traceOf, type Knock, type StandaloneDeps } from '../call/standalone.ts';
import type { Era, McpTail, Place } from '../turn/turn.ts';

export interface SessionTalkDeps {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly sessions: Pick<Sessions, 'open'>;
  readonly listen: Listen;
  readonly servers: Servers;
  readonly runTurn: RunTurn;
  readonly readPaid: ReadPaid;
  readonly raw: Pick<LegacyToLegacy, 'tell'>;
  readonly bridge: Pick<LegacyToModern, 'cancel'>;
  readonly clientRequests: Pick<ClientRequests, 'resolve'>;
  readonly receipts: StandaloneDeps['receipts'];
}

/**
 * What is said in the session of a client with one service, whichever era its server is of. Throws GatewayError
 * where a provider is not to be reached.
 */
export interface SessionTalk {
  /**
   * Answers `initialize`. `ready`: the gateway says in the client's place that it is initialized. null where the
   * call ended without an answer.
   */
  open(service: string, message: RequestMessage, knock: Knock, ready?: boolean): Promise<Opened | null>;
  /** One request, which must be in the table of legacy methods. What goes wrong is the answer. */
  request(session: LegacySession, asked: RequestMessage, how: RequestHow): Promise<void>;
  /** What a client tells and waits for no answer to: null where it was taken. */
  tell(session: LegacySession, message: NotificationMessage | ResponseMessage, knock: Knock): Promise<McpTail | null>;
  /**
   * Gives what the server sends outside of any request, until that ends: with null, or with the answer that there
   * is no such stream.
   */
  listen(listening: Listening, knock: Knock, onEvents: Answer['events']): Promise<McpTail | null>;
}

export interface RequestHow {
  readonly knock: Knock;
  /** The client takes an event stream. */
  readonly events: boolean;
  readonly answer: Recording;
  /** Changes what comes back. */
  readonly toClient: (text: string) => string;
}

/** A listening call ends by itself before its clock does. */
const LISTEN_MARGIN_MS = 60_000;

export function createSessionTalk(deps: SessionTalkDeps): SessionTalk {
  const { sessions, listen, servers, pipeline } = deps;

  /** Runs what is not a request of the client as a free call at the offer of a session. */
  const at = (session: LegacySession, { caller, requestId }: Knock, method: string, talk: Talk) => ({
    caller,
    requestId,
    target: pinned(session.offer.id),
    method,
    converse: withFacts(servers, session.era, talk),
  });

  function tellBridge(session: LegacySession, message: NotificationMessage | ResponseMessage): null {
    if (message.kind === 'response') deps.clientRequests.resolve(session.id, message);
    else if (message.method === 'notifications/cancelled')
      deps.bridge.cancel(session.id, message.params?.['requestId'] as RequestId);
    return null;
  }

  return {
    async open(service, message, { caller, requestId, gone }, ready = false) {
      let opened: Opened | null = null;
      // oxlint-disable-next-line require-yield -- the answer is all there is
      const converse = withFacts(servers, 'legacy', async function* openAt(place) {
        opened = await sessions.open({ message, account: caller.account, service }, place);
        if (ready && opened.session && place.facts.era === 'legacy' && !place.facts.bare)
          await notifyInitialized(place.send, opened.session);
        return freeEnd(opened.tail);
      });
      const tail = await runFreeCall(
        pipeline,
        { caller, requestId, target: service, method: 'initialize', converse },
        gone,
      );
      return tail && opened;
    },

    async request(session, asked, { knock, events, answer, toClient }) {
      const own = ownMeta(asked, knock.headers, deps.receipts);
      const target = pinned(session.offer.id);
      const { caller, payment } = await deps.readPaid(knock.caller, target, own);
      // A client that can go on with its stream has not cancelled by leaving it.
      const left = new AbortController();
      const leave = () => {
        if (!answer.resumable) left.abort();
      };
      knock.gone.addEventListener('abort', leave, { once: true });
      if (knock.gone.aborted) leave();
      await deps.runTurn(
        {
          turn: {
            message: own.message,
            client: 'legacy',
            caller,
            service: session.service,
            events,
            capabilities: session.clientCapabilities,
            paramHeaders: {},
            session,
            continued: null,
            toClient,
          },
          rule: LEGACY_METHODS[asked.method]!,
          requestId: knock.requestId,
          traceparent: traceOf(knock.headers, asked),
          wantsReceipt: own.wantsReceipt,
          cap: own.cap,
          idempotencyKey: own.idempotencyKey,
          payment,
          target,
        },
        answer,
        left.signal,
      );
    },

    async tell(session, message, knock) {
      // Some servers run whatever method they are told, with an id or without: a tool would act, and nobody pay.
      if (message.kind === 'notification' && !CLIENT_NOTIFICATIONS.has(message.method)) return null;
      const facts = servers.known(session.offer, session.era);
      if (facts?.era === 'modern') return tellBridge(session, message);
      const method = message.kind === 'response' ? 'response' : message.method;
      // oxlint-disable-next-line require-yield -- the answer is all there is
      const told = at(session, knock, method, async function* tellAt(place) {
        return place.facts.era === 'modern'
          ? freeEnd(tellBridge(session, message))
          : await deps.raw.tell(session, message, place);
      });
      return runFreeCall(pipeline, told, new AbortController().signal);
    },

    listen(listening, knock, onEvents) {
      const call = at(listening.session, knock, 'listen', (place) => listen(listening, place));
      return runFreeCall(pipeline, { ...call, timeoutMs: LISTEN_MS + LISTEN_MARGIN_MS }, knock.gone, onEvents);
    },
  };
}

type Talk = (place: Place) => ReturnType<LegacyToLegacy['leg']>;

function withFacts(servers: Servers, prefers: Era, talk: Talk): Parameters<typeof runFreeCall>[1]['converse'] {
  return async function* converse(offer, send, signal, detached) {
    const facts = await servers.facts(offer, send, signal, prefers);
    return yield* talk({ offer, facts, send, detached, signal });
  };
}

const freeEnd = (tail: McpTail | null) =>
  ({ usage: null, outcome: 'free', estimated: false, finishReason: null, flags: [], tail }) as const;
