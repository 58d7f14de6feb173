import { METERS, type Meter, rateOf, type Rates } from './price.ts';

/** A raise beyond this many times has to be noticed. */
export const JUMP = 2n;

/** Whether a price of `meters` is more than `times` what it was. */
export function ratesAbove(rates: Rates, was: Rates, times: bigint = JUMP): boolean {
  return METERS.some((meter) => isAbove(meter, rates, was, times));
}

/**
 * The meters whose price has jumped. One without a price of its own on either side is told by the one that it follows.
 */
export const jumpedMeters = (rates: Rates, was: Rates): readonly Meter[] =>
  METERS.filter((meter) => (rates[meter] ?? was[meter]) !== undefined && isAbove(meter, rates, was, JUMP));

const isAbove = (meter: Meter, rates: Rates, was: Rates, times: bigint): boolean =>
  rateOf(rates, meter) > times * rateOf(was, meter);
