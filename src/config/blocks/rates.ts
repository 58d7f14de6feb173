import { formatUsd, type Meter, type MicroUsd, type Rates } from '#billing/amounts';

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

/** Formats named rates of one meter as USD for one unit. */
export function perUnitByName(
  variants: Readonly<Record<string, Rates>>,
  meter: Meter,
): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(variants).map(([name, of]) => [name, perUnit(of[meter] ?? 0n)]));
}

/** Converts named prices of one meter to rates. */
export function ratesByName(prices: Readonly<Record<string, MicroUsd>>, meter: Meter): Readonly<Record<string, Rates>> {
  return Object.fromEntries(Object.entries(prices).map(([name, rate]) => [name, { [meter]: rate }]));
}
