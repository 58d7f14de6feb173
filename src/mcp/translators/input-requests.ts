import { isObject, type JsonObject, membersOf, RawJsonError, splice, withMembers } from '#wire';
import type { ResponseMessage, RequestMessage } from '#json-rpc';
import { NoAnswer, type ClientRequests } from '../request/client-requests.ts';
import { eventBytes } from '../request/mcp-request.ts';
import { notificationText } from '../wire/own-messages.ts';
import { LEGACY_METHODS } from '../wire/revisions.ts';

interface ClientContext {
  readonly session: string;
  readonly capabilities: JsonObject;
  readonly events: boolean;
  readonly toClient: (text: string) => string;
}

/**
 * Asks the client one round of a server's questions, as requests on its event stream. Yields the events. Returns the
 * `inputResponses` as JSON text. Throws NoAnswer if the client cannot be asked, or if an answer does not come; then the
 * other questions are cancelled. `round` is unique over all calls, and becomes part of the ids.
 */
export async function* askClient(
  clientRequests: ClientRequests,
  client: ClientContext,
  { requests }: PendingRequest,
  round: string,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, string, undefined> {
  for (const request of requests) refuseUnaskable(client, request);
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  const open = new Set<string>();
  const questions = requests.map((request, index) => ({
    request,
    id: `${round}.${index}`,
    text: toClientRequest(request, `${round}.${index}`),
  }));
  // Waits begin before the questions are sent, because the answers come on other connections.
  const waiting = questions.map(async ({ request, id }) => {
    open.add(id);
    const message = await clientRequests.register(client.session, id, either);
    open.delete(id);
    return `${JSON.stringify(request.key)}:${resultOf(request, message)}`;
  });
  const answers = Promise.all(waiting);
  answers.catch(() => {});
  try {
    for (const { text } of questions) yield eventBytes(client.toClient(text));
    return `{${(await answers).join(',')}}`;
  } catch (error) {
    if (!signal.aborted) for (const requestId of open) yield eventBytes(client.toClient(takenBack(requestId)));
    throw error;
  } finally {
    over.abort();
  }
}

function refuseUnaskable({ capabilities, events }: ClientContext, request: InputRequest): void {
  if (!events)
    throw new NoAnswer(
      `it asks the client (${request.method}), but the client does not accept an event stream. Send "Accept: application/json, text/event-stream"`,
    );
  const missing = missingCapability(request, capabilities);
  if (missing !== null)
    throw new NoAnswer(
      `it asks the client (${request.method}), but the client did not declare the capability ${missing}`,
    );
}

/** The client's result, as JSON text. A modern server accepts only results, so an error of the client ends the call. */
function resultOf({ method }: InputRequest, { text, members, result, error }: ResponseMessage): string {
  if (error) throw new NoAnswer(`the client answered ${method} with the error ${error.code}: ${error.message}`);
  if (!isObject(result)) throw new NoAnswer(`the client answered ${method} with no object`);
  const { start, end } = members.get('result')!;
  return text.slice(start, end);
}

const takenBack = (requestId: string) =>
  notificationText('notifications/cancelled', { requestId, reason: 'The answer is no longer needed' });

/** The questions that a server asks before it continues a request: an `input_required` result. */
export interface PendingRequest {
  readonly requests: readonly InputRequest[];
  /** The server's `requestState` as JSON text, to be sent back unchanged; null without a state. */
  readonly state: string | null;
}

interface InputRequest {
  readonly key: string;
  readonly method: string;
  readonly params: JsonObject;
  /** `{"method": …, "params": …}`, unchanged. */
  readonly text: string;
}

const REQUESTS_MAX = 32;

/**
 * Reads the questions of a response; null if it asks none. Throws RawJsonError if the result asks in a way that the
 * revision does not define.
 */
export function readAsked(
  { method }: RequestMessage,
  { text, members, result }: ResponseMessage,
): PendingRequest | null {
  if (!isObject(result) || result['resultType'] !== 'input_required') return null;
  if (!LEGACY_METHODS[method]?.inputRequired) throw new RawJsonError(`a result of ${method} asks for input`);
  const { inputRequests = {}, requestState } = result;
  const places = membersOf(text, members.get('result')!.start);
  const state = places.get('requestState');
  if (!isObject(inputRequests) || (state && typeof requestState !== 'string'))
    throw new RawJsonError('inputRequests or requestState is of the wrong type');
  const place = places.get('inputRequests');
  const requests = place
    ? [...membersOf(text, place.start)].map(([key, { start, end }]) =>
        readRequest(key, inputRequests[key], text.slice(start, end)),
      )
    : [];
  if (requests.length > REQUESTS_MAX)
    throw new RawJsonError(`a result asks for more than ${REQUESTS_MAX} inputs at once`);
  if (requests.length === 0 && !state)
    throw new RawJsonError('a result asks for input but has neither inputRequests nor requestState');
  return { requests, state: state ? text.slice(state.start, state.end) : null };
}

function readRequest(key: string, request: unknown, text: string): InputRequest {
  const { method, params = {} } = isObject(request) ? request : {};
  if (typeof method !== 'string' || !Object.hasOwn(NEEDS, method) || !isObject(params))
    throw new RawJsonError('an input request has a method that MCP does not have');
  return { key, method, params, text };
}

/** The request for a legacy client. A URL gets an `elicitationId`, which modern servers do not give. */
function toClientRequest({ method, params, text }: InputRequest, id: string): string {
  const idText = JSON.stringify(id);
  const inner = membersOf(text).get('params');
  const lacksId = method === 'elicitation/create' && params['mode'] === 'url' && params['elicitationId'] === undefined;
  const changed = inner && lacksId ? splice(text, [withMembers(text, inner, { elicitationId: idText })]) : text;
  return splice(changed, [withMembers(changed, { start: 0, end: changed.length }, { jsonrpc: '"2.0"', id: idText })]);
}

/** The capability that the client needs for this question and lacks, as a path; null if it lacks none. */
function missingCapability({ method, params }: InputRequest, capabilities: JsonObject): string | null {
  const [name, part] = NEEDS[method as keyof typeof NEEDS](params);
  const declared = capabilities[name];
  if (!isObject(declared)) return name;
  // In revisions before elicitation had modes, it meant forms.
  if (part === null || declared[part] !== undefined || (part === 'form' && declared['url'] === undefined)) return null;
  return `${name}.${part}`;
}

type Need = readonly [capability: string, part: string | null];

const NEEDS = {
  'elicitation/create': ({ mode }: JsonObject): Need => ['elicitation', mode === 'url' ? 'url' : 'form'],
  'sampling/createMessage': ({ tools, toolChoice }: JsonObject): Need => [
    'sampling',
    tools === undefined && toolChoice === undefined ? null : 'tools',
  ],
  'roots/list': (): Need => ['roots', null],
} as const;
