import { HTTP_ERRORS } from '#wire';
import type { Operation, Parameter, PathTable, Response } from './openapi.ts';

export interface CompletionOptions {
  /** Whether a payment is accepted as the only credential of a billed call. */
  readonly payable: boolean;
}

const CREDENTIALS = [{ bearer: [] }, { apiKey: [] }, { wallet: [] }];
/** Chapters whose errors have a form of their own. Their operations describe these errors themselves. */
const OTHER_WIRES: ReadonlySet<string | undefined> = new Set(['MCP', 'Agents', 'JSON-RPC']);
const BILLED: ReadonlySet<string | undefined> = new Set(['Chat', 'Images', ...OTHER_WIRES]);

const header = (name: string, description: string): Parameter => ({
  name,
  in: 'header',
  required: false,
  description,
  schema: { type: 'string' },
});

const REQUEST_ID = header(
  'X-Request-ID',
  'Your id of the request, up to 128 printable characters: it comes back, and is in the record of the call.',
);
const BILLED_HEADERS = [
  header('Idempotency-Key', 'A repeated call with the same key gets the same answer without a second charge.'),
  header('x-max-cost', 'USD that the call, and all calls made for it, may cost at most.'),
  header('x-quote-id', 'A quote of this call: it costs what the quote says.'),
  header('x-receipt', '`1` asks for a signed receipt.'),
  header('x-session-id', 'Calls of one session prefer the provider that served the last one.'),
  header('PAYMENT-SIGNATURE', 'An x402 payment (version 2) for the call, in answer to a 402.'),
];

const told = (description: string, type = 'string') => ({ description, schema: { type } });
const RATE = Object.fromEntries(
  ['requests', 'tokens'].flatMap((what) => [
    [`x-ratelimit-limit-${what}`, told(`Steady rate: ${what} a minute.`, 'integer')],
    [`x-ratelimit-remaining-${what}`, told(`How many ${what} are left now.`, 'integer')],
    [`x-ratelimit-reset-${what}`, told('Seconds until the full limit is available again.', 'integer')],
  ]),
);
const ALWAYS = { 'x-request-id': told('The id of the request: yours, or a new one.') };
const OF_A_CALL = {
  'x-generation-id': told('Id of the call, for `/api/v1/generation`; also of a call that failed.'),
  'x-cost-usd': told(
    'What the call itself was charged, without calls under it. Not in streams, whose last event says it.',
  ),
  'x-provider': told('Name of the provider that served.'),
  'x-receipt': told('Signed receipt (compact JWS), where it was asked for.'),
  'PAYMENT-RESPONSE': told('The result of the payment that came with the request.'),
};

const ERROR = { $ref: '#/components/schemas/Error' };
const PAYMENT_REQUIRED = { $ref: '#/components/schemas/PaymentRequired' };
const MEANINGS: Readonly<Record<number, string>> = {
  400: 'The request is not valid.',
  401: 'There is no credential, or it is not valid.',
  402: 'The balance is too low. If chains are configured, the terms of a payment are in the body and in `PAYMENT-REQUIRED`.',
  403: 'The credential may not do this.',
  404: 'The resource does not exist.',
  408: 'The body arrives too slowly.',
  409: 'The idempotency key or reference was used for another request, or the quote cannot be used.',
  413: 'The body is too large.',
  422: 'The request is valid and cannot be served.',
  424: 'The account was never funded.',
  429: 'Too many requests.',
  500: 'The provider or the gateway failed.',
  503: 'Not possible at the moment: retry after `Retry-After`.',
  529: 'The provider has too much to do.',
};
const OF_ALL = [429, 500, 503];
const OF_BILLED = [400, 401, 402, 403, 404, 408, 409, 413, 422, 424, ...OF_ALL, 529];

/**
 * Completes every operation in place: adds an id, headers, and the errors of its wire. Removes the HEAD operation
 * beside each GET.
 */
export function completeOperations(paths: PathTable, { payable }: CompletionOptions): void {
  for (const operations of Object.values(paths)) {
    if (operations['get']) delete operations['head'];
    for (const [method, operation] of Object.entries(operations)) complete(operation, method, payable);
  }
}

function complete(operation: Operation, method: string, payable: boolean): void {
  const [chapter] = operation.tags ?? [];
  const billed = BILLED.has(chapter) && method === 'post';
  const open = operation.security?.length === 0;
  operation.operationId ??= idOf(operation.summary ?? '');
  if (billed && payable && operation.security === undefined) operation.security = [{}, ...CREDENTIALS];

  const parameters = (operation.parameters ??= []);
  for (const one of [REQUEST_ID, ...(billed ? BILLED_HEADERS : [])])
    if (!parameters.some(({ name }) => name.toLowerCase() === one.name.toLowerCase())) parameters.push(one);

  const responses = (operation.responses ??= {});
  const ofItsWire = OTHER_WIRES.has(chapter) ? responses['default']?.content : undefined;
  for (const status of statusesOf(operation, billed, open, chapter))
    responses[status] ??= errorResponse(status, ofItsWire);
  responses['default'] ??= { description: 'Any other error.', content: { 'application/json': { schema: ERROR } } };
  for (const [status, response] of Object.entries(responses)) {
    if (response.description === 'Default Response')
      response.description = status === '201' ? 'It was made.' : 'The answer.';
    const ofCall =
      billed && !OTHER_WIRES.has(chapter)
        ? OF_A_CALL
        : billed
          ? { 'x-generation-id': OF_A_CALL['x-generation-id'] }
          : {};
    response.headers = { ...ALWAYS, ...(open ? {} : RATE), ...ofCall, ...response.headers };
  }
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
  billed: boolean,
  open: boolean,
  chapter: string | undefined,
): readonly number[] {
  if (billed) return OF_BILLED;
  const asked = requestBody !== undefined || parameters.some(({ in: place }) => place === 'query');
  const named =
    parameters.some(({ in: place }) => place === 'path') ||
    parameters.some(({ name, in: place }) => place === 'query' && name === 'id');
  const money = chapter === 'Money' && requestBody !== undefined;
  return [
    ...(asked ? [400] : []),
    ...(open ? [] : [401, 403]),
    ...(money ? [402, 409] : []),
    ...(named ? [404] : []),
    ...(requestBody === undefined ? [] : [408, 413, 422]),
    ...(open ? [500, 503] : OF_ALL),
  ];
}

function errorResponse(status: number, ofItsWire: Response['content']): Response {
  const types = [...new Set(Object.values(HTTP_ERRORS).flatMap((one) => (one.status === status ? [one.type] : [])))];
  const description = `${MEANINGS[status]!} \`type\`: ${types.map((type) => `\`${type}\``).join(', ')}.`;
  const content = ofItsWire ?? { 'application/json': { schema: status === 402 ? PAYMENT_REQUIRED : ERROR } };
  const retry =
    status === 429 || status === 503 || status === 529 ? { 'retry-after': told('Seconds to wait.', 'integer') } : {};
  const terms =
    status === 402 ? { 'PAYMENT-REQUIRED': told('The terms: the base64 of an x402 PaymentRequired (version 2).') } : {};
  return { description, headers: { ...retry, ...terms }, content };
}
