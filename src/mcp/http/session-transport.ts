import { type ClientAnswer, type ClientSink, createAnswer, type KeepAlive } from '#http';
import {
  errorText,
  type JsonRpcMessage,
  type NotificationMessage,
  parseMessage,
  type RequestMessage,
  type ResponseMessage,
  requestIdAt,
  resultText,
} from '#json-rpc';
import { piecesOfText } from '#wire';
import { ownerOf, type TaskOwner } from '#tasks';
import type { Inbound } from '../wire/classify.ts';
import { statusInSession, toMcpError, worthTelling } from '../wire/errors-mcp.ts';
import { ERROR, LEGACY_METHODS } from '../wire/revisions.ts';
import type { RequestContext } from '../call/stateless.ts';
import type { Replays } from '../call/replays.ts';
import type { KeptSession, KeptUse } from '../sessions/kept-sessions.ts';
import type { InitializeOutcome } from '../sessions/sessions.ts';
import { BATCH_OUTSIDE, type McpResponse, noSession } from '../request/mcp-request.ts';

/** Answers clients with sessions. `service` is null for the aggregate. */
export interface SessionTransport {
  post(service: string | null, inbound: LegacyInbound, context: RequestContext, answer: ClientAnswer): Promise<void>;
  /** The stream on which a client receives messages that belong to no request. */
  listen(service: string | null, session: string, context: RequestContext, sink: ClientSink): Promise<void>;
  /** Ends a session. Resolves to false if the caller has no such session. */
  end(service: string | null, session: string, context: RequestContext): Promise<boolean>;
}

type LegacyInbound = Extract<Inbound, { kind: 'initialize' | 'legacy' | 'batch' }>;

interface SessionHandlers<S extends KeptSession> {
  open(service: string | null, message: RequestMessage, context: RequestContext): Promise<InitializeOutcome | null>;
  /** null if this owner has no such session. */
  enter(service: string | null, id: string, owner: TaskOwner): Promise<KeptUse<S> | null>;
  /** Answers one request whose method is in LEGACY_METHODS, other than `ping`. Throws GatewayError. */
  request(
    use: KeptUse<S>,
    message: RequestMessage,
    events: boolean,
    context: RequestContext,
    answer: ClientAnswer,
  ): Promise<void>;
  /** Takes a notification or a response. Resolves to null, or to the refusal. Throws GatewayError. */
  tell(use: KeptUse<S>, message: OneWayMessage, context: RequestContext): Promise<McpResponse | null>;
  listen(use: KeptUse<S>, lastEventId: string | null, context: RequestContext, answer: ClientAnswer): Promise<void>;
  end(service: string | null, id: string, owner: TaskOwner): Promise<boolean>;
}

/** A message to which the client expects no answer. */
export type OneWayMessage = NotificationMessage | ResponseMessage;

export interface SessionTransportDeps {
  readonly replays: Replays;
  readonly keepAlive: KeepAlive;
  readonly onError: (error: unknown) => void;
}

export function createSessionTransport<S extends KeptSession>(
  handlers: SessionHandlers<S>,
  { replays, keepAlive, onError }: SessionTransportDeps,
): SessionTransport {
  async function message(
    use: KeptUse<S>,
    rpcMessage: JsonRpcMessage,
    events: boolean,
    context: RequestContext,
    answer: ClientAnswer,
  ): Promise<void> {
    if (rpcMessage.kind === 'request') {
      if (rpcMessage.method === 'ping') return answer.end(resultText(rpcMessage.idText, '{}'), 200);
      if (LEGACY_METHODS[rpcMessage.method]) return handlers.request(use, rpcMessage, events, context, answer);
      return answer.end(errorText(rpcMessage.idText, { code: ERROR.methodNotFound, message: 'Method not found' }), 200);
    }
    const refusal = await handlers.tell(use, rpcMessage, context);
    if (refusal === null) answer.close();
    else answer.end(refusal.text, refusal.status);
  }

  async function ofBatch(use: KeptUse<S>, text: string, context: RequestContext): Promise<string | null> {
    const rpcMessage = parseMessage(text);
    if (!rpcMessage) throw new Error('a message of a batch that was read cannot be read again');
    let response: string | null = null;
    const keeping: ClientAnswer = {
      events: async () => {},
      end(answered) {
        response = Buffer.concat(piecesOfText(answered)).toString();
      },
      // Null, because the answers to all messages of a batch form one text.
      body: () => null,
      close: () => {},
    };
    try {
      await message(use, rpcMessage, false, context, keeping);
    } catch (error) {
      const fault = worthTelling(error);
      if (fault !== null) onError(fault);
      if (rpcMessage.kind === 'request') return toMcpError(error, rpcMessage.idText).text;
    }
    return rpcMessage.kind === 'request' ? response : null;
  }

  async function inside(
    service: string | null,
    id: string | null,
    { caller }: RequestContext,
    { answer, idText }: { readonly answer: ClientAnswer; readonly idText: string },
    run: (use: KeptUse<S>) => Promise<void>,
  ): Promise<void> {
    if (id === null) return answer.end(BATCH_OUTSIDE.text, BATCH_OUTSIDE.status);
    const use = await handlers.enter(service, id, ownerOf(caller));
    if (use === null) {
      const { text, status } = noSession(idText);
      return answer.end(text, status);
    }
    try {
      await run(use);
    } finally {
      use.leave();
    }
  }

  async function answered(
    idText: string,
    inSession: boolean,
    answer: ClientAnswer,
    run: () => Promise<void>,
  ): Promise<void> {
    try {
      await run();
    } catch (error) {
      const fault = worthTelling(error);
      if (fault !== null) onError(fault);
      const reply = toMcpError(error, idText);
      const { status, headers, text } = reply;
      answer.end(text, inSession && idText !== 'null' ? statusInSession(reply) : status, headers);
    }
  }

  return {
    async post(service, inbound, context, answer) {
      const { kind } = inbound;
      const idText = kind !== 'batch' && inbound.message.kind === 'request' ? inbound.message.idText : 'null';
      await answered(idText, kind === 'legacy', answer, async () => {
        if (kind === 'initialize') {
          const outcome = await handlers.open(service, inbound.message, context);
          if (outcome === null) return;
          const { session, response } = outcome;
          return answer.end(response.text, response.status, session === null ? {} : { 'mcp-session-id': session.id });
        }
        await inside(service, inbound.session, context, { answer, idText }, async (use) => {
          if (kind === 'legacy') return message(use, inbound.message, inbound.acceptsEvents, context, answer);
          // With one id for all, the refusal of a message would count as the end of another one's call.
          const responses = await runBatch(inbound.texts, (text, place) =>
            ofBatch(use, text, { ...context, requestId: requestIdAt(context.requestId, place) }),
          );
          if (responses === null) answer.close();
          else answer.end(responses, 200);
        });
      });
    },
    async listen(service, session, context, sink) {
      const answer = createAnswer({ sink, events: true, keepAlive });
      const last = context.headers['last-event-id'];
      const lastEventId = typeof last === 'string' ? last : null;
      await answered('null', false, answer, () =>
        inside(service, session, context, { answer, idText: 'null' }, async (use) => {
          if (lastEventId !== null && (await replays.resume(use.session.id, lastEventId, answer))) return;
          await handlers.listen(use, lastEventId, context, answer);
        }),
      );
    },
    end: (service, session, { caller }) => handlers.end(service, session, ownerOf(caller)),
  };
}

/**
 * Runs the messages of a batch all at once, as clients expect. Each is a call of its own. Resolves to the responses as
 * one JSON array, in the order of their requests; to null for a batch without requests. `run` resolves to the response
 * to one message, or to null if it has none. `run` must not reject: a failure is a response too.
 */
async function runBatch(
  texts: readonly string[],
  run: (text: string, place: number) => Promise<string | null>,
): Promise<string | null> {
  const responses = await Promise.all(texts.map((text, place) => run(text, place)));
  const due = responses.filter((response) => response !== null);
  return due.length === 0 ? null : `[${due.join(',')}]`;
}
