import { createHash } from 'node:crypto';
import { MoneyError, parseUsd, toUsdNumber, type MicroUsd } from './money.ts';

/**
 * The meters that a provider can charge for. A protocol maps its units to these meters, so billing does not know the
 * protocol.
 */
export const METERS = [
  'prompt',
  'completion',
  'image',
  'second',
  'call',
  'input_image',
  'input_cache_read',
  'input_cache_write',
] as const;
export type Meter = (typeof METERS)[number];

/**
 * Micro-USD per 1,000,000 units of each meter. All meters have the same scale, so a cost is one sum and one division.
 */
export type Rates = Readonly<Partial<Record<Meter, MicroUsd>>>;

/**
 * Meters of prompt tokens that a provider read from a cache or wrote to one. By default they cost the same as `prompt`.
 */
const CACHE_METERS = ['input_cache_read', 'input_cache_write'] as const;
const ofCache = (meter: Meter): boolean => (CACHE_METERS as readonly Meter[]).includes(meter);

/** The rate of a meter; 0 if it has no price. */
export const rateOf = (rates: Rates, meter: Meter): MicroUsd =>
  rates[meter] ?? (ofCache(meter) ? rates.prompt : undefined) ?? 0n;

/** True if cache tokens have a separate price. */
export const pricesCache = ({ input_cache_read: read, input_cache_write: written }: Rates): boolean =>
  read !== undefined || written !== undefined;

/** Units used, each a non-negative integer. An absent meter counts as 0. */
export type Usage = Readonly<Partial<Record<Meter, bigint>>>;

/** One immutable price of one provider for one service. A change of rates is a new version with a new id. */
export interface Price {
  readonly id: string;
  readonly rates: Rates;
}

const UNITS = 1_000_000n;

/**
 * The cost of `usage` at `rates`: computed exactly over all meters, then rounded up to one micro-USD, once.
 * A non-zero rate with non-zero usage therefore never costs 0.
 */
export function cost(rates: Rates, usage: Usage): MicroUsd {
  let sum = 0n;
  for (const meter of METERS) {
    const units = usage[meter];
    if (units) sum += rateOf(rates, meter) * units;
  }
  return (sum + UNITS - 1n) / UNITS;
}

/**
 * The most that `usage` can cost at `rates`, because any prompt token may turn out to be read from a cache or written
 * to one.
 */
export function costAtMost(rates: Rates, usage: Usage): MicroUsd {
  return pricesCache(rates) ? cost({ ...rates, prompt: maxPromptRate(rates) }, usage) : cost(rates, usage);
}

/** The highest rate of a prompt token, in micro-USD per 1M tokens. */
export function maxPromptRate(rates: Rates): MicroUsd {
  let dearest = rateOf(rates, 'prompt');
  for (const meter of CACHE_METERS) if (rateOf(rates, meter) > dearest) dearest = rateOf(rates, meter);
  return dearest;
}

/** All tokens of the prompt, including cache tokens. */
export const promptTokens = ({
  prompt = 0n,
  input_cache_read: read = 0n,
  input_cache_write: written = 0n,
}: Usage): bigint => prompt + read + written;

/** True when any meter has a non-zero rate. */
export function isPriced(rates: Rates): boolean {
  return METERS.some((meter) => (rates[meter] ?? 0n) > 0n);
}

/** Meters whose price is written per 1M units; the others are written per single unit. */
const PER_MILLION: ReadonlySet<Meter> = new Set(['prompt', 'completion', ...CACHE_METERS]);

/**
 * Parses prices as providers write them: USD per 1M for tokens, USD per unit for the others.
 * Throws MoneyError that names the meter. Unknown meters are refused.
 */
export function parseRates(pricing: Readonly<Record<string, unknown>>): Rates {
  const rates: Partial<Record<Meter, MicroUsd>> = {};
  for (const [name, value] of Object.entries(pricing)) {
    if (value === undefined || value === null) continue;
    if (!(METERS as readonly string[]).includes(name))
      throw new MoneyError(`pricing.${name} is not a price; prices are ${METERS.join(', ')}`);
    const meter = name as Meter;
    const amount = parseUsd(value, `pricing.${name}`);
    rates[meter] = PER_MILLION.has(meter) ? amount : amount * UNITS;
  }
  return rates;
}

/**
 * The inverse of parseRates, for display: USD per 1M for tokens, USD per unit for the others.
 */
export function ratesToUsd(rates: Rates): Partial<Record<Meter, number>> {
  const usd: Partial<Record<Meter, number>> = {};
  for (const meter of METERS) {
    const rate = rates[meter];
    if (rate !== undefined) usd[meter] = toUsdNumber(PER_MILLION.has(meter) ? rate : rate / UNITS);
  }
  return usd;
}

/**
 * USD for one unit of a meter as an exact decimal text: a rate of 150,000 (0.15 USD per 1M tokens) is "0.00000015"
 * a token.
 */
export function unitUsd(rate: MicroUsd): string {
  const digits = rate.toString().padStart(13, '0');
  const fraction = digits.slice(-12).replace(/0+$/, '');
  return digits.slice(0, -12) + (fraction ? `.${fraction}` : '');
}

/** Meters of the first release. Prices without a later meter keep the ids that they have had since then. */
const FIRST_METERS = 5;

/**
 * The id of a price version: a digest of provider, service and rates, so every gateway derives the same id. A free
 * cache rate differs from an absent one, which costs the same as the prompt.
 */
export function priceId(provider: string, service: string, rates: Rates): string {
  const first = METERS.slice(0, FIRST_METERS).map((meter) => (rates[meter] ?? 0n).toString());
  const later = METERS.slice(FIRST_METERS).flatMap((meter) => {
    const rate = rates[meter];
    return rate || (rate !== undefined && ofCache(meter)) ? [[meter, rate.toString()] as const] : [];
  });
  const canonical = JSON.stringify([provider, service, first, ...later]);
  return `price-${createHash('sha256').update(canonical).digest('hex').slice(0, 32)}`;
}

/** Rates as a JSON object of decimal strings, the form in which a price version is stored. */
export function ratesToJson(rates: Rates): Record<string, string> {
  return Object.fromEntries(
    METERS.filter((meter) => rates[meter] !== undefined).map((meter) => [meter, rates[meter]!.toString()]),
  );
}

/** The inverse of ratesToJson. */
export function ratesFromJson(json: Readonly<Record<string, string>>): Rates {
  return Object.fromEntries(Object.entries(json).map(([meter, rate]) => [meter, BigInt(rate)]));
}

/** Usage as JSON text, the form that a generation stores: `{"prompt":12,"completion":34}`. */
export function usageToText(usage: Usage): string {
  let text = '';
  for (const meter of METERS) {
    const units = usage[meter];
    if (units !== undefined) text += `${text === '' ? '' : ','}"${meter}":${units}`;
  }
  return `{${text}}`;
}

/** The inverse of usageToText. */
export function usageFromText(text: string): Usage {
  return Object.fromEntries(
    Object.entries(JSON.parse(text) as Record<string, number>).map(([meter, units]) => [meter, BigInt(units)]),
  );
}

/** A price that grows by more than this factor counts as a jump. */
export const JUMP = 2n;

/** True if the rate of any meter is more than `times` its old rate. */
export function ratesAbove(rates: Rates, was: Rates, times: bigint = JUMP): boolean {
  return METERS.some((meter) => isAbove(meter, rates, was, times));
}

/**
 * The meters whose price has jumped. A meter without a price before and after is left out, because the meter that it
 * follows shows the jump.
 */
export const jumpedMeters = (rates: Rates, was: Rates): readonly Meter[] =>
  METERS.filter((meter) => (rates[meter] ?? was[meter]) !== undefined && isAbove(meter, rates, was, JUMP));

const isAbove = (meter: Meter, rates: Rates, was: Rates, times: bigint): boolean =>
  rateOf(rates, meter) > times * rateOf(was, meter);

interface OfferParts {
  readonly primitive: string;
  /** Public key of the provider. */
  readonly provider: string;
  readonly service: string;
}

/** The id of an offer: a service of one provider. Tables and routing use this id. */
export const offerId = ({ primitive, provider, service }: OfferParts): string => `${primitive}/${provider}:${service}`;

const OFFER = /^([a-z]+)\/([^:]*):(.*)$/s;

/** The parts of an offer's id; empty texts if the text is no such id. */
export function partsOfOffer(id: string): OfferParts {
  const [, primitive = '', provider = '', service = ''] = OFFER.exec(id) ?? [];
  return { primitive, provider, service };
}
