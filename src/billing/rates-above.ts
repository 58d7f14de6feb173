import { METERS, type Rates } from './price.ts';

/** A raise beyond this many times has to be noticed. */
export const JUMP = 2n;

/** Whether a price of `meters` is more than `times` what it was. */
export function ratesAbove(rates: Rates, was: Rates, times: bigint = JUMP): boolean {
  return METERS.some((meter) => (rates[meter] ?? 0n) > times * (was[meter] ?? 0n));
}
