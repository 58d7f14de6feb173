import { isObject, type JsonObject } from '#wire';
import type { A2aOperation, A2aVersion } from './protocol.ts';
import { drop, editMembers } from './edit-json.ts';
import { stateName, stateOf } from './events.ts';

export type RestVerb = 'GET' | 'POST' | 'DELETE';

/**
 * A route of the HTTP+JSON binding, below the interface's URL. `{id}` is the task, `{configId}` the push
 * notification configuration.
 */
interface RestRoute {
  readonly operation: A2aOperation;
  readonly verb: RestVerb;
  readonly path: string;
}

/**
 * 1.0: section 5.3 and the `google.api.http` options of `a2a.proto`; each route may also be below `/{tenant}`. For
 * subscribe, section 5.3 uses POST and the proto uses GET, so both are served. 0.3: section 3.5.6; its clients
 * subscribe by GET too. Routes with longer literals come first, because an id may contain any character but a slash.
 */
export const REST_ROUTES: Readonly<Record<A2aVersion, readonly RestRoute[]>> = {
  '1.0': routesBelow('', 'extendedAgentCard', true),
  '0.3': routesBelow('/v1', 'card', false),
};

function routesBelow(root: string, card: string, lists: boolean): readonly RestRoute[] {
  const task = `${root}/tasks/{id}`;
  return [
    { operation: 'send', verb: 'POST', path: `${root}/message:send` },
    { operation: 'stream', verb: 'POST', path: `${root}/message:stream` },
    { operation: 'card', verb: 'GET', path: `${root}/${card}` },
    { operation: 'cancel', verb: 'POST', path: `${task}:cancel` },
    { operation: 'subscribe', verb: 'POST', path: `${task}:subscribe` },
    { operation: 'subscribe', verb: 'GET', path: `${task}:subscribe` },
    { operation: 'push-set', verb: 'POST', path: `${task}/pushNotificationConfigs` },
    { operation: 'push-list', verb: 'GET', path: `${task}/pushNotificationConfigs` },
    { operation: 'push-get', verb: 'GET', path: `${task}/pushNotificationConfigs/{configId}` },
    { operation: 'push-delete', verb: 'DELETE', path: `${task}/pushNotificationConfigs/{configId}` },
    { operation: 'get', verb: 'GET', path: task },
    ...(lists ? [{ operation: 'list', verb: 'GET', path: `${root}/tasks` } as const] : []),
  ];
}

export interface RestMatch {
  readonly operation: A2aOperation;
  /** The decoded ids. `tenant` is present if the path has a tenant before the route (1.0). */
  readonly ids: { readonly tenant?: string; readonly id?: string; readonly configId?: string };
}

/** A path without a route for the verb. `allowed`: the verbs of the path; empty for an unknown path. */
interface RestMiss {
  readonly allowed: readonly RestVerb[];
}

/**
 * The operation of a request below the interface's URL. `path` begins with a slash, is still percent-encoded and
 * has no query. Never throws.
 */
export function matchRest(version: A2aVersion, verb: string, path: string): RestMatch | RestMiss {
  const allowed = new Set<RestVerb>();
  for (const { route, pattern } of PATTERNS[version]) {
    const match = path.length <= PATH_CHARS_MAX ? pattern.exec(path) : null;
    const ids = match === null ? null : decoded({ ...match.groups });
    if (ids === null) continue;
    if (route.verb === verb) return { operation: route.operation, ids };
    allowed.add(route.verb);
  }
  return { allowed: [...allowed] };
}

const PATH_CHARS_MAX = 4_096;

interface Pattern {
  readonly route: RestRoute;
  readonly pattern: RegExp;
}

const PATTERNS: Readonly<Record<A2aVersion, readonly Pattern[]>> = {
  '0.3': REST_ROUTES['0.3'].map((route) => toPattern(route, false)),
  '1.0': [false, true].flatMap((tenants) => REST_ROUTES['1.0'].map((route) => toPattern(route, tenants))),
};

function toPattern(route: RestRoute, tenants: boolean): Pattern {
  const path = route.path.replaceAll('/', '\\/').replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+?)');
  return { route, pattern: new RegExp(`^${tenants ? '\\/(?<tenant>[^/]+)' : ''}${path}\\/?$`) };
}

/** Decodes the ids; null for an invalid percent encoding. */
function decoded(groups: Record<string, string>): RestMatch['ids'] | null {
  try {
    return Object.fromEntries(Object.entries(groups).map(([name, text]) => [name, decodeURIComponent(text)]));
  } catch {
    return null;
  }
}

/**
 * The parts of a request over HTTP+JSON that become its parameters. `query` is decoded: each value is a text, or a list
 * of texts if its name is repeated.
 */
export interface RestInput {
  readonly query?: Readonly<Record<string, unknown>>;
  /** The parsed body; undefined for an empty one. */
  readonly body?: unknown;
}

type Reader = (value: string) => unknown;

/**
 * Each reader turns a query text into the value of the JSON-RPC form (1.0 section 11.5); undefined for an invalid text.
 */
const text: Reader = (value) => value;
const integer: Reader = (value) => (/^-?\d{1,9}$/.test(value) ? Number(value) : undefined);
const boolean: Reader = (value) => (value === 'true' ? true : value === 'false' ? false : undefined);
/** Reads a state by its name in 1.0, its name in 0.3, or its number. Section 11.5 itself writes `status=working`. */
const state: Reader = (value) => {
  const taskState = stateOf(/^\d$/.test(value) ? Number(value) : value);
  return taskState === 'unknown' && value !== 'TASK_STATE_UNSPECIFIED' ? undefined : stateName(taskState);
};

const QUERY: Readonly<Partial<Record<A2aOperation, Readonly<Record<string, Reader>>>>> = {
  get: { historyLength: integer },
  list: {
    contextId: text,
    status: state,
    pageSize: integer,
    pageToken: text,
    historyLength: integer,
    statusTimestampAfter: text,
    includeArtifacts: boolean,
  },
  'push-list': { pageSize: integer, pageToken: text },
};

const WITH_BODY: ReadonlySet<A2aOperation> = new Set(['send', 'stream', 'cancel', 'push-set']);

/**
 * The parameters of a 1.0 request over HTTP+JSON in the form of JSON-RPC, or a text that names the fault. Ids from the
 * path go before the query, and the query before the body. Unknown query parameters are ignored, because `A2A-Version`
 * may be among them.
 */
export function restParams({ operation, ids }: RestMatch, { query = {}, body }: RestInput): JsonObject | string {
  const fromBody = WITH_BODY.has(operation) && body !== undefined && body !== null ? body : {};
  if (!isObject(fromBody)) return 'the body must be a JSON object';
  const fromQuery: Record<string, unknown> = {};
  for (const [name, read] of Object.entries(QUERY[operation] ?? {})) {
    const proto = protoName(name);
    const value = Object.hasOwn(query, name) ? query[name] : Object.hasOwn(query, proto) ? query[proto] : undefined;
    if (proto !== name && Object.hasOwn(query, name) && Object.hasOwn(query, proto))
      return `${proto} and ${name} are the same field: send only ${name}`;
    if (value === undefined || value === '') continue;
    const result = typeof value === 'string' ? read(value) : undefined;
    if (result === undefined) return `${name} must be ${EXPECTED.get(read)}, once`;
    fromQuery[name] = result;
  }
  const { tenant, id, configId } = ids;
  const owned = operation.startsWith('push-')
    ? { ...(id === undefined ? {} : { taskId: id }), ...(configId === undefined ? {} : { id: configId }) }
    : id === undefined
      ? {}
      : { id };
  return { ...fromBody, ...fromQuery, ...(tenant === undefined ? {} : { tenant }), ...owned };
}

const EXPECTED: ReadonlyMap<Reader, string> = new Map([
  [text, 'a text'],
  [integer, 'a whole number'],
  [boolean, 'true or false'],
  [state, 'a state such as TASK_STATE_WORKING'],
]);

/** A request over HTTP+JSON. `path` is below the interface's URL and includes the query. */
interface RestRequest {
  readonly verb: RestVerb;
  readonly path: string;
  readonly body?: JsonObject;
}

/**
 * The request of the HTTP+JSON binding of 1.0 for parameters in the form of JSON-RPC. Returns a text that names a
 * missing id.
 */
export function restRequest(operation: A2aOperation, params: JsonObject): RestRequest | string {
  const { verb, path } = REST_ROUTES['1.0'].find((route) => route.operation === operation)!;
  const [idName, configName] = operation.startsWith('push-') ? ['taskId', 'id'] : ['id', ''];
  const id = params[idName];
  const configId = configName === '' ? undefined : params[configName];
  if (path.includes('{id}') && !isId(id)) return `${idName} must be a string that is not empty`;
  if (path.includes('{configId}') && !isId(configId)) return `${configName} must be a string that is not empty`;
  const { tenant } = params;
  const filled = path.replace('{id}', () => encoded(id)).replace('{configId}', () => encoded(configId));
  const full = isId(tenant) ? `/${encoded(tenant)}${filled}` : filled;
  if (!WITH_BODY.has(operation)) return { verb, path: `${full}${queryOf(operation, params)}` };
  const inPath = { tenant: drop, ...(path.includes('{id}') ? { [idName]: drop } : {}) };
  return { verb, path: full, body: editMembers(params, inPath) };
}

function queryOf(operation: A2aOperation, params: JsonObject): string {
  const query = new URLSearchParams();
  for (const name of Object.keys(QUERY[operation] ?? {})) {
    const value = params[name];
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
      query.set(name, String(value));
  }
  const search = query.toString();
  return search === '' ? '' : `?${search}`;
}

const isId = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value !== '.' && value !== '..';

/** A lone surrogate has no UTF-8 form, so encodeURIComponent would throw. */
const encoded = (value: unknown): string => encodeURIComponent(String(value).toWellFormed());

/** The name of a field in `a2a.proto`, from its name in JSON: `taskId` → `task_id`. */
export const protoName = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
