import { grouped } from './number.ts';

/** Micro-USD in a USD. */
export const MICRO = 1_000_000;

/**
 * USD as people read it: cents for what is at least a cent, else as many digits as show three figures of it:
 * `$12.50`, `$0.0042`, `$0`.
 */
export function formatUsd(usd: number): string {
  const size = Math.abs(usd);
  if (size === 0) return '$0';
  if (size >= 1_000_000) return usd.toLocaleString('en-US', COMPACT);
  const cents = Math.round(size * 100) / 100;
  const digits = size >= 1 || Math.abs(cents - size) < 1e-9 ? 2 : Math.min(12, 2 - Math.floor(Math.log10(size)));
  // What lies in the middle of two steps, such as 0.04625, is a little less in binary: it is rounded up all the same.
  const text = (size * (1 + Number.EPSILON)).toFixed(digits);
  return `${usd < 0 ? '-' : ''}$${grouped(text.replace(ZEROS_BELOW_CENTS, '$1'))}`;
}

const COMPACT = { style: 'currency', currency: 'USD', notation: 'compact', maximumFractionDigits: 2 } as const;
const ZEROS_BELOW_CENTS = /(\.\d\d\d*?)0+$/;

/** Micro-USD as people read it. */
export const formatMicroUsd = (micro: number | bigint | string): string => formatUsd(Number(micro) / MICRO);
