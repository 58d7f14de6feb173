import {
  errorText,
  isObject,
  type JsonRpcError,
  parseMessage,
  type ResponseMessage,
  resultText,
  type Seals,
} from '#wire';
import type { ReplyEnd } from '#gateway';
import { asComplete, toEnd } from '../../../turn/ending.ts';
import { providerFailure } from '../../../turn/provider-failure.ts';
import type { McpTail, Place, Turn } from '../../../turn/turn.ts';
import { ERROR, MODERN_METHODS, modernStatusOf } from '../../../wire/revisions.ts';
import { sealState } from '../seal-state.ts';
import { toClientResponse } from './response-text.ts';
import type { SessionCall } from './session-call.ts';
import { urlInputRequests } from './url-elicitation.ts';

/** Ends a call with a response that the gateway itself wrote (JSON text). */
export function endWith({ message }: Turn, { offer }: Place, text: string): ReplyEnd {
  const response = parseMessage(text) as ResponseMessage;
  return toEnd(message, offer, response, { text, status: response.error ? modernStatusOf(response.error.code) : 200 });
}

/**
 * Ends a round with a result that asks the client for input. `held`: id of the held call. Null if the next round
 * repeats the request.
 */
export function endAsking(
  seals: Seals,
  turn: Turn,
  place: Place,
  inputRequests: string,
  held: string | null,
): ReplyEnd {
  const state = sealState(seals, turn, place, { state: null, held });
  const result = `{"resultType":"input_required","inputRequests":${inputRequests},"requestState":${state}}`;
  return endWith(turn, place, turn.toClient(resultText(turn.message.idText, result)));
}

/** Ends a call with the response of its server. Throws UpstreamFailure. */
export function endWithResponse(
  seals: Seals,
  turn: Turn,
  place: Place,
  { status }: SessionCall,
  response: ResponseMessage,
): ReplyEnd {
  const { message, client, capabilities } = turn;
  const urls = client === 'modern' ? urlInputRequests(response) : null;
  if (urls !== null) {
    const { elicitation } = capabilities;
    if (MODERN_METHODS[message.method]?.inputRequired && isObject(elicitation) && isObject(elicitation['url']))
      return endAsking(seals, turn, place, urls, null);
    return endWith(turn, place, errorText(message.idText, NO_URLS));
  }
  const text = toClientResponse(turn, response);
  if (text === null) throw providerFailure('the provider answered with a result that is not an object', status);
  const { error } = response;
  const tail: McpTail = {
    text: turn.toClient(text),
    status: status === 200 && error !== undefined ? modernStatusOf(error.code) : (status ?? 200),
  };
  return toEnd(message, place.offer, asComplete(response), tail);
}

const NO_URLS: JsonRpcError = {
  code: ERROR.missingCapability,
  message: 'The tool needs its user to open a URL, which the client does not support',
  data: { requiredCapabilities: { elicitation: { url: {} } } },
};
