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
import { asComplete, toEnd } from '../../../request/ending.ts';
import { providerFailure } from '../../../request/provider-failure.ts';
import type { McpTail, Place, McpRequest } from '../../../request/mcp-request.ts';
import { ERROR, MODERN_METHODS, modernStatusOf } from '../../../wire/revisions.ts';
import { sealState } from '../seal-state.ts';
import { toClientResponse } from './response-text.ts';
import type { SessionCall } from './session-call.ts';
import { urlInputRequests } from './url-elicitation.ts';

/** Ends a call with a response that the gateway itself wrote (JSON text). */
export function endWith({ message }: McpRequest, { offer }: Place, text: string): ReplyEnd {
  const response = parseMessage(text) as ResponseMessage;
  return toEnd(message, offer, response, { text, status: response.error ? modernStatusOf(response.error.code) : 200 });
}

/**
 * Ends a round with a result that asks the client for input. `held`: id of the held call. Null if the next round
 * repeats the request.
 */
export function endAsking(
  seals: Seals,
  mcpRequest: McpRequest,
  place: Place,
  inputRequests: string,
  held: string | null,
): ReplyEnd {
  const state = sealState(seals, mcpRequest, place, { state: null, held });
  const result = `{"resultType":"input_required","inputRequests":${inputRequests},"requestState":${state}}`;
  return endWith(mcpRequest, place, mcpRequest.toClient(resultText(mcpRequest.message.idText, result)));
}

/** Ends a call with the response of its server. Throws UpstreamFailure. */
export function endWithResponse(
  seals: Seals,
  mcpRequest: McpRequest,
  place: Place,
  { status }: SessionCall,
  response: ResponseMessage,
): ReplyEnd {
  const { message, client, capabilities } = mcpRequest;
  const urls = client === 'modern' ? urlInputRequests(response) : null;
  if (urls !== null) {
    const { elicitation } = capabilities;
    if (MODERN_METHODS[message.method]?.inputRequired && isObject(elicitation) && isObject(elicitation['url']))
      return endAsking(seals, mcpRequest, place, urls, null);
    return endWith(mcpRequest, place, errorText(message.idText, NO_URLS));
  }
  const text = toClientResponse(mcpRequest, response);
  if (text === null) throw providerFailure('the provider answered with a result that is not an object', status);
  const { error } = response;
  const tail: McpTail = {
    text: mcpRequest.toClient(text),
    status: status === 200 && error !== undefined ? modernStatusOf(error.code) : (status ?? 200),
  };
  return toEnd(message, place.offer, asComplete(response), tail);
}

const NO_URLS: JsonRpcError = {
  code: ERROR.missingCapability,
  message: 'The tool needs its user to open a URL, which the client does not support',
  data: { requiredCapabilities: { elicitation: { url: {} } } },
};
