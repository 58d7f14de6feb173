import { METERS, type Meter, rateOf, type Rates } from './price.ts';

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
