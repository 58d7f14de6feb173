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

/** A number of tokens as models state it: `32K` is 32,768, `128K` is 128,000. */
export function formatTokens(tokens: number): string {
  const step = tokens % 1_024 === 0 ? 1_024 : 1_000;
  if (tokens >= step * step) return `${+(tokens / (step * step)).toFixed(1)}M`;
  return tokens >= step ? `${+(tokens / step).toFixed(1)}K` : String(tokens);
}

/** A share from 0 to 1: `99.9%`. A share below 1 is never shown as 100%. */
export function formatShare(share: number): string {
  const percent = share * 100;
  if (percent === 100 || percent === 0) return `${percent}%`;
  return `${Math.min(percent, 99.9).toFixed(1)}%`;
}
