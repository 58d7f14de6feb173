import { CliError } from '../terminal.ts';

/** One row of a vendor's export. null: the export does not have the figure. */
export interface VendorRow {
  /** UTC day, `YYYY-MM-DD`. */
  readonly day: string;
  /** As the vendor names it. null: the figures are of all models. */
  readonly model: string | null;
  readonly requests: number | null;
  /** All tokens of the prompt, those of a cache included. */
  readonly prompt: number | null;
  /** All tokens of the completion, reasoning included. */
  readonly completion: number | null;
  /** Part of the prompt that was read from a cache. */
  readonly cached: number | null;
  /** Part of the completion. */
  readonly reasoning: number | null;
  /** 10^-12 USD, because a row of an export may cost less than a micro-USD. */
  readonly cost: bigint | null;
}

const PICO_PER_MICRO = 1_000_000n;

export const NOTHING_TOLD = {
  requests: null,
  prompt: null,
  completion: null,
  cached: null,
  reasoning: null,
  cost: null,
} as const;

/** Place of a value in a file, for errors: `costs.csv, line 3`. */
export type Place = string;

const DECIMAL = /^([+-]?)(\d{1,15})(?:\.(\d{1,40}))?(?:[eE]([+-]?\d{1,2}))?$/;

/** Reads a decimal amount exactly, as 10^-`digits` of its unit. What is smaller is rounded half away from zero. */
export function decimal(text: string, digits: number, name: string, place: Place): bigint {
  const [, sign, whole = '', part = '', exponent = '0'] = DECIMAL.exec(text.trim()) ?? [];
  if (sign === undefined) throw new CliError(`${place}: ${name} is ${JSON.stringify(text)}, not a decimal number`);
  const shift = digits - part.length + Number(exponent);
  const value = BigInt(whole + part);
  const scaled = shift >= 0 ? value * 10n ** BigInt(shift) : halfUp(value, 10n ** BigInt(-shift));
  return sign === '-' ? -scaled : scaled;
}

const halfUp = (value: bigint, divisor: bigint): bigint => (value + divisor / 2n) / divisor;

/** Rounds half away from zero, from 10^-12 USD. */
export const toMicro = (pico: bigint): bigint =>
  pico < 0n ? -halfUp(-pico, PICO_PER_MICRO) : halfUp(pico, PICO_PER_MICRO);

/** Reads a count, which some exports write as `59200.0`. */
export function count(value: unknown, name: string, place: Place): number {
  const number = typeof value === 'string' ? (/^\d+(?:\.0+)?$/.test(value.trim()) ? Number(value) : NaN) : value;
  if (typeof number === 'number' && Number.isSafeInteger(number) && number >= 0) return number;
  throw new CliError(`${place}: ${name} is ${JSON.stringify(value)}, not a whole number`);
}

/** The UTC day at the beginning of an ISO time, or of Unix seconds. */
export function dayOf(value: unknown, name: string, place: Place): string {
  const text = typeof value === 'number' ? isoOf(value * 1000) : typeof value === 'string' ? value.trim() : '';
  const [, date = '', zone = ''] =
    /^(\d{4}-\d\d-\d\d)(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$/.exec(text) ?? [];
  const time = Date.parse(/^[+-]/.test(zone) ? text : date);
  if (date === '' || Number.isNaN(time) || isoOf(Date.parse(date)).slice(0, 10) !== date)
    throw new CliError(`${place}: ${name} is ${JSON.stringify(value)}, not a day or a time in UTC`);
  return isoOf(time).slice(0, 10);
}

const isoOf = (time: number): string => (Math.abs(time) <= 8.64e15 ? new Date(time).toISOString() : '');

/**
 * The name by which models of both sides are compared: without the date of a version, because `gpt-4o` is billed as
 * `gpt-4o-2024-08-06`, and in the form of the API where an export has names for people ("Claude Haiku 4.5").
 */
export function modelKey(name: string): string {
  const lower = name.trim().toLowerCase();
  const slug = /^claude .*\d/.test(lower) ? lower.replace(/[ .]+/g, '-') : lower;
  // Variants of OpenRouter, such as `:free`. Its names have a slash, those of fine-tuned models do not.
  const plain = slug.includes('/') ? slug.replace(/:[a-z]+$/, '') : slug;
  return plain.replace(/-(?:\d{4}-\d\d-\d\d|20\d{6})$/, '');
}
