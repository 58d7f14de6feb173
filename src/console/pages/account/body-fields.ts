import { GatewayError } from '#errors';
import { type CallRules, neverHadMoney } from '#accounts';
import type { Ledger } from '#billing';
import { fixedTagsFault, fixedTagsSchema, PATTERN_CHARACTERS_MAX, PATTERNS_MAX, patternsFault } from '#accounts/names';
import { DOCUMENTED, DOCUMENTED_USD } from '#http';
import { formatUsd, MICRO_USD_MAX, MoneyError, parseUsd, toUsdNumber, type MicroUsd } from '#billing/amounts';

export interface AmountBody {
  readonly amount_usd?: number | string;
  readonly amount_micro_usdc?: number;
}

/** A decimal with at most 6 places that is more than 0. */
const MORE_THAN_NOTHING = '^0{0,3}(?:[1-9][0-9]{0,8}(?:\\.[0-9]{1,6})?|0\\.[0-9]{0,5}[1-9]0{0,6})$';

export const amountProperties = {
  amount_usd: {
    anyOf: [
      { type: 'number', [DOCUMENTED]: { exclusiveMinimum: 0, maximum: DOCUMENTED_USD.maximum } },
      { type: 'string', maxLength: 40, [DOCUMENTED]: { pattern: MORE_THAN_NOTHING } },
    ],
    description: 'Decimal USD, at most 6 places.',
  },
  amount_micro_usdc: {
    type: 'integer',
    description: 'Instead: whole micro-USD.',
    [DOCUMENTED]: { minimum: 1, maximum: Number(MICRO_USD_MAX) },
  },
} as const;

/** The rule of a body with these properties, for the reference: it has one of the two. */
export const eitherAmount = {
  [DOCUMENTED]: { allOf: [{ oneOf: [{ required: ['amount_usd'] }, { required: ['amount_micro_usdc'] }] }] },
} as const;

export const documentedUsd = { minimum: DOCUMENTED_USD.minimum, maximum: DOCUMENTED_USD.maximum } as const;

/**
 * Reads the amount of a body, which must be more than 0. Throws GatewayError `invalid_request` with the name of the
 * field.
 */
export function amountOf({ amount_usd: usd, amount_micro_usdc: micro }: AmountBody): MicroUsd {
  if ((usd === undefined) === (micro === undefined)) {
    throw new GatewayError('invalid_request', 'Give either amount_usd or amount_micro_usdc', { param: 'amount_usd' });
  }
  const param = usd === undefined ? 'amount_micro_usdc' : 'amount_usd';
  const amount = usd === undefined ? BigInt(micro!) : parseUsdField(usd, param);
  if (amount > 0n && amount <= MICRO_USD_MAX) return amount;
  throw new GatewayError(
    'invalid_request',
    `${param} must be more than 0 and at most ${formatUsd(MICRO_USD_MAX)} USD`,
    { param },
  );
}

/** Reads an amount in USD. Throws GatewayError `invalid_request` with the name of the field. */
export function parseUsdField(usd: number | string, param: string): MicroUsd {
  try {
    return parseUsd(usd, param);
  } catch (error) {
    if (error instanceof MoneyError) throw new GatewayError('invalid_request', error.message, { param, cause: error });
    throw error;
  }
}

export interface CallRulesBody {
  readonly allowed_services?: readonly string[] | null;
  readonly ask_above?: number | null;
  readonly tags?: Readonly<Record<string, string>> | null;
}

export const callRulesProperties = (whose: string) =>
  ({
    allowed_services: {
      type: ['array', 'null'],
      minItems: 1,
      maxItems: PATTERNS_MAX,
      uniqueItems: true,
      items: { type: 'string', minLength: 1, maxLength: PATTERN_CHARACTERS_MAX },
      description: `What ${whose} may call; null is everything. \`files\` is a service with all that it has, \`files/read\` one tool of it, \`files/*\` all its tools, \`model:own/*\` only models of such names; a name behind a minus is taken away, wherever it stands.`,
    },
    ask_above: {
      type: ['number', 'null'],
      minimum: 0,
      description: 'USD for one call: a person accepts a call that may cost more, before it runs; null is no call.',
      [DOCUMENTED]: documentedUsd,
    },
    tags: {
      ...fixedTagsSchema,
      description: `Tags of all calls of ${whose}, at most 4. A request that gives one of them another value is refused. null removes them.`,
    },
  }) as const;

export const callRulesView = {
  allowed_services: { type: ['array', 'null'], items: { type: 'string' } },
  ask_above: { type: ['number', 'null'], description: 'USD for one call.' },
  tags: { type: ['object', 'null'], additionalProperties: { type: 'string' }, description: 'Tags of all calls.' },
} as const;

export const viewCallRules = ({ allowedServices, askAbove, tags }: CallRules) => ({
  allowed_services: allowedServices,
  ask_above: askAbove === null ? null : toUsdNumber(askAbove),
  tags,
});

/** Reads the rules that a body changes. Throws GatewayError `invalid_request` for a wrong pattern, amount or tag. */
export function parseCallRules({
  allowed_services: patterns,
  ask_above: above,
  tags,
}: CallRulesBody): Partial<CallRules> {
  const askAbove = typeof above === 'number' ? parseUsdField(above, 'ask_above') : above;
  const tagFault = tags && fixedTagsFault(tags);
  if (tagFault) throw new GatewayError('invalid_request', `tags ${tagFault}`, { param: 'tags' });
  const asks = { ...(askAbove === undefined ? {} : { askAbove }), ...(tags === undefined ? {} : { tags }) };
  if (patterns === undefined) return asks;
  const fault = patterns && patternsFault(patterns);
  if (!fault) return { ...asks, allowedServices: patterns };
  const param = fault.at === null ? 'allowed_services' : `allowed_services[${fault.at}]`;
  throw new GatewayError('invalid_request', `${param} ${fault.text}`, { param });
}

/** Bytes of the patterns of a key or member of an account that never had 0.10 USD: such accounts cost nothing. */
const UNFUNDED_PATTERNS_MAX = 4_096;

/** Throws GatewayError `unprocessable` for more patterns than an account without money may store in one place. */
export async function refuseLongPatterns(
  ledger: Pick<Ledger, 'isFunded'>,
  account: string,
  { allowedServices }: Partial<CallRules>,
): Promise<void> {
  const bytes = allowedServices ? Buffer.byteLength(JSON.stringify(allowedServices)) : 0;
  if (bytes <= UNFUNDED_PATTERNS_MAX || !(await neverHadMoney(ledger, account))) return;
  throw new GatewayError(
    'unprocessable',
    `allowed_services has ${bytes} bytes as JSON, and those of an account that never had 0.10 USD have at most ${UNFUNDED_PATTERNS_MAX}. Name fewer services, or add money first`,
    { param: 'allowed_services' },
  );
}

export const referenceField = (description: string) => ({
  type: 'string',
  minLength: 1,
  maxLength: 128,
  description,
  [DOCUMENTED]: { pattern: '\\S' },
});

/**
 * The operator's name of a payment without spaces around it, so that a copied one is the same. Throws GatewayError
 * `invalid_request` for an empty one.
 */
export function referenceOf({ reference }: { readonly reference: string }): string {
  const name = reference.trim();
  if (name !== '') return name;
  throw new GatewayError('invalid_request', 'reference must have more than spaces: it is your name of the payment', {
    param: 'reference',
  });
}

const RFC_3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-]\d\d:\d\d)$/;

const DAY = /^\d{4}-\d\d-\d\d$/;

/**
 * Parses a date and time with time zone (RFC 3339, seconds optional) to epoch milliseconds. Returns NaN for any other
 * text, and for a day that does not exist.
 */
export const parseTime = (text: string): number =>
  RFC_3339.test(text) && !Number.isNaN(parseDay(text.slice(0, 10))) ? Date.parse(text) : NaN;

/** Parses a day such as `2026-01-31` to epoch milliseconds of its beginning in UTC. Returns NaN for any other text. */
export function parseDay(text: string): number {
  const time = DAY.test(text) ? Date.parse(text) : NaN;
  // Date.parse accepts February 30 as March 2.
  return Number.isNaN(time) || new Date(time).toISOString().startsWith(text) ? time : NaN;
}
