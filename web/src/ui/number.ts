// The first paint of a page waits for this file. Formatters of `Intl` take long to create on a phone, so plain numbers
// don't use them, and other formatters are created when they are first used.

/** Groups the digits before the point: `12,345.6`. */
export const grouped = (digits: string): string => digits.replace(/^-?\d+/, (whole) => whole.replace(THREES, ','));
const THREES = /\B(?=(?:\d{3})+$)/g;

/** `12,345` */
export const formatNumber = (value: number): string => grouped(String(+value.toFixed(3)));

let compact: Intl.NumberFormat | undefined;

/** `12.3K`, for figures whose last digits don't matter. */
export const formatShort = (value: number): string =>
  Math.abs(value) < 10_000
    ? formatNumber(value)
    : (compact ??= new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 })).format(value);

/** `1 call`, `12.3K calls` */
export const formatCalls = (calls: number): string => `${formatShort(calls)} ${calls === 1 ? 'call' : 'calls'}`;

/** A number of tokens in thousands: `128K` is 128,000, `131K` is 131,072, `1M` is 1,048,576. */
export function formatTokens(tokens: number): string {
  if (tokens >= 999_500) return `${+(tokens / 1_000_000).toFixed(1)}M`;
  if (tokens >= 10_000) return `${Math.round(tokens / 1_000)}K`;
  return tokens >= 1_000 ? `${+(tokens / 1_000).toFixed(1)}K` : String(tokens);
}

/** A share from 0 to 1: `99.9%`. A share below 1 is never shown as 100%. */
export function formatShare(share: number): string {
  const percent = share * 100;
  if (percent === 100 || percent === 0) return `${percent}%`;
  return `${Math.min(percent, 99.9).toFixed(1)}%`;
}
