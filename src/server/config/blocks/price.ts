import {
  formatUsd,
  MICRO_PER_USD,
  MoneyError,
  parseRates,
  parseUsd,
  perMinute,
  type Meter,
  type MicroUsd,
  type Rates,
} from '#billing/amounts';
import { chargedPerCall } from '../model-kinds.ts';
import { option, type Option } from '../option.ts';
import { show, WrongValue } from '../problem.ts';

export interface PriceBounds {
  readonly meter: Meter;
  /** The unit of the price, such as `image`. */
  readonly unit: string;
  /** Bounds in USD. They detect a price in a wrong unit, which would charge a million times too much or too little. */
  readonly least: number;
  readonly most: number;
}

export const PROMPT_PRICE = { meter: 'prompt', unit: '1M prompt tokens', least: 0.001, most: 10_000 } as const;
export const COMPLETION_PRICE = {
  meter: 'completion',
  unit: '1M completion tokens',
  least: 0.001,
  most: 10_000,
} as const;
const CACHE_READ_PRICE = {
  meter: 'input_cache_read',
  unit: '1M prompt tokens read from a cache',
  least: 0.001,
  most: 10_000,
} as const;
const CACHE_WRITE_PRICE = {
  meter: 'input_cache_write',
  unit: '1M prompt tokens written to a cache',
  least: 0.001,
  most: 10_000,
} as const;
const tokens = (meter: Meter, unit: string) =>
  ({ meter, unit: `1M ${unit}`, least: 0.001, most: 10_000 }) as const satisfies PriceBounds;

/** Prices of parts of a model's tokens, and of searches that its provider runs, by their keys. */
export const MODEL_PART_PRICES = {
  input_cache_read: CACHE_READ_PRICE,
  input_cache_write: CACHE_WRITE_PRICE,
  input_cache_write_1h: tokens('input_cache_write_1h', 'prompt tokens written to a cache for an hour'),
  audio: tokens('audio', 'prompt tokens of sound'),
  input_audio_cache: tokens('input_audio_cache', 'prompt tokens of sound read from a cache'),
  internal_reasoning: tokens('internal_reasoning', 'completion tokens of reasoning'),
  audio_output: tokens('audio_output', 'completion tokens of sound'),
  image_output: tokens('image_output', 'completion tokens of pictures'),
  web_search: { meter: 'web_search', unit: 'web search', least: 0.000001, most: 100 },
} as const;
export const INPUT_IMAGE_PRICE = { meter: 'image', unit: 'input image', least: 0.000001, most: 100 } as const;
export const CHARACTER_PRICE = {
  meter: 'character',
  unit: '1M characters that are spoken',
  least: 0.001,
  most: 10_000,
} as const;
export const CALL_PRICE = { meter: 'call', unit: 'call', least: 0.000001, most: 1_000 } as const;
export const MODEL_CALL_PRICE = {
  meter: 'call',
  unit: [...new Set(chargedPerCall((unit) => unit))].join(' or '),
  least: 0.000001,
  most: 100,
} as const;
export const IMAGE_PRICE = { meter: 'image', unit: 'image', least: 0.00001, most: 100 } as const;
export const EDITED_IMAGE_PRICE = { meter: 'input_image', unit: 'input image', least: 0.000001, most: 100 } as const;
export const SECOND_PRICE = { meter: 'second', unit: 'second', least: 0.0001, most: 100 } as const;
export const VIDEO_PRICE = { meter: 'call', unit: 'video', least: 0.0001, most: 1_000 } as const;

/** A required price. Its value is a rate: exact micro-USD for 1M units of its meter. */
export function price(bounds: PriceBounds): Option<MicroUsd> {
  return option({
    takes: takes(bounds),
    meaning: `Price per ${bounds.unit}, as number or text; read exactly.`,
    read: (value) => readPrice(value, bounds),
  });
}

/** An optional price. Its value is null if it is absent. `absent` says in the documentation what is charged then. */
export function optionalPrice(bounds: PriceBounds, absent = 'not charged'): Option<MicroUsd | null> {
  return option<MicroUsd | null>({
    takes: takes(bounds),
    meaning: `Price per ${bounds.unit}, as number or text; read exactly.`,
    optional: { text: absent, fallback: null },
    read: (value) => readPrice(value, bounds),
  });
}

const takes = ({ unit, least, most }: PriceBounds) => `USD per ${unit}, ${decimal(least)} to ${most}, or 0 for free`;
const decimal = (amount: number) => (amount < 1 ? amount.toFixed(6).replace(/0+$/, '') : String(amount));

/** Reads a price as a rate. Throws WrongValue. */
export function readPrice(value: unknown, { meter, unit, least, most }: PriceBounds): MicroUsd {
  const right = `a decimal number of USD per ${unit}, from ${decimal(least)} to ${most}, or 0 for free`;
  const refused = (why: string) => new WrongValue(`is ${show(value)}: it ${why}`, right);
  if (typeof value !== 'number' && typeof value !== 'bigint' && typeof value !== 'string')
    throw new WrongValue(`is ${show(value)}`, right);
  // The double is only for the checks. The price itself is parsed exactly below.
  const near = typeof value === 'string' && value.trim() === '' ? NaN : Number(value);
  if (near < 0) throw refused('is less than 0');
  if (near > most) throw refused(`is more than ${most} USD per ${unit}`);
  if (near > 0 && near < least) {
    const perMillion = Number((near * 1e6).toPrecision(12));
    const perToken = ofMillion(unit) && perMillion >= least && perMillion <= most;
    throw refused(
      perToken
        ? `looks like a price per token: per 1M tokens that is ${perMillion}`
        : `is less than ${decimal(least)} USD per ${unit}`,
    );
  }
  const exact = typeof value === 'bigint' ? String(value) : value;
  try {
    // Parsed here first, because its messages name the value as `it`. The messages of parseRates name the meter, which
    // is not the name of the key.
    parseUsd(exact, 'it');
  } catch (error) {
    if (!(error instanceof MoneyError)) throw error;
    throw new WrongValue(`is ${show(value)}: ${error.message}`, right);
  }
  return parseRates({ [meter]: exact })[meter]!;
}

/** A required price that sets the rate of its meter. */
export const rate = (bounds: PriceBounds) => ({
  ...price(bounds),
  toFields: (value: MicroUsd): RateFields => ({ rates: { [bounds.meter]: value } }),
  toValue: ({ rates: { [bounds.meter]: value = 0n } }: RateFields): MicroUsd => value,
  write: (value: MicroUsd) => formatRate(value, bounds),
});

/** An optional price that sets the rate of its meter. Without a price, the meter has no rate. */
export const optionalRate = (bounds: PriceBounds, absent?: string) => ({
  ...optionalPrice(bounds, absent),
  toFields: (value: MicroUsd | null): RateFields => ({ rates: value === null ? {} : { [bounds.meter]: value } }),
  toValue: ({ rates: { [bounds.meter]: value } }: RateFields): MicroUsd | null => value ?? null,
  write: (value: MicroUsd) => formatRate(value, bounds),
});

const MINUTE = 60n;

/**
 * An optional price for a minute of sound, at the meter of seconds. The rate of a second is rounded down, by less than
 * a millionth of a micro-USD, and the cost of a call is rounded up: so a call of up to four hours costs exactly what
 * its seconds cost at the price of the minute.
 */
export const optionalMinuteRate = () => ({
  ...option<MicroUsd | null>({
    takes: takes(MINUTE_PRICE),
    meaning: 'Price per minute of sound that is transcribed, as number or text; each second costs a sixtieth of it.',
    optional: { text: 'not charged', fallback: null },
    read: (value) => readPrice(value, MINUTE_PRICE) / MINUTE,
  }),
  toFields: (value: MicroUsd | null): RateFields => ({ rates: value === null ? {} : { second: value } }),
  toValue: ({ rates: { second } }: RateFields): MicroUsd | null => second ?? null,
  write: (value: MicroUsd) => formatUsd(perMinute(value)),
});

const MINUTE_PRICE: PriceBounds = { meter: 'second', unit: 'minute', least: 0.000001, most: 1_000 };

interface RateFields {
  readonly rates: Rates;
}

export const formatRate = (value: MicroUsd, { unit }: PriceBounds): string =>
  ofMillion(unit) ? formatUsd(value) : perUnit(value);

/** Whether a price is that of a million units. */
const ofMillion = (unit: string): boolean => unit.startsWith('1M ');

/** An option for the cost of a call. Its value is in micro-USD. */
export function callCost<T extends MicroUsd | null>(
  meaning: string,
  optional: { readonly text: string; readonly fallback: T },
): Option<MicroUsd | T> {
  const read = (value: unknown) => readPrice(value, CALL_PRICE) / MICRO_PER_USD;
  return option<MicroUsd | T>({ takes: 'USD', meaning, optional, read });
}

export const PRICES_BY_USE = {
  'pricing.per_second': optionalRate(SECOND_PRICE),
  'pricing.prompt': optionalRate(PROMPT_PRICE),
  'pricing.completion': optionalRate(COMPLETION_PRICE),
};

/** The prices of tools and agents by use, by the keys of their costs. */
export const COSTS_BY_USE = {
  per_second: SECOND_PRICE,
  prompt: PROMPT_PRICE,
  completion: COMPLETION_PRICE,
};

type PricesByUse = Readonly<Record<keyof typeof PRICES_BY_USE, MicroUsd | null>>;

export const hasPriceByUse = (values: PricesByUse): boolean =>
  (Object.keys(PRICES_BY_USE) as (keyof PricesByUse)[]).some((key) => values[key] !== null);

/**
 * Complains about a price by use without a cap, and about a cap without a price by use. The cap is needed because the
 * use is known only after the call, and an amount must be locked before it.
 */
export function checkCap(
  values: PricesByUse & { readonly 'pricing.per_call_max': MicroUsd | null },
  complain: (key: string, wrong: string, right: string) => void,
): void {
  const cap = values['pricing.per_call_max'];
  const used = (Object.keys(PRICES_BY_USE) as (keyof PricesByUse)[]).some((key) => (values[key] ?? 0n) > 0n);
  if (used && !cap)
    complain(
      'pricing.per_call_max',
      'is missing',
      'a price by use needs per_call_max, the largest cost of one call in USD: it is locked before the use is known',
    );
  if (!used && cap !== null)
    complain(
      'pricing.per_call_max',
      'has no effect without a price by use',
      'leave it out, or give per_second, prompt or completion',
    );
}

const UNITS = 1_000_000n;

/** The rates without the meters that are null, which have no price. */
export function rates(prices: Readonly<Partial<Record<Meter, MicroUsd | null>>>): Rates {
  return Object.fromEntries(Object.entries(prices).filter(([, rate]) => rate !== null));
}

/**
 * Formats a rate of images, seconds or calls as USD for one of them. Nothing is lost, because these prices are whole
 * micro-USD.
 */
export function perUnit(rate: MicroUsd): string {
  return formatUsd(rate / UNITS);
}

export function perUnitByName(prices: Readonly<Record<string, MicroUsd>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(prices).map(([name, rate]) => [name, perUnit(rate)]));
}
