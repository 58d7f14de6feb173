const WHOLE = new Intl.NumberFormat('en-US');
const SHORT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });

/** `12,345` */
export const formatNumber = (value: number): string => WHOLE.format(value);

/** `12.3K`, for figures whose last digits mean nothing. */
export const formatShort = (value: number): string => (Math.abs(value) < 10_000 ? WHOLE : SHORT).format(value);

/** A share from 0 to 1: `99.9%`. What is not whole is never shown as 100%. */
export function formatShare(share: number): string {
  const percent = share * 100;
  if (percent === 100 || percent === 0) return `${percent}%`;
  return `${Math.min(percent, 99.9).toFixed(1)}%`;
}
