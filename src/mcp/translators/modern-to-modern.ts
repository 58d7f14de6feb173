import {
  errorText,
  parseMessage,
  type RequestMessage,
  type ResponseMessage,
  hasEvents,
  onlyAnswerTo,
  readOne,
  readReply,
  refuseOtherAnswer,
} from '#json-rpc';
import { isObject, type JsonMember, membersOf, splice, withMembers } from '#wire';
import type { Seals } from '#security';
import type { Offer } from '#catalog';
import { toServerEnd, withoutResponse } from '../request/ending.ts';
import { standardHeaders } from '../wire/param-headers.ts';
import { withMeta } from '../wire/meta.ts';
import { META, MODERN, modernStatusOf } from '../wire/revisions.ts';
import {
  type Continued,
  isUnaskedProgress,
  type EraTranslator,
  type McpEnd,
  type McpResponse,
  type ServerPlace,
  type McpRequest,
  toEvent,
} from '../request/mcp-request.ts';
import { MODERN_POST_HEADERS } from '../servers/legacy-server.ts';
import { sealState } from '../request/request-state.ts';

export interface ModernToModernOptions {
  readonly seals: Seals;
  readonly replyBytesMax: number;
  readonly schemaOf: (offer: Offer, tool: string) => unknown;
  readonly version: string;
}

/**
 * A modern client in front of a modern server. The bytes pass both ways, with two changes: `requestState` is sealed,
 * and the request of a bare client gets an envelope.
 */
export function createModernToModern({
  seals,
  replyBytesMax,
  schemaOf,
  version,
}: ModernToModernOptions): EraTranslator {
  return async function* modernToModern(mcpRequest, place) {
    const { send } = place;
    const { message } = mcpRequest;
    const listens = message.method === 'subscriptions/listen';
    const exchange = send({
      method: 'POST',
      path: '',
      headers: headersOf(mcpRequest, place.offer),
      body: requestText(mcpRequest),
      listens,
      // A server may take the state of a round once.
      ...(mcpRequest.continued === null ? {} : { repeatable: false }),
    });
    const reply = await exchange.head;
    if (!hasEvents(reply)) {
      const { message: answer } = await readOne(reply, replyBytesMax);
      if (answer.kind !== 'response') throw withoutResponse(reply.status);
      return endOf(mcpRequest, place, answered(mcpRequest, answer), statusOf(reply.status, answer), null);
    }
    let unread = false;
    for await (const received of readReply(reply, replyBytesMax)) {
      const { message: answer, eventId } = received;
      if (answer === null && received.unread) {
        unread = true;
        continue;
      }
      if (answer?.kind === 'response') {
        reply.discard();
        return endOf(mcpRequest, place, answered(mcpRequest, answer), statusOf(reply.status, answer), eventId);
      }
      if (isUnaskedProgress(mcpRequest, answer)) continue;
      // In this revision a server makes no requests, and nobody would answer one. Notifications about tasks are
      // dropped, because the server does not know which client owns a task. Clients use tasks/get.
      if (answer?.kind !== 'request' && answer?.method !== 'notifications/tasks') yield toEvent(mcpRequest, received);
    }
    throw withoutResponse(reply.status, unread);
  };

  function headersOf(mcpRequest: McpRequest, offer: Offer): Record<string, string> {
    const { method, params } = mcpRequest.message;
    const headless = mcpRequest.client === 'bare' || mcpRequest.paramHeaders === null;
    const schema = headless && method === 'tools/call' ? schemaOf(offer, String(params?.['name'])) : null;
    const headers: Record<string, string> = { ...MODERN_POST_HEADERS };
    const own = standardHeaders(method, params, schema);
    for (const name in own) headers[name.toLowerCase()] = own[name]!;
    return Object.assign(headers, mcpRequest.paramHeaders);
  }

  /**
   * The request for the server. Its `requestState` is the server's own, and a bare client's request has an envelope.
   */
  function requestText({ message, client, continued }: McpRequest): string {
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
    mcpRequest: McpRequest,
    place: ServerPlace,
    response: ResponseMessage,
    status: number,
    eventId: string | null,
  ): McpEnd {
    const answer = (read: ResponseMessage) => answerOf(mcpRequest, place, read, status, eventId);
    return toServerEnd(mcpRequest, place, response, answer);
  }

  function answerOf(
    mcpRequest: McpRequest,
    place: ServerPlace,
    response: ResponseMessage,
    status: number,
    eventId: string | null,
  ): McpResponse {
    const { result } = response;
    const asks = isObject(result) && result['resultType'] === 'input_required';
    const state = asks && typeof result['requestState'] === 'string' ? result['requestState'] : null;
    const sealed = asks ? sealState(seals, mcpRequest, place, { state, held: null }) : null;
    const text = mcpRequest.toClient(
      sealed === null
        ? response.text
        : splice(response.text, [
            withMembers(response.text, response.members.get('result')!, { requestState: sealed }),
          ]),
    );
    return { text, status, eventId, message: response };
  }
}

/** A request to listen without `taskIds`, because the server does not know which client owns a task. */
function withoutTaskIds({ method, text, params, members }: RequestMessage): string {
  const notifications = params?.['notifications'];
  if (method !== 'subscriptions/listen' || !isObject(notifications) || notifications['taskIds'] === undefined)
    return text;
  const place = membersOf(text, members.get('params')!.start).get('notifications')!;
  return splice(text, [withMembers(text, place, { taskIds: null })]);
}

/** Replaces the sealed state by the server's own state. */
function withState(text: string, params: JsonMember, { state }: Continued): string {
  return splice(text, [withMembers(text, params, { requestState: state === null ? null : JSON.stringify(state) })]);
}

/**
 * The response, if it belongs to this request. An error about a request that the server could not read has no id; it
 * gets the client's id. Throws UpstreamFailure for a response to another request.
 */
function answered({ message }: McpRequest, response: ResponseMessage): ResponseMessage {
  const answer = onlyAnswerTo(message, response);
  if (answer !== null) return answer;
  refuseOtherAnswer(response, message.id, 200);
  return parseMessage(errorText(message.idText, response.error!)) as ResponseMessage;
}

/** Some servers answer errors with status 200 where the revision has another status. */
function statusOf(status: number, { error }: ResponseMessage): number {
  return status === 200 && error !== undefined ? modernStatusOf(error.code) : status;
}
