import {
  errorText,
  isObject,
  type Member,
  membersOf,
  parseMessage,
  type RequestMessage,
  type ResponseMessage,
  type Seals,
  splice,
  UpstreamFailure,
  withMembers,
} from '#wire';
import {
  hasEvents,
  type Offer,
  readOne,
  readReply,
  refuseOtherAnswer,
  type ReplyEnd,
  type UpstreamReply,
} from '#gateway';
import { toEnd } from '../../turn/ending.ts';
import { priceOfTool } from '../../turn/tool-price.ts';
import { standardHeaders } from '../../wire/param-headers.ts';
import { withMeta } from '../../wire/meta.ts';
import { META, MODERN, modernStatusOf } from '../../wire/revisions.ts';
import type { Continued, Leg, McpTail, Place, Turn } from '../../turn/turn.ts';
import { toEvent } from '../../turn/to-event.ts';

export interface ModernToModernOptions {
  readonly seals: Seals;
  readonly replyBytesMax: number;
  /** Input schema of a tool; null where it is not known. */
  readonly schemaOf: (offer: Offer, tool: string) => unknown;
  readonly version: string;
}

/**
 * A modern client in front of a modern server: the request goes out as its bytes came, the reply comes back as its
 * bytes are. What is changed is spliced: `requestState`, which is sealed, and for a bare client the envelope that
 * it did not write.
 */
export function createModernToModern({ seals, replyBytesMax, schemaOf, version }: ModernToModernOptions): Leg {
  return async function* modernToModern(turn, place) {
    const { send } = place;
    const { message } = turn;
    const listens = message.method === 'subscriptions/listen';
    const exchange = send({
      method: 'POST',
      path: '',
      headers: headersOf(turn, place.offer),
      body: requestText(turn),
      ...(listens ? { listens } : {}),
    });
    const reply = await exchange.head;
    if (!hasEvents(reply)) {
      const { message: answer } = await readOne(reply, replyBytesMax);
      if (answer.kind !== 'response') throw unanswered(reply);
      return endOf(turn, place, answered(turn, answer), statusOf(reply.status, answer), null);
    }
    for await (const received of readReply(reply, replyBytesMax)) {
      const { message: answer, eventId } = received;
      if (answer?.kind === 'response') {
        reply.discard();
        return endOf(turn, place, answered(turn, answer), statusOf(reply.status, answer), eventId);
      }
      // A request of a server is no part of this revision, and would never be answered. The server does not know
      // whose its tasks are, so its notifications of them are dropped. Clients ask with tasks/get.
      if (answer?.kind !== 'request' && answer?.method !== 'notifications/tasks') yield toEvent(turn, received);
    }
    throw unanswered(reply);
  };

  function headersOf(turn: Turn, offer: Offer): Record<string, string> {
    const { method, params } = turn.message;
    const headless = turn.client === 'bare' || turn.paramHeaders === null;
    const schema = headless && method === 'tools/call' ? schemaOf(offer, String(params?.['name'])) : null;
    const headers: Record<string, string> = { ...POST_HEADERS };
    const own = standardHeaders(method, params, schema);
    for (const name in own) headers[name.toLowerCase()] = own[name]!;
    return Object.assign(headers, turn.paramHeaders);
  }

  /**
   * The request as its server gets it: a state that was sealed is opened, an envelope that is missing is put around it.
   */
  function requestText({ message, client, continued }: Turn): string {
    const { members } = message;
    const text =
      continued === null ? withoutTaskIds(message) : withState(message.text, members.get('params')!, continued);
    if (client === 'bare') {
      const envelope = {
        [META.version]: JSON.stringify(MODERN),
        [META.capabilities]: '{}',
        [META.clientInfo]: JSON.stringify({ name: 'tollgate', version }),
      };
      return withMeta(text, 'params', envelope);
    }
    return text;
  }

  function endOf(
    turn: Turn,
    place: Place,
    response: ResponseMessage,
    status: number,
    eventId: string | null,
  ): ReplyEnd {
    const { result } = response;
    const asks = isObject(result) && result['resultType'] === 'input_required';
    const sealed = asks ? sealState(seals, turn, place, result['requestState']) : null;
    const text = turn.toClient(
      sealed === null
        ? response.text
        : splice(response.text, [
            withMembers(response.text, response.members.get('result')!, { requestState: sealed }),
          ]),
    );
    const tail: McpTail = { text, status, eventId, message: response };
    return toEnd(turn.message, place.offer, response, tail);
  }
}

/** A request to listen without `taskIds`: the server does not know whose its tasks are. */
function withoutTaskIds({ method, text, params, members }: RequestMessage): string {
  const notifications = params?.['notifications'];
  if (method !== 'subscriptions/listen' || !isObject(notifications) || notifications['taskIds'] === undefined)
    return text;
  const place = membersOf(text, members.get('params')!.start).get('notifications')!;
  return splice(text, [withMembers(text, place, { taskIds: null })]);
}

/** The server's own state in the place of the sealed one. */
function withState(text: string, params: Member, { state }: Continued): string {
  return splice(text, [withMembers(text, params, { requestState: state === null ? null : JSON.stringify(state) })]);
}

/**
 * The `requestState` that the client is given, as JSON text: it brings the next round back to this offer, under
 * this call's lock.
 */
function sealState(seals: Seals, { caller, callId, message }: Turn, { offer, askedAt }: Place, state: unknown): string {
  const continued: Continued = {
    callId,
    offerId: offer.id,
    price: priceOfTool(offer, message.params?.['name']).id,
    state: typeof state === 'string' ? state : null,
    held: null,
    ...(askedAt === undefined ? {} : { askedAt }),
  };
  return JSON.stringify(seals.seal(caller.account, continued));
}

/**
 * The response if it is one to this request. An error about a request that could not be read has no id; it is told
 * under the client's.
 */
function answered({ message: { id, idText } }: Turn, response: ResponseMessage): ResponseMessage {
  if (response.id === id) return response;
  refuseOtherAnswer(response, id, 200);
  const named = parseMessage(errorText(idText, response.error!));
  if (named?.kind !== 'response') throw new Error('an error is a response');
  return named;
}

const unanswered = ({ status }: UpstreamReply) =>
  new UpstreamFailure('the provider ended its answer without a response', {
    status,
    retryable: false,
    blame: 'provider',
  });

/** Some servers answer 200 where the revision wants another status. */
function statusOf(status: number, { error }: ResponseMessage): number {
  return status === 200 && error !== undefined ? modernStatusOf(error.code) : status;
}

export const POST_HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  'mcp-protocol-version': MODERN,
} as const;
