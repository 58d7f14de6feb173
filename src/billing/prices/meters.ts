import type { MicroUsd } from './money.ts';

/**
 * The meters that a provider can charge for. A protocol maps its units to these meters, so billing does not know the
 * protocol. New meters are added at the end, because ids of prices are digests that depend on this order.
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
  'input_cache_write_1h',
  'audio',
  'input_audio_cache',
  'internal_reasoning',
  'audio_output',
  'image_output',
  'web_search',
  'character',
] as const;
export type Meter = (typeof METERS)[number];

/**
 * Micro-USD per 1,000,000 units of each meter. All meters have the same scale, so a cost is one sum and one division.
 */
export type MeterRates = Readonly<Partial<Record<Meter, MicroUsd>>>;

/** All tokens that a model reads, or all that it writes. */
type Whole = 'prompt' | 'completion';

/** Tokens that may have their own price. Without one, a token costs what a token of `else` does. */
interface Part {
  readonly whole: Whole;
  readonly else: Meter;
}

const PARTS: Readonly<Partial<Record<Meter, Part>>> = {
  input_cache_read: { whole: 'prompt', else: 'prompt' },
  input_cache_write: { whole: 'prompt', else: 'prompt' },
  input_cache_write_1h: { whole: 'prompt', else: 'input_cache_write' },
  audio: { whole: 'prompt', else: 'prompt' },
  input_audio_cache: { whole: 'prompt', else: 'audio' },
  internal_reasoning: { whole: 'completion', else: 'completion' },
  audio_output: { whole: 'completion', else: 'completion' },
  image_output: { whole: 'completion', else: 'completion' },
};

const partsOf = (whole: Whole): readonly Meter[] => METERS.filter((meter) => PARTS[meter]?.whole === whole);

/** The meters of tokens that may have a price other than that of the prompt, or of the completion. */
export const TOKEN_PARTS: Readonly<Record<Whole, readonly Meter[]>> = {
  prompt: partsOf('prompt'),
  completion: partsOf('completion'),
};

export const isPart = (meter: Meter): boolean => PARTS[meter] !== undefined;

/** The rate of a meter; 0 if it has no price. */
export function rateOf(rates: MeterRates, meter: Meter): MicroUsd {
  const rate = rates[meter];
  if (rate !== undefined) return rate;
  const instead = PARTS[meter]?.else;
  return instead === undefined ? 0n : rateOf(rates, instead);
}

/** Meters whose price is written per 1M units; the others are written per single unit. */
export const isPerMillion = (meter: Meter): boolean =>
  meter === 'prompt' || meter === 'completion' || meter === 'character' || isPart(meter);
