import { formatUsd, type Meter, type MicroUsd, type Rates } from '#billing/amounts';

const UNITS = 1_000_000n;

/** Rates of the meters that have a price. A meter without one is null. */
export function rates(prices: Readonly<Partial<Record<Meter, MicroUsd | null>>>): Rates {
  return Object.fromEntries(Object.entries(prices).filter(([, rate]) => rate !== null));
}

/** A rate of images, seconds or calls as USD for one of them. Prices are whole micro-USD, so nothing is lost. */
export function perUnit(rate: MicroUsd): string {
  return formatUsd(rate / UNITS);
}

/** Rates of one meter by name as USD for one unit. */
export function perUnitByName(
  variants: Readonly<Record<string, Rates>>,
  meter: Meter,
): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(variants).map(([name, of]) => [name, perUnit(of[meter] ?? 0n)]));
}

/** Prices of one meter by name as rates. */
export function ratesByName(prices: Readonly<Record<string, MicroUsd>>, meter: Meter): Readonly<Record<string, Rates>> {
  return Object.fromEntries(Object.entries(prices).map(([name, rate]) => [name, { [meter]: rate }]));
}
