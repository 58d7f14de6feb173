import {
  isObject,
  type JsonObject,
  membersOf,
  RawJsonError,
  type RequestMessage,
  type ResponseMessage,
  splice,
  withMembers,
} from '#wire';
import { LEGACY_METHODS } from '../../../wire/revisions.ts';

/** The questions that a server asks before it continues a request: an `input_required` result. */
export interface PendingRequest {
  readonly requests: readonly InputRequest[];
  /** The server's `requestState` as JSON text, to be sent back unchanged; null without a state. */
  readonly state: string | null;
}

export interface InputRequest {
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
export function toClientRequest({ method, params, text }: InputRequest, id: string): string {
  const idText = JSON.stringify(id);
  const inner = membersOf(text).get('params');
  const lacksId = method === 'elicitation/create' && params['mode'] === 'url' && params['elicitationId'] === undefined;
  const changed = inner && lacksId ? splice(text, [withMembers(text, inner, { elicitationId: idText })]) : text;
  return splice(changed, [withMembers(changed, { start: 0, end: changed.length }, { jsonrpc: '"2.0"', id: idText })]);
}

/** The capability that the client needs for this question and lacks, as a path; null if it lacks none. */
export function missingCapability({ method, params }: InputRequest, capabilities: JsonObject): string | null {
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
