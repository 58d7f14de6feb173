import type { ErrorStatus } from '#errors';
import { HTTP_ERRORS } from '#http';
import { isObject } from '#wire';

export interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: object;
}

export interface Response {
  description?: string;
  headers?: Record<string, unknown>;
  content?: Record<string, unknown>;
}

export interface OpenApiOperation {
  operationId?: string;
  parameters?: Parameter[];
  readonly requestBody?: { required?: boolean; readonly content?: Record<string, unknown> };
  responses?: Record<string, Response>;
  security?: readonly Readonly<Record<string, readonly string[]>>[];
  summary?: string;
  tags?: readonly string[];
}

export type PathTable = Readonly<Record<string, Record<string, OpenApiOperation>>>;

export interface CompletionOptions {
  /** Whether a payment is accepted as the only credential of a billed call. */
  readonly payable: boolean;
}

export type NamedResponses = Record<string, Response>;

const CREDENTIALS = [{ bearer: [] }, { apiKey: [] }, { wallet: [] }];
/** Chapters whose answers carry the cost inside, not in headers. */
const BRIDGED_KINDS: ReadonlySet<string | undefined> = new Set(['MCP', 'Agents', 'JSON-RPC']);
const BILLED: ReadonlySet<string | undefined> = new Set(['Chat', 'Images', 'Videos', ...BRIDGED_KINDS]);
/** Requests of these chapters that look at a task and cost nothing. */
const FREE = /\/(?:retrieve|cancel)$/;

/**
 * The statuses that operations describe: all of the table of errors, without two that are in `default`. 202 has a
 * meaning of its own at some operations, and a 405 is not of any operation that exists.
 */
type DescribedStatus = Exclude<ErrorStatus, 202 | 405>;
const MEANINGS: Readonly<Record<DescribedStatus, readonly [name: string, meaning: string]>> = {
  400: ['BadRequest', 'The request is not valid.'],
  401: ['Unauthorized', 'There is no credential, or it is not valid.'],
  402: [
    'PaymentRequired',
    'The balance is too low. If chains are configured, the terms of a payment are in the body and in `PAYMENT-REQUIRED`.',
  ],
  403: ['Forbidden', 'The credential may not do this.'],
  404: ['NotFound', 'The resource does not exist.'],
  408: ['RequestTimeout', 'The body arrives too slowly.'],
  409: ['Conflict', 'The idempotency key or reference was used for another request, or the quote cannot be used.'],
  410: ['Archived', 'The operator has archived the record.'],
  413: ['TooLarge', 'The body is too large.'],
  415: ['UnsupportedCoding', 'The body has a content coding that is not read. `accept-encoding` names those that are.'],
  422: ['Unprocessable', 'The request is valid and cannot be served.'],
  424: ['NeverFunded', 'The account was never funded.'],
  429: ['TooManyRequests', 'Too many requests.'],
  500: ['Failed', 'The provider or the gateway failed.'],
  503: ['Unavailable', 'Not possible at the moment: retry after `Retry-After`.'],
  529: ['Overloaded', 'The provider has too much to do.'],
};
/** A call can be refused with each of them, in ascending order. */
const OF_BILLED = Object.keys(MEANINGS).map(Number) as readonly DescribedStatus[];
const KINDS: Readonly<Record<Access, string>> = { open: 'Open', keyed: '', billed: 'OfCall', spoken: 'OfCall' };
const SCHEMAS = '#/components/schemas/';

/**
 * Completes every operation in place: adds an id, headers, and the errors of its wire. Removes the HEAD operation
 * beside each GET. Errors that many operations have are added to `names`.
 */
export function completeOperations(
  paths: PathTable,
  { payable }: CompletionOptions,
  responseNames: NamedResponses,
): void {
  for (const [path, operations] of Object.entries(paths)) {
    if (operations['get']) delete operations['head'];
    for (const [method, operation] of Object.entries(operations)) {
      const [chapter] = operation.tags ?? [];
      const billed = BILLED.has(chapter) && method === 'post' && !FREE.test(path);
      const open = operation.security?.length === 0;
      const access = billed ? (BRIDGED_KINDS.has(chapter) ? 'spoken' : 'billed') : open ? 'open' : 'keyed';
      operation.operationId ??= idOf(operation.summary ?? '');
      if (billed && payable && operation.security === undefined) operation.security = [{}, ...CREDENTIALS];
      const own = operation.parameters ?? [];
      const statuses = statusesOf(operation, access, chapter);
      if (mayBeMissing(operation)) delete operation.requestBody?.required;
      operation.parameters = [...own, ...parametersOf(access, own)] as typeof own;
      addResponses(operation, statuses, access, responseNames);
    }
  }
}

function addResponses(
  operation: OpenApiOperation,
  statuses: readonly DescribedStatus[],
  access: Access,
  responseNames: NamedResponses,
): void {
  const { default: fallback, ...responses } = operation.responses ?? {};
  const schema = schemaOf(fallback) ?? { $ref: `${SCHEMAS}Error` };
  for (const [status, response] of Object.entries(responses)) {
    if (response.description === 'Default Response')
      response.description = status === '201' ? 'It was made.' : 'The answer.';
    response.headers = { ...headersOf(access), ...response.headers };
  }
  const family = (schema['$ref'] as string).slice(SCHEMAS.length).replace(/Error$/, '');
  const shared = (name: string, make: () => Response) => {
    const whole = `${family}${name}${KINDS[access]}`;
    responseNames[whole] ??= make();
    return { $ref: `#/components/responses/${whole}` } as Response;
  };
  for (const status of statuses)
    responses[status] ??= shared(MEANINGS[status][0], () => errorResponse(status, schema, access));
  operation.responses = {
    ...responses,
    default: shared('OtherError', () => ({
      description: 'Any other error.',
      headers: headersOfError(access, null),
      content: { 'application/json': { schema } },
    })),
  };
}

/** A body that may be null may be missing. The document would say that every body is needed. */
function mayBeMissing({ requestBody }: OpenApiOperation): boolean {
  const content = requestBody?.content?.['application/json'];
  const schema = isObject(content) ? content['schema'] : null;
  return isObject(schema) && Array.isArray(schema['type']) && schema['type'].includes('null');
}

function schemaOf(response: Response | undefined): Record<string, unknown> | null {
  const content = response?.content?.['application/json'];
  const schema = isObject(content) ? content['schema'] : null;
  return isObject(schema) && typeof schema['$ref'] === 'string' ? schema : null;
}

/** Makes `showTheKeyInUse` from `Show the key in use`. */
function idOf(summary: string): string {
  const words = summary.replaceAll("'", '').match(/[A-Za-z0-9]+/g) ?? [];
  return words
    .map((word, index) => (index === 0 ? word.toLowerCase() : word[0]!.toUpperCase() + word.slice(1)))
    .join('');
}

function statusesOf(
  { parameters = [], requestBody }: OpenApiOperation,
  access: Access,
  chapter: string | undefined,
): readonly DescribedStatus[] {
  if (access === 'billed' || access === 'spoken') return OF_BILLED;
  const open = access === 'open';
  const hasName =
    parameters.some(({ in: place }) => place === 'path') ||
    parameters.some(({ name, in: place }) => place === 'query' && name === 'id');
  const money = chapter === 'Money' && requestBody !== undefined;
  // An address with a member that is not known, or that cannot be decoded, is refused everywhere.
  const statuses: DescribedStatus[] = [400];
  if (!open) statuses.push(401, 403);
  if (money) statuses.push(402, 409);
  if (hasName) statuses.push(404);
  if (requestBody !== undefined) statuses.push(408, 413, 422);
  if (!open) statuses.push(429);
  statuses.push(500, 503);
  return statuses;
}

function errorResponse(status: DescribedStatus, family: Record<string, unknown>, access: Access): Response {
  const types = [...new Set(Object.values(HTTP_ERRORS).flatMap((one) => (one.status === status ? [one.type] : [])))];
  const isGateway = family['$ref'] === `${SCHEMAS}Error`;
  const schema = isGateway && status === 402 ? { $ref: `${SCHEMAS}PaymentRequired` } : family;
  return {
    description: `${MEANINGS[status][1]}${isGateway ? ` \`type\`: ${types.map((type) => `\`${type}\``).join(', ')}.` : ''}`,
    headers: headersOfError(access, status),
    content: { 'application/json': { schema } },
  };
}

/* Headers that many operations have. An operation refers to them by name. */

const header = (name: string, description: string, schema: object): Parameter => ({
  name,
  in: 'header',
  required: false,
  description,
  schema: { type: 'string', ...schema },
});
const PRINTABLE = '^[\\x20-\\x7e]+$';

const REQUEST_ID = header(
  'X-Request-ID',
  'Your id of the request: it comes back, and is in the record of the call. One with more than 128 characters, or with others than printable ones, is replaced by a new id.',
  {},
);

const HEADERS_OF_BILLED: readonly Parameter[] = [
  header('Idempotency-Key', 'A repeated call with the same key gets the same answer without a second charge.', {
    pattern: PRINTABLE,
    minLength: 1,
    maxLength: 255,
  }),
  header('x-max-cost', 'USD that the call, and all calls made for it, may cost at most.', {
    pattern: '^[0-9]{1,9}(\\.[0-9]{1,6})?$',
    examples: ['0.05'],
  }),
  header('x-quote-id', 'A quote of this call: it costs what the quote says.', { pattern: '^qt_[0-9a-f]{32}$' }),
  header('x-receipt', '`1` or `true` asks for a signed receipt.', {}),
  header('x-session-id', 'Calls of one session prefer the provider that served the last one.', { maxLength: 256 }),
  header('PAYMENT-SIGNATURE', 'An x402 payment (version 2) for the call, in answer to a 402.', {
    pattern: '^[A-Za-z0-9+/_-]+={0,2}$',
    maxLength: 16 * 1024,
  }),
];

const headerOf = (description: string, type = 'string') => ({ description, schema: { type } });

const RATE = Object.fromEntries(
  ['requests', 'tokens'].flatMap((what) => [
    [`x-ratelimit-limit-${what}`, headerOf(`Steady rate: ${what} a minute.`, 'integer')],
    [`x-ratelimit-remaining-${what}`, headerOf(`How many ${what} are left now.`, 'integer')],
    [`x-ratelimit-reset-${what}`, headerOf('Seconds until the full limit is available again.', 'integer')],
  ]),
);
const ALWAYS = { 'x-request-id': headerOf('The id of the request: yours, or a new one.') };
const GENERATION = {
  'x-generation-id': headerOf('Id of the call, for `/api/v1/generation`; also of a call that failed.'),
};
const OF_A_CALL = {
  ...GENERATION,
  'x-cost-usd': headerOf(
    'What the call itself was charged, without calls under it. Not in streams, whose last event says it.',
  ),
  'x-provider': headerOf('Name of the provider that served.'),
  'x-tollgate-stops': headerOf(
    '`false` at the head of a stream that is read on, and paid, although its client leaves. Absent: it is ended then.',
  ),
  'x-receipt': headerOf('Signed receipt (compact JWS), where it was asked for.'),
  'PAYMENT-RESPONSE': headerOf('The result of the payment that came with the request.'),
};
const OF_ERRORS = {
  'retry-after': headerOf('Seconds to wait.', 'integer'),
  'PAYMENT-REQUIRED': headerOf('The terms: the base64 of an x402 PaymentRequired (version 2).'),
};

export const SHARED_PARAMETERS = Object.fromEntries([REQUEST_ID, ...HEADERS_OF_BILLED].map((one) => [one.name, one]));
/** The name of a shared part: short, because most answers refer to the headers of the rate. */
const partOf = (name: string): string => name.replace(/^x-ratelimit-/, '');
export const SHARED_HEADERS = Object.fromEntries(
  Object.entries({ ...ALWAYS, ...RATE, ...OF_A_CALL, ...OF_ERRORS }).map(([name, header]) => [partOf(name), header]),
);

const refs = (kind: 'headers' | 'parameters', names: readonly string[]) =>
  names.map((name) => [name, { $ref: `#/components/${kind}/${partOf(name)}` }] as const);

/** How an operation is called: by anyone, with a credential, or billed; `spoken`: its answer carries the receipt. */
type Access = 'open' | 'keyed' | 'billed' | 'spoken';

type ResponseHeaders = NonNullable<Response['headers']>;

/** References to the headers of an answer that is no error. */
function headersOf(access: Access): ResponseHeaders {
  const names = [
    ...Object.keys(ALWAYS),
    ...(access === 'open' ? [] : Object.keys(RATE)),
    ...(access === 'billed' ? Object.keys(OF_A_CALL) : access === 'spoken' ? Object.keys(GENERATION) : []),
  ];
  return Object.fromEntries(refs('headers', names));
}

/**
 * References to the headers of an error that tell something of it. The headers of the rate come with most errors too,
 * and are described where they matter: naming them at each would make the document a tenth larger.
 */
function headersOfError(access: Access, status: number | null): ResponseHeaders {
  const names = [
    ...Object.keys(ALWAYS),
    ...(access === 'billed' || access === 'spoken' ? Object.keys(GENERATION) : []),
    ...(status === 429 && access !== 'open' ? Object.keys(RATE) : []),
    ...(status === 402 ? ['PAYMENT-REQUIRED'] : []),
    ...(status !== null && [429, 503, 529].includes(status) ? ['retry-after'] : []),
  ];
  return Object.fromEntries(refs('headers', names));
}

/** References to the request headers that an operation takes besides those that it describes itself. */
function parametersOf(access: Access, own: readonly Parameter[]): readonly { readonly $ref: string }[] {
  const ownNames = new Set(own.map(({ name }) => name.toLowerCase()));
  const names = [REQUEST_ID, ...(access === 'billed' || access === 'spoken' ? HEADERS_OF_BILLED : [])]
    .map(({ name }) => name)
    .filter((name) => !ownNames.has(name.toLowerCase()));
  return refs('parameters', names).map(([, ref]) => ref);
}
