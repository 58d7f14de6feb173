import { isObject, type JsonObject } from '#wire';
import { CODE, RPC_ERRORS } from './errors-rpc.ts';
import { DISCOVER, META_PARAM, type RpcMethod, type Param } from './method.ts';

interface OpenRpcOptions {
  readonly methods: readonly RpcMethod[];
  /** The document of `/openapi.json`. The parameters are taken from it. */
  readonly openApi: JsonObject;
  readonly version: string;
  readonly url: string;
}

/** The OpenRPC 1.3 document of the offered methods. */
export function openRpc({ methods, openApi, version, url }: OpenRpcOptions): JsonObject {
  const components = objectIn(openApi, 'components', 'schemas');
  return {
    openrpc: '1.3.2',
    info: { title: 'tollgate', version, description: DESCRIPTION, license: { name: 'Apache-2.0' } },
    servers: [{ name: 'this gateway', url }],
    methods: [...methods.map((method) => described(method, openApi)), DISCOVER_ITSELF],
    components: { errors: ERRORS, ...(Object.keys(components).length === 0 ? {} : { schemas: components }) },
  };
}

const DESCRIPTION =
  'Chat models, tools and agents by one JSON-RPC 2.0 endpoint. Parameters are given by name. A batch has up to 50 entries; each is a call of its own, ' +
  'with its own charge, and is answered in its place. Notifications are not executed. Streams have their own endpoints.';

const DISCOVER_ITSELF = {
  name: DISCOVER,
  summary: 'Show this document',
  paramStructure: 'by-name',
  params: [],
  result: { name: 'OpenRPC Schema', schema: { type: 'object' } },
};

/** The meaning of each code. The message of an actual error describes the fault itself. */
const MEANINGS: Readonly<Record<number, readonly [name: string, meaning: string]>> = {
  [CODE.parse]: ['parseError', 'The body is not JSON'],
  [CODE.invalidRequest]: ['invalidRequest', 'An entry is no request, or the batch is empty or too large'],
  [CODE.methodNotFound]: ['methodNotFound', 'There is no such method'],
  [CODE.invalidParams]: ['invalidParams', 'A parameter is wrong: data.param names it'],
  [CODE.internal]: ['internal', 'Internal error'],
  [RPC_ERRORS.unauthorized.code]: ['unauthorized', 'No credential, or one that is not valid'],
  [RPC_ERRORS.insufficient_balance.code]: [
    'payment',
    'The balance or a limit is too low; data may contain the x402 terms',
  ],
  [RPC_ERRORS.payment_pending.code]: [
    'paymentPending',
    'The payment is not known to be settled yet: repeat the request with it',
  ],
  [RPC_ERRORS.permission_denied.code]: ['permissionDenied', 'The key may not do this'],
  [RPC_ERRORS.not_found.code]: ['notFound', 'There is no such model, agent or call'],
  [RPC_ERRORS.idempotency_conflict.code]: [
    'idempotencyConflict',
    'The idempotency key was used for something else, or its call still runs; or a quote cannot be used',
  ],
  [RPC_ERRORS.payload_too_large.code]: [
    'payloadTooLarge',
    'The request, or the reply to the batch, is too large, or the request arrives too slowly',
  ],
  [RPC_ERRORS.rate_limit_exceeded.code]: [
    'rateLimitExceeded',
    'Too many requests: data.retry_after_s says when to come back',
  ],
  [RPC_ERRORS.provider_unavailable.code]: [
    'providerUnavailable',
    'No provider gave a valid answer; nothing was charged',
  ],
  [RPC_ERRORS.service_unavailable.code]: ['serviceUnavailable', 'The gateway cannot take calls at the moment'],
};

const OF_EVERY_ENDPOINT: ReadonlySet<number> = new Set(Object.values(RPC_ERRORS).map(({ code }) => code));

const ERRORS = Object.fromEntries(
  Object.entries(MEANINGS).map(([code, [name, message]]) => [name, { code: Number(code), message }]),
);
const errorRefs = Object.entries(MEANINGS)
  .filter(([code]) => OF_EVERY_ENDPOINT.has(Number(code)))
  .map(([, [name]]) => ({ $ref: `#/components/errors/${name}` }));

function described(method: RpcMethod, openApi: JsonObject): JsonObject {
  const { name, summary, route, params = [], billed } = method;
  const path = method.describedAt ?? route.url.replace(/\*$/, '{name}');
  const operation = objectIn(openApi, 'paths', path, route.verb.toLowerCase());
  const own =
    method.described === undefined
      ? []
      : method.described === 'query'
        ? queryOf(operation)
        : bodyOf(operation, openApi);
  const all = [...params, ...own, ...(billed ? [META_PARAM] : [])];
  const { description } = operation;
  return {
    name,
    summary,
    ...(method.described !== undefined && typeof description === 'string' && description !== '' ? { description } : {}),
    paramStructure: 'by-name',
    // Required parameters come first in an OpenRPC document.
    params: all.toSorted((a, b) => Number(b.required ?? false) - Number(a.required ?? false)).map(descriptor),
    result: { name: 'result', schema: resultOf(operation) },
    errors: errorRefs,
  };
}

const descriptor = ({ name, description, required = false, schema }: Param) => ({
  name,
  ...(description === '' ? {} : { description }),
  required,
  schema,
});

function queryOf(operation: JsonObject): Param[] {
  const parameters: readonly unknown[] = Array.isArray(operation['parameters']) ? operation['parameters'] : [];
  return parameters.filter(isObject).flatMap((parameter) => {
    if (parameter['in'] !== 'query') return [];
    const { name, description, required, schema } = parameter;
    return [
      {
        name: String(name),
        description: wordsOf(description),
        required: required === true,
        schema: isObject(schema) ? schema : {},
      },
    ];
  });
}

/** Parameters for streams, which do not exist here. */
const STREAMS: readonly string[] = ['stream', 'stream_options'];

function bodyOf(operation: JsonObject, openApi: JsonObject): Param[] {
  const schema = meantBy(objectIn(operation, 'requestBody', 'content', 'application/json', 'schema'), openApi);
  const required: readonly unknown[] = Array.isArray(schema['required']) ? schema['required'] : [];
  return Object.entries(objectIn(schema, 'properties')).flatMap(([name, property]) => {
    if (STREAMS.includes(name)) return [];
    const { description, ...rest } = isObject(property) ? property : {};
    return [{ name, description: wordsOf(description), required: required.includes(name), schema: rest }];
  });
}

const wordsOf = (description: unknown): string => (typeof description === 'string' ? description : '');

function resultOf(operation: JsonObject): JsonObject {
  const content = objectIn(operation, 'responses', '200', 'content');
  if (isObject(content['text/plain'])) return { type: 'string' };
  const schema = objectIn(content, 'application/json', 'schema');
  return Object.keys(schema).length === 0 ? { type: 'object' } : schema;
}

function meantBy(schema: JsonObject, openApi: JsonObject): JsonObject {
  const { $ref: ref } = schema;
  return typeof ref === 'string' ? objectIn(openApi, ...ref.split('/').slice(1)) : schema;
}

/** The object at a path; empty if the path leads to no object. */
function objectIn(value: JsonObject, ...path: readonly string[]): JsonObject {
  let at: unknown = value;
  for (const name of path) at = isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  return isObject(at) ? at : {};
}
