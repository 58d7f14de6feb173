import { METERS, rateOf, type Meter, type MeterRates } from './meters.ts';
import type { MicroUsd } from './money.ts';
import { ratesAt, type Rates } from './price.ts';

/** A price that grows by more than this factor counts as a jump. */
export const JUMP = 2n;

/** True if the rate of any meter is more than `times` its old rate, for prompts of any length. */
export function ratesAbove(rates: Rates, was: Rates, times: bigint = JUMP): boolean {
  return thresholds(rates, was).some((above) => {
    const [now, before] = [ratesAt(rates, above + 1n), ratesAt(was, above + 1n)];
    return METERS.some((meter) => isAbove(meter, now, before, times));
  });
}

/** A rate that has jumped, for prompts of more than `above` tokens. */
interface Jump {
  readonly meter: Meter;
  readonly above: bigint;
  readonly from: MicroUsd;
  readonly to: MicroUsd;
}

/**
 * The meters whose price has jumped, each in the lowest tier where it has. A meter without a price before and after is
 * left out, because the meter that it follows shows the jump.
 */
export function jumpsBetween(rates: Rates, was: Rates): readonly Jump[] {
  const jumps = new Map<Meter, Jump>();
  for (const above of thresholds(rates, was)) {
    const [now, before] = [ratesAt(rates, above + 1n), ratesAt(was, above + 1n)];
    for (const meter of METERS)
      if (!jumps.has(meter) && (now[meter] ?? before[meter]) !== undefined && isAbove(meter, now, before, JUMP))
        jumps.set(meter, { meter, above, from: rateOf(before, meter), to: rateOf(now, meter) });
  }
  return [...jumps.values()];
}

/** Rates of which each is the lower of both, for prompts of any length. */
export function leastRates(one: Rates, other: Rates): Rates {
  const tiers = thresholds(one, other).map((above) => ({
    above,
    rates: leastOf(ratesAt(one, above + 1n), ratesAt(other, above + 1n)),
  }));
  const [{ rates } = { rates: {} }, ...later] = tiers;
  return later.length === 0 ? rates : { ...rates, tiers: later };
}

const leastOf = (one: MeterRates, other: MeterRates): MeterRates =>
  Object.fromEntries(
    METERS.filter((meter) => one[meter] !== undefined || other[meter] !== undefined).map((meter) => [
      meter,
      min(rateOf(one, meter), rateOf(other, meter)),
    ]),
  );

const min = (one: MicroUsd, other: MicroUsd): MicroUsd => (one < other ? one : other);

/** The thresholds of the tiers of both, rising; 0 is the first. */
function thresholds({ tiers: one = [] }: Rates, { tiers: other = [] }: Rates): readonly bigint[] {
  const all = new Set([0n, ...[...one, ...other].map(({ above }) => above)]);
  return [...all].sort((a, b) => (a < b ? -1 : 1));
}

const isAbove = (meter: Meter, rates: MeterRates, was: MeterRates, times: bigint): boolean =>
  rateOf(rates, meter) > times * rateOf(was, meter);
