import { GatewayError, toGatewayError, type KeepAlive, type Pipeline, type ReplySink } from '#gateway';
import { createAnswer, type Answer } from './answer.ts';
import { runBatch } from './batch.ts';
import type { Inbound } from './classify.ts';
import type { ClientRequests } from './client-requests.ts';
import { toMcpError } from './errors-mcp.ts';
import { runFreeCall } from './free-call.ts';
import type { LegacyToLegacy } from './legs/legacy-to-legacy.ts';
import type { LegacyToModern } from './legs/legacy-to-modern.ts';
import { LISTEN_MS, type Listens } from './listen.ts';
import {
  errorText,
  parseMessage,
  resultText,
  type NotificationMessage,
  type RequestId,
  type RequestMessage,
  type ResponseMessage,
} from './message.ts';
import type { Replays } from './replays.ts';
import { ERROR, LEGACY_METHODS } from './revisions.ts';
import type { LegacyDoor } from './routes.ts';
import { pinned, type RunTurn } from './run-turn.ts';
import type { Servers } from './servers.ts';
import { NO_SESSION, type LegacySession } from './session.ts';
import type { Sessions, SessionUse } from './sessions.ts';
import { ownMeta, traceOf, type Knock, type StandaloneDeps } from './standalone.ts';
import type { McpTail, Place } from './turn.ts';

export interface SessionDoorDeps {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly sessions: Sessions;
  readonly listens: Listens;
  readonly replays: Replays;
  readonly servers: Servers;
  readonly runTurn: RunTurn;
  readonly raw: Pick<LegacyToLegacy, 'tell'>;
  readonly bridge: Pick<LegacyToModern, 'cancel'>;
  readonly clientRequests: Pick<ClientRequests, 'resolve' | 'end'>;
  readonly receipts: StandaloneDeps['receipts'];
  readonly keepAlive: KeepAlive;
  /** Told of what fails in a way that no wire has a word for. */
  readonly onError: (error: unknown) => void;
}

/** A listening call ends by itself before its clock does. */
const LISTEN_MARGIN_MS = 60_000;

/** Answers clients that have a session with one service. */
export function createSessionDoor(deps: SessionDoorDeps): LegacyDoor {
  const { sessions, listens, replays, servers, pipeline } = deps;

  /** Runs what is not a request of the client as a free call at the offer of a session. */
  const at = (session: LegacySession, { caller, requestId }: Knock, method: string, talk: (place: Place) => ReturnType<LegacyToLegacy['leg']>) => ({
    caller,
    requestId,
    target: pinned(session.offer.id),
    method,
    converse: withFacts(servers, talk),
  });

  async function open(service: string, message: RequestMessage, knock: Knock, answer: Answer): Promise<void> {
    const { caller, requestId, gone } = knock;
    let id: string | null = null;
    // oxlint-disable-next-line require-yield -- the answer is all there is
    const converse = withFacts(servers, async function* openAt(place) {
      const { session, tail } = await sessions.open({ message, account: caller.account, service }, place);
      id = session?.id ?? null;
      return freeEnd(tail);
    });
    const tail = await runFreeCall(pipeline, { caller, requestId, target: service, method: 'initialize', converse }, gone);
    if (tail) answer.end(tail.text, tail.status, id === null ? {} : { 'mcp-session-id': id });
  }

  async function request(session: LegacySession, asked: RequestMessage, events: boolean, knock: Knock, answer: Answer): Promise<void> {
    const rule = LEGACY_METHODS[asked.method];
    if (!rule) return answer.end(errorText(asked.idText, { code: ERROR.methodNotFound, message: 'Method not found' }), 200);
    if (asked.method === 'ping') return answer.end(resultText(asked.idText, '{}'), 200);
    const own = ownMeta(asked, knock.headers, deps.receipts);
    const recording = replays.record(session.id, answer);
    // A client that can go on with its stream has not cancelled by leaving it.
    const left = new AbortController();
    const leave = () => {
      if (!recording.resumable) left.abort();
    };
    knock.gone.addEventListener('abort', leave, { once: true });
    if (knock.gone.aborted) leave();
    await deps.runTurn(
      {
        turn: {
          message: own.message,
          client: 'legacy',
          caller: knock.caller,
          service: session.service,
          events,
          capabilities: session.clientCapabilities,
          paramHeaders: {},
          session,
          continued: null,
          toClient: (text) => text,
        },
        rule,
        requestId: knock.requestId,
        traceparent: traceOf(knock.headers, asked),
        wantsReceipt: own.wantsReceipt,
        idempotencyKey: own.idempotencyKey,
        target: pinned(session.offer.id),
      },
      recording,
      left.signal,
    );
  }

  /** What a client tells and waits for no answer to: null where it was taken. */
  async function tell(session: LegacySession, message: NotificationMessage | ResponseMessage, knock: Knock): Promise<McpTail | null> {
    const facts = servers.known(session.offer);
    if (facts?.era === 'modern') return tellBridge(session, message);
    const method = message.kind === 'response' ? 'response' : message.method;
    // oxlint-disable-next-line require-yield -- the answer is all there is
    const told = at(session, knock, method, async function* tellAt(place) {
      return place.facts.era === 'modern' ? freeEnd(tellBridge(session, message)) : await deps.raw.tell(session, message, place);
    });
    return runFreeCall(pipeline, told, new AbortController().signal);
  }

  function tellBridge(session: LegacySession, message: NotificationMessage | ResponseMessage): null {
    if (message.kind === 'response') deps.clientRequests.resolve(session.id, message);
    else if (message.method === 'notifications/cancelled') deps.bridge.cancel(session.id, message.params?.['requestId'] as RequestId);
    return null;
  }

  async function message(use: SessionUse, text: string, events: boolean, knock: Knock, answer: Answer): Promise<void> {
    const asked = parseMessage(text);
    if (!asked) throw new GatewayError('internal', 'Internal error');
    if (asked.kind === 'request') return request(use.session, asked, events, knock, answer);
    const refusal = await tell(use.session, asked, knock);
    if (refusal === null) answer.close();
    else answer.end(refusal.text, refusal.status);
  }

  /** One message of a batch: its response as text. */
  async function ofBatch(use: SessionUse, text: string, knock: Knock): Promise<string | null> {
    let response: string | null = null;
    const keeping: Answer = {
      events: async () => {},
      end(answered) {
        response = answered;
      },
      close: () => {},
    };
    const asked = parseMessage(text);
    try {
      await message(use, text, false, knock, keeping);
    } catch (error) {
      if (asked?.kind === 'request') return toMcpError(error, asked.idText).text;
    }
    return asked?.kind === 'request' ? response : null;
  }

  async function post(service: string, inbound: Exclude<LegacyInbound, { kind: 'initialize' }>, knock: Knock, answer: Answer): Promise<void> {
    const use = inbound.session === null ? null : await sessions.enter(inbound.session, knock.caller.account, service);
    if (use === null) return answer.end(NO_SESSION.text, NO_SESSION.status);
    try {
      if (inbound.kind === 'legacy') return await message(use, inbound.message.text, inbound.acceptsEvents, knock, answer);
      const responses = await runBatch(inbound.texts, (text) => ofBatch(use, text, knock));
      if (responses === null) answer.close();
      else answer.end(responses, 200);
    } finally {
      use.leave();
    }
  }

  async function listen(service: string, id: string, knock: Knock, answer: Answer): Promise<void> {
    const use = await sessions.enter(id, knock.caller.account, service);
    if (use === null) return answer.end(NO_SESSION.text, NO_SESSION.status);
    try {
      const { session, ended } = use;
      const last = knock.headers['last-event-id'];
      const lastEventId = typeof last === 'string' ? last : null;
      if (lastEventId !== null && (await replays.resume(session.id, lastEventId, answer))) return;
      const listening = at(session, knock, 'listen', (place) => listens.listen({ session, lastEventId, ended }, place));
      const tail = await runFreeCall(pipeline, { ...listening, timeoutMs: LISTEN_MS + LISTEN_MARGIN_MS }, knock.gone, (bytes) =>
        answer.events(bytes),
      );
      if (tail === null) answer.close();
      else answer.end(tail.text, tail.status);
    } finally {
      use.leave();
    }
  }

  /** Whatever goes wrong is the answer. */
  async function answered(idText: string, answer: Answer, run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } catch (error) {
      const known = toGatewayError(error);
      if (known.code === 'internal' || known.code === 'service_unavailable') deps.onError(known.cause ?? error);
      const { status, headers, text } = toMcpError(error, idText);
      answer.end(text, status, headers);
    }
  }

  return {
    async post(service, inbound, knock, answer) {
      const idText =
        inbound.kind === 'initialize' || (inbound.kind === 'legacy' && inbound.message.kind === 'request')
          ? (inbound.message as RequestMessage).idText
          : 'null';
      await answered(idText, answer, async () => {
        if (inbound.kind === 'initialize') await open(service!, inbound.message, knock, answer);
        else await post(service!, inbound, knock, answer);
      });
    },
    async listen(service, session, knock, sink: ReplySink) {
      const answer = createAnswer({ sink, events: true, keepAlive: deps.keepAlive, headers: () => ({}) });
      await answered('null', answer, () => listen(service!, session, knock, answer));
    },
    async end(service, session, { caller }) {
      if (!(await sessions.end(session, caller.account, service!))) throw new GatewayError('not_found', 'Session not found');
      deps.clientRequests.end(session);
    },
  };
}

type LegacyInbound = Extract<Inbound, { kind: 'initialize' | 'legacy' | 'batch' }>;

function withFacts(servers: Servers, talk: (place: Place) => ReturnType<LegacyToLegacy['leg']>): Parameters<typeof runFreeCall>[1]['converse'] {
  return async function* converse(offer, send, signal, detached) {
    const facts = await servers.facts(offer, send);
    return yield* talk({ offer, facts, send, detached, signal });
  };
}

const freeEnd = (tail: McpTail | null) => ({ usage: null, outcome: 'free', estimated: false, finishReason: null, flags: [], tail }) as const;
