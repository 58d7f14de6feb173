import { GatewayError } from '#errors';
import { type JsonRpcError, parseMessage, type RequestMessage } from '#json-rpc';
import { isObject, membersOf, splice, withMembers } from '#wire';
import type { McpRequest } from './mcp-request.ts';
import { ERROR } from '../wire/revisions.ts';

/*
 * A call that a person has to accept, as the question of a server to open a URL. A client of 2025-11-25 gets an error
 * with the URL and sends its request again; one of 2026-07-28 gets a result that asks for input, and sends the request
 * again with the answer. Earlier clients, and those that open no URLs, get the gateway's error with the URL in it.
 */

/** The name of the question among `inputRequests`. No server sees it or its answer. */
const QUESTION = 'tollgate/approval';

export const OPENS_URLS = { elicitation: { url: {} } } as const;

export const opensUrls = ({ elicitation }: McpRequest['capabilities']): boolean =>
  isObject(elicitation) && isObject(elicitation['url']);

/** How long a request with an answer waits for the decision: a person needs longer than the client to open a URL. */
export const DECISION_WAIT_MS = 25_000;

/** The answer that asks a client to open the page of a decision; null if it opens none, or for another error. */
export function askToOpen(
  error: unknown,
  { client, capabilities, elicitationAction }: McpRequest,
): { readonly result: string } | { readonly error: JsonRpcError } | null {
  if (
    !(error instanceof GatewayError) ||
    error.code !== 'approval_required' ||
    client === 'bare' ||
    elicitationAction === 'decline'
  )
    return null;
  const approval = error.body?.['approval'] as { readonly id: string; readonly url: string | null };
  if (!opensUrls(capabilities) || approval.url === null) return null;
  const question = { mode: 'url', message: error.message, url: approval.url };
  if (client === 'modern') {
    const inputRequests = { [QUESTION]: { method: 'elicitation/create', params: question } };
    return { result: JSON.stringify({ resultType: 'input_required', inputRequests, _meta: { [QUESTION]: approval } }) };
  }
  const data = { elicitations: [{ ...question, elicitationId: approval.id }], type: error.code, approval };
  const { message } = error;
  return { error: { code: ERROR.urlElicitation, message, data } };
}

type WithoutAnswer = Pick<McpRequest, 'message' | 'elicitationAction'>;

export function withoutAnswer(message: RequestMessage): WithoutAnswer {
  const answers = message.params?.['inputResponses'];
  if (!isObject(answers) || !Object.hasOwn(answers, QUESTION)) return { message, elicitationAction: null };
  const answer = answers[QUESTION];
  const { text, members } = message;
  const params = members.get('params')!;
  const place = membersOf(text, params.start).get('inputResponses')!;
  const isOnly = Object.keys(answers).length === 1;
  const edit = isOnly
    ? withMembers(text, params, { inputResponses: null })
    : withMembers(text, place, { [QUESTION]: null });
  const rest = parseMessage(splice(text, [edit]));
  if (rest?.kind !== 'request') throw new GatewayError('internal', 'Internal error');
  return { message: rest, elicitationAction: isObject(answer) && answer['action'] === 'accept' ? 'accept' : 'decline' };
}
