import { runUntilAborted } from '#billing/amounts';
import type { ClientAnswer } from '#http';
import type { RequestId, RequestMessage } from '#json-rpc';
import { endOnly, type Pipeline } from '#call';
import { LISTEN_MS } from '#limits';
import { type Offer, pinned } from '#catalog';
import { ownerOf } from '#tasks';
import type { ClientRequests } from '../request/client-requests.ts';
import { type McpFreeCall, runFreeCall } from '../request/free-call.ts';
import { notifyInitialized } from '../servers/legacy-server.ts';
import type { LegacyToLegacy } from '../translators/legacy-to-legacy.ts';
import type { LegacyToModern } from '../translators/legacy-to-modern.ts';
import type { Listen, Listening } from './listen.ts';
import type { ReadPaid } from '../request/paid-request.ts';
import type { Recording } from '../call/replays.ts';
import { freeEnd } from '../request/ending.ts';
import {
  type OneWayMessage,
  createSessionTransport,
  type SessionTransport,
  type SessionTransportDeps,
} from './session-transport.ts';
import { CLIENT_NOTIFICATIONS, LEGACY_METHODS, type Era } from '../wire/revisions.ts';
import { cancelledId, type CancelNotes } from '../request/cancellation.ts';
import type { RequestCallDeps, RunRequest } from '../call/request-call.ts';
import type { Servers } from '../servers/servers.ts';
import type { LegacySession, McpEnd, McpResponse, ServerPlace } from '../request/mcp-request.ts';
import type { InitializeOutcome, Sessions } from '../sessions/sessions.ts';
import { ownMeta, traceOf, type RequestContext, type StatelessDeps } from '../call/stateless.ts';

export interface SessionMessagesDeps {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly sessions: Pick<Sessions, 'open'>;
  readonly listen: Listen;
  readonly servers: Servers;
  readonly runRequest: RunRequest;
  readonly admitted: RequestCallDeps['admitted'];
  readonly readPaid: ReadPaid;
  readonly raw: Pick<LegacyToLegacy, 'tell'>;
  readonly bridge: Pick<LegacyToModern, 'cancel'>;
  readonly cancels: CancelNotes;
  readonly clientRequests: Pick<ClientRequests, 'resolve'>;
  readonly receipts: StatelessDeps['receipts'];
}

/**
 * Takes the messages in a client's session with one service to the server, of either era. Throws GatewayError if a
 * provider cannot be reached.
 */
export interface SessionMessages {
  /**
   * Answers `initialize`. Null if the call ended without an answer. `ready`: the gateway sends
   * `notifications/initialized` to the server, instead of the client.
   */
  open(
    service: string,
    message: RequestMessage,
    context: RequestContext,
    ready?: boolean,
  ): Promise<InitializeOutcome<LegacySession> | null>;
  /** Answers one request whose method is in LEGACY_METHODS. An error becomes the answer. */
  request(session: LegacySession, message: RequestMessage, how: RequestHow): Promise<void>;
  /** Takes a notification or a response of the client. Resolves to null, or to the server's refusal. */
  tell(session: LegacySession, message: OneWayMessage, context: RequestContext): Promise<McpResponse | null>;
  /** Passes on the events that the server sends outside of requests. Resolves to null at their end, or to a refusal. */
  listen(listening: Listening, context: RequestContext, onEvents: ClientAnswer['events']): Promise<McpResponse | null>;
}

interface RequestHow {
  /** Aborts when the session ends. The request then goes on as if its client had left. */
  readonly ended: AbortSignal;
  readonly context: RequestContext;
  readonly events: boolean;
  readonly answer: Recording;
  readonly toClient: (text: string) => string;
}

/** A listening call gets this much more time than its stream, so that the stream ends first. */
const LISTEN_MARGIN_MS = 60_000;

export function createSessionMessages(deps: SessionMessagesDeps): SessionMessages {
  const { sessions, listen, servers, pipeline } = deps;
  const streams = createOpeningStreams();

  const at = (session: LegacySession, { caller, requestId }: RequestContext, method: string, messages: MessagesAt) => ({
    caller,
    requestId,
    target: pinned(session.offer.id),
    method,
    startAttempt: withFacts(servers, session.era, messages),
  });

  async function tellBridge(session: LegacySession, message: OneWayMessage): Promise<null> {
    if (message.kind === 'response') deps.clientRequests.resolve(session.id, message);
    else if (message.method === 'notifications/cancelled') {
      const id = cancelledId(message);
      if (!deps.bridge.cancel(session.id, id as RequestId)) await deps.cancels.note(session, id);
    }
    return null;
  }

  return {
    async open(service, message, { caller, requestId, gone }, ready = false) {
      let outcome: InitializeOutcome<LegacySession> | null = null;
      const openAt = async (place: ServerPlace): Promise<McpEnd> => {
        outcome = await sessions.open({ message, owner: ownerOf(caller), service }, place);
        if (ready && outcome.session && place.facts.era === 'legacy' && !place.facts.bare)
          await notifyInitialized(place.send, outcome.session);
        return freeEnd(outcome.response);
      };
      const startAttempt = withFacts(servers, 'legacy', (place) => endOnly(() => openAt(place)));
      const admitted = (offers: readonly Offer[]) => deps.admitted(offers, null);
      const call = { caller, requestId, target: service, method: 'initialize', startAttempt, admitted };
      const response = await runFreeCall(pipeline, call, gone);
      return response && outcome;
    },

    async request(session, message, { ended, context, events, answer, toClient }) {
      const own = ownMeta(message, context.headers, deps.receipts);
      const target = pinned(session.offer.id);
      const { caller, payment } = await deps.readPaid(context.caller, target, own);
      // A client that can resume its stream does not cancel by leaving it.
      const clientGone = new AbortController();
      const leave = () => {
        if (!answer.isResumable()) clientGone.abort();
      };
      context.gone.addEventListener('abort', leave);
      if (context.gone.aborted) leave();
      if (message.method === 'tools/call' && mayBeAsked(session)) await streams.answered(session.id);
      const request = {
        message: own.message,
        client: 'legacy',
        caller,
        requestId: context.requestId,
        callId: '',
        service: session.service,
        target,
        rule: LEGACY_METHODS[message.method]!,
        traceparent: traceOf(context.headers, message),
        wantsReceipt: own.wantsReceipt,
        idempotencyKey: own.idempotencyKey,
        cap: own.cap,
        quote: own.quote,
        payment,
        elicitationAction: own.elicitationAction,
        events,
        capabilities: session.clientCapabilities,
        paramHeaders: {},
        session,
        continued: null,
        toClient,
      } as const;
      await runUntilAborted([clientGone.signal, ended], (signal) => deps.runRequest(request, answer, signal));
    },

    async tell(session, message, context) {
      // Some servers run any method of a notification too. Then a tool would act and nobody would pay.
      if (message.kind === 'notification' && !CLIENT_NOTIFICATIONS.has(message.method)) return null;
      const facts = servers.known(session.offer, session.era);
      if (facts?.era === 'modern') return tellBridge(session, message);
      const method = message.kind === 'response' ? 'response' : message.method;
      const tellAt = async (place: ServerPlace): Promise<McpEnd> =>
        place.facts.era === 'modern'
          ? freeEnd(await tellBridge(session, message))
          : await deps.raw.tell(session, message, place);
      const sent = at(session, context, method, (place) => endOnly(() => tellAt(place)));
      return runFreeCall(pipeline, sent, new AbortController().signal);
    },

    async listen(listening, context, onEvents) {
      const answered = streams.open(listening.session.id);
      const call = at(listening.session, context, 'listen', (place) => listen(listening, place));
      try {
        return await runFreeCall(
          pipeline,
          { ...call, timeoutMs: LISTEN_MS + LISTEN_MARGIN_MS },
          context.gone,
          (bytes) => {
            answered();
            return onEvents(bytes);
          },
        );
      } finally {
        answered();
      }
    },
  };
}

/** Whether the client accepts requests from its server. */
const mayBeAsked = ({ clientCapabilities: { sampling, elicitation, roots } }: LegacySession): boolean =>
  sampling !== undefined || elicitation !== undefined || roots !== undefined;

type MessagesAt = (place: ServerPlace) => AsyncGenerator<Uint8Array, McpEnd, undefined>;

function withFacts(servers: Servers, prefers: Era, messages: MessagesAt): McpFreeCall['startAttempt'] {
  return (offer, send, signal, detached) =>
    streamWithFacts({ servers, prefers, messages }, { offer, send, detached, signal });
}

async function* streamWithFacts(
  { servers, prefers, messages }: { readonly servers: Servers; readonly prefers: Era; readonly messages: MessagesAt },
  place: Omit<ServerPlace, 'facts'>,
): ReturnType<MessagesAt> {
  const facts = await servers.facts(place.offer, place.send, place.signal, prefers);
  return yield* messages({ ...place, facts });
}

interface ServiceTransportDeps extends SessionMessagesDeps, SessionTransportDeps {
  readonly sessions: Sessions;
  readonly clientRequests: Pick<ClientRequests, 'resolve' | 'end'>;
}

export function createServiceTransport(deps: ServiceTransportDeps): SessionTransport {
  const { sessions, replays } = deps;
  const messages = createSessionMessages(deps);

  return createSessionTransport<LegacySession>(
    {
      open: (service, message, context) => messages.open(service!, message, context),
      enter: (service, id, owner) => sessions.enter(id, owner, service!),
      request: ({ session, ended }, message, events, context, answer) =>
        messages.request(session, message, {
          ended,
          context,
          events,
          answer: replays.record(session.id, answer),
          toClient: (text) => text,
        }),
      tell: ({ session }, message, context) => messages.tell(session, message, context),
      async listen({ session, ended }, lastEventId, context, answer) {
        const refusal = await messages.listen({ session, lastEventId, ended }, context, (bytes) =>
          answer.events(bytes),
        );
        if (refusal === null) answer.close();
        else answer.end(refusal.text, refusal.status);
      },
      async end(service, id, owner) {
        const ended = await sessions.end(id, owner, service!);
        if (ended) deps.clientRequests.end(id);
        return ended;
      },
    },
    deps,
  );
}

/**
 * How long a call waits for the stream of its session, in milliseconds. The wait is bounded, because some servers send
 * the response headers of a stream only with its first event.
 */
export const STREAM_OPEN_MS = 250;

/**
 * Streams that clients have just opened and whose servers have not answered yet. Many servers send their questions to
 * the client on this stream, and lose them if it is not open. So a later call of the client must not reach the server
 * before the stream does.
 */
interface OpeningStreams {
  /** Notes that the stream of a session is on its way to the server. Call the result once the server has answered. */
  open(session: string): () => void;
  /**
   * Resolves when the server has answered the stream of a session, or after STREAM_OPEN_MS. Null if no stream is on its
   * way.
   */
  answered(session: string): Promise<void> | null;
}

function createOpeningStreams(): OpeningStreams {
  const opening = new Map<string, Promise<void>>();
  return {
    open(session) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(done, STREAM_OPEN_MS).unref();
      function done(): void {
        clearTimeout(timer);
        if (opening.get(session) === promise) opening.delete(session);
        resolve();
      }
      opening.set(session, promise);
      return done;
    },
    answered: (session) => opening.get(session) ?? null,
  };
}
