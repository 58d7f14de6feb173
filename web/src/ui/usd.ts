import { grouped } from './number.ts';

/** Micro-USD per USD. */
export const MICRO = 1_000_000;

/**
 * Formats USD for people: `$12.50`, `$0.05`, `$0.0042`, `$0`. Amounts of 1 USD or more and whole cents have two
 * decimals. Other amounts are rounded to three significant digits. From a million on, amounts are compact, such as
 * `$1.23M`.
 */
export function formatUsd(usd: number): string {
  const size = Math.abs(usd);
  if (size === 0) return '$0';
  if (size >= 1_000_000) return usd.toLocaleString('en-US', COMPACT);
  const cents = Math.round(size * 100) / 100;
  const digits = size >= 1 || Math.abs(cents - size) < 1e-9 ? 2 : Math.min(12, 2 - Math.floor(Math.log10(size)));
  // A value halfway between two steps, such as 0.04625, is slightly smaller in binary. It must still be rounded up.
  const text = (size * (1 + Number.EPSILON)).toFixed(digits);
  return `${usd < 0 ? '−' : ''}$${grouped(text.replace(ZEROS_BELOW_CENTS, '$1'))}`;
}

const COMPACT = { style: 'currency', currency: 'USD', notation: 'compact', maximumFractionDigits: 2 } as const;
const ZEROS_BELOW_CENTS = /(\.\d\d\d*?)0+$/;

/** Formats micro-USD for people, as USD. */
export const formatMicroUsd = (micro: number | bigint | string): string => formatUsd(Number(micro) / MICRO);
