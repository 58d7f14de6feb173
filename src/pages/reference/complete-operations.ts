import { HTTP_ERRORS, isObject } from '#wire';
import { type Access, headersOf, headersOfError, parametersOf } from './shared-parts.ts';
import type { Operation, PathTable, Response } from './openapi.ts';

export interface CompletionOptions {
  /** Whether a payment is accepted as the only credential of a billed call. */
  readonly payable: boolean;
}

/** Responses by name, for `components.responses`. */
export type NamedResponses = Record<string, Response>;

const CREDENTIALS = [{ bearer: [] }, { apiKey: [] }, { wallet: [] }];
/** Chapters whose answers carry the cost inside, not in headers. */
const BRIDGED_KINDS: ReadonlySet<string | undefined> = new Set(['MCP', 'Agents', 'JSON-RPC']);
const BILLED: ReadonlySet<string | undefined> = new Set(['Chat', 'Images', 'Videos', ...BRIDGED_KINDS]);
/** Requests of these chapters that look at a task and cost nothing. */
const FREE = /\/(?:retrieve|cancel)$/;

const MEANINGS: Readonly<Record<number, readonly [name: string, meaning: string]>> = {
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
  413: ['TooLarge', 'The body is too large.'],
  422: ['Unprocessable', 'The request is valid and cannot be served.'],
  424: ['NeverFunded', 'The account was never funded.'],
  429: ['TooManyRequests', 'Too many requests.'],
  500: ['Failed', 'The provider or the gateway failed.'],
  503: ['Unavailable', 'Not possible at the moment: retry after `Retry-After`.'],
  529: ['Overloaded', 'The provider has too much to do.'],
};
const OF_ALL = [429, 500, 503];
const OF_BILLED = [400, 401, 402, 403, 404, 408, 409, 413, 422, 424, ...OF_ALL, 529];
const KINDS: Readonly<Record<Access, string>> = { open: 'Open', keyed: '', billed: 'OfCall', spoken: 'OfCall' };
const SCHEMAS = '#/components/schemas/';

/**
 * Completes every operation in place: adds an id, headers, and the errors of its wire. Removes the HEAD operation
 * beside each GET. Errors that many operations have are added to `named`.
 */
export function completeOperations(paths: PathTable, { payable }: CompletionOptions, named: NamedResponses): void {
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
      operation.parameters = [...own, ...parametersOf(access, own)] as typeof own;
      addResponses(operation, statuses, access, named);
    }
  }
}

function addResponses(operation: Operation, statuses: readonly number[], access: Access, named: NamedResponses): void {
  const { default: given, ...responses } = operation.responses ?? {};
  const schema = schemaOf(given) ?? { $ref: `${SCHEMAS}Error` };
  for (const [status, response] of Object.entries(responses)) {
    if (response.description === 'Default Response')
      response.description = status === '201' ? 'It was made.' : 'The answer.';
    response.headers = { ...headersOf(access), ...response.headers };
  }
  const family = (schema['$ref'] as string).slice(SCHEMAS.length).replace(/Error$/, '');
  const shared = (name: string, make: () => Response) => {
    const whole = `${family}${name}${KINDS[access]}`;
    named[whole] ??= make();
    return { $ref: `#/components/responses/${whole}` } as Response;
  };
  for (const status of statuses)
    responses[status] ??= shared(MEANINGS[status]![0], () => errorResponse(status, schema, access));
  operation.responses = {
    ...responses,
    default: shared('OtherError', () => ({
      description: 'Any other error.',
      headers: headersOfError(access, null),
      content: { 'application/json': { schema } },
    })),
  };
}

/** The schema of errors that a route names itself. */
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
  { parameters = [], requestBody }: Operation,
  access: Access,
  chapter: string | undefined,
): readonly number[] {
  if (access === 'billed' || access === 'spoken') return OF_BILLED;
  const open = access === 'open';
  const named =
    parameters.some(({ in: place }) => place === 'path') ||
    parameters.some(({ name, in: place }) => place === 'query' && name === 'id');
  const money = chapter === 'Money' && requestBody !== undefined;
  return [
    // An address with a member that is not known, or that cannot be decoded, is refused everywhere.
    400,
    ...(open ? [] : [401, 403]),
    ...(money ? [402, 409] : []),
    ...(named ? [404] : []),
    ...(requestBody === undefined ? [] : [408, 413, 422]),
    ...(open ? [500, 503] : OF_ALL),
  ];
}

function errorResponse(status: number, family: Record<string, unknown>, access: Access): Response {
  const types = [...new Set(Object.values(HTTP_ERRORS).flatMap((one) => (one.status === status ? [one.type] : [])))];
  const isGateway = family['$ref'] === `${SCHEMAS}Error`;
  const schema = isGateway && status === 402 ? { $ref: `${SCHEMAS}PaymentRequired` } : family;
  return {
    description: `${MEANINGS[status]![1]}${isGateway ? ` \`type\`: ${types.map((type) => `\`${type}\``).join(', ')}.` : ''}`,
    headers: headersOfError(access, status),
    content: { 'application/json': { schema } },
  };
}
