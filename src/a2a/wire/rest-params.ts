import { isObject, type JsonObject } from '#wire';
import { drop, editMembers } from './edit-members.ts';
import { protoName } from './proto-name.ts';
import type { Operation } from './methods.ts';
import { REST_ROUTES, type RestMatch, type RestVerb } from './rest-routes.ts';
import { stateName, stateOf } from './task-state.ts';

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
  const found = stateOf(/^\d$/.test(value) ? Number(value) : value);
  return found === 'unknown' && value !== 'TASK_STATE_UNSPECIFIED' ? undefined : stateName(found);
};

const QUERY: Readonly<Partial<Record<Operation, Readonly<Record<string, Reader>>>>> = {
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

const WITH_BODY: ReadonlySet<Operation> = new Set(['send', 'stream', 'cancel', 'push-set']);

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
    const found = typeof value === 'string' ? read(value) : undefined;
    if (found === undefined) return `${name} must be ${EXPECTED.get(read)}, once`;
    fromQuery[name] = found;
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
export function restRequest(operation: Operation, params: JsonObject): RestRequest | string {
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

function queryOf(operation: Operation, params: JsonObject): string {
  const query = new URLSearchParams();
  for (const name of Object.keys(QUERY[operation] ?? {})) {
    const value = params[name];
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
      query.set(name, String(value));
  }
  const found = query.toString();
  return found === '' ? '' : `?${found}`;
}

const isId = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value !== '.' && value !== '..';

/** A lone surrogate has no UTF-8 form, so encodeURIComponent would throw. */
const encoded = (value: unknown): string => encodeURIComponent(String(value).toWellFormed());
