import type { Parameter, Response } from './openapi.ts';

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

const OF_BILLED: readonly Parameter[] = [
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

const told = (description: string, type = 'string') => ({ description, schema: { type } });

const RATE = Object.fromEntries(
  ['requests', 'tokens'].flatMap((what) => [
    [`x-ratelimit-limit-${what}`, told(`Steady rate: ${what} a minute.`, 'integer')],
    [`x-ratelimit-remaining-${what}`, told(`How many ${what} are left now.`, 'integer')],
    [`x-ratelimit-reset-${what}`, told('Seconds until the full limit is available again.', 'integer')],
  ]),
);
const ALWAYS = { 'x-request-id': told('The id of the request: yours, or a new one.') };
const GENERATION = {
  'x-generation-id': told('Id of the call, for `/api/v1/generation`; also of a call that failed.'),
};
const OF_A_CALL = {
  ...GENERATION,
  'x-cost-usd': told(
    'What the call itself was charged, without calls under it. Not in streams, whose last event says it.',
  ),
  'x-provider': told('Name of the provider that served.'),
  'x-receipt': told('Signed receipt (compact JWS), where it was asked for.'),
  'PAYMENT-RESPONSE': told('The result of the payment that came with the request.'),
};
const OF_ERRORS = {
  'retry-after': told('Seconds to wait.', 'integer'),
  'PAYMENT-REQUIRED': told('The terms: the base64 of an x402 PaymentRequired (version 2).'),
};

export const SHARED_PARAMETERS = Object.fromEntries([REQUEST_ID, ...OF_BILLED].map((one) => [one.name, one]));
/** The name of a shared part: short, because most answers refer to the headers of the rate. */
const partOf = (name: string): string => name.replace(/^x-ratelimit-/, '');
export const SHARED_HEADERS = Object.fromEntries(
  Object.entries({ ...ALWAYS, ...RATE, ...OF_A_CALL, ...OF_ERRORS }).map(([name, header]) => [partOf(name), header]),
);

const refs = (kind: 'headers' | 'parameters', names: readonly string[]) =>
  names.map((name) => [name, { $ref: `#/components/${kind}/${partOf(name)}` }] as const);

/** How an operation is called: by anyone, with a credential, or billed; `spoken`: its answer carries the receipt. */
export type Access = 'open' | 'keyed' | 'billed' | 'spoken';

type Headers = NonNullable<Response['headers']>;

/** References to the headers of an answer that is no error. */
export function headersOf(access: Access): Headers {
  const named = [
    ...Object.keys(ALWAYS),
    ...(access === 'open' ? [] : Object.keys(RATE)),
    ...(access === 'billed' ? Object.keys(OF_A_CALL) : access === 'spoken' ? Object.keys(GENERATION) : []),
  ];
  return Object.fromEntries(refs('headers', named));
}

/**
 * References to the headers of an error that tell something of it. The headers of the rate come with most errors too,
 * and are described where they matter: naming them at each would make the document a tenth larger.
 */
export function headersOfError(access: Access, status: number | null): Headers {
  const named = [
    ...Object.keys(ALWAYS),
    ...(access === 'billed' || access === 'spoken' ? Object.keys(GENERATION) : []),
    ...(status === 429 && access !== 'open' ? Object.keys(RATE) : []),
    ...(status === 402 ? ['PAYMENT-REQUIRED'] : []),
    ...(status !== null && [429, 503, 529].includes(status) ? ['retry-after'] : []),
  ];
  return Object.fromEntries(refs('headers', named));
}

/** References to the request headers that an operation takes besides those that it describes itself. */
export function parametersOf(access: Access, own: readonly Parameter[]): readonly { readonly $ref: string }[] {
  const taken = new Set(own.map(({ name }) => name.toLowerCase()));
  const names = [REQUEST_ID, ...(access === 'billed' || access === 'spoken' ? OF_BILLED : [])]
    .map(({ name }) => name)
    .filter((name) => !taken.has(name.toLowerCase()));
  return refs('parameters', names).map(([, ref]) => ref);
}
