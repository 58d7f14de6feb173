/** Integer micro-USD: 1 USDC = 1,000,000. Never a float. */
export type MicroUsd = bigint;

export const MICRO_PER_USD = 1_000_000n;

/**
 * The largest amount of one price, lock or transfer: 1 billion USD. It is far below 2^63, so sums never overflow a
 * 64-bit column.
 */
export const MICRO_USD_MAX: MicroUsd = 1_000_000_000n * MICRO_PER_USD;

/** A text or number that cannot be read exactly as money. `message` says what was given and what would be right. */
export class MoneyError extends Error {
  override readonly name = 'MoneyError';
}

const DECIMAL = /^(\d{1,12})(?:\.(\d{1,12}))?$/;

/**
 * Parses a decimal amount of USD (`"0.15"`, `2`, `0.0000005`) exactly to integer units of 10^-`decimals` USD.
 * Numbers are read through their shortest decimal text, so `0.1` is exactly one tenth.
 * Throws MoneyError on negatives, NaN, infinities, exponents beyond the scale and digits below one unit.
 */
function parseDecimal(value: unknown, decimals: number, what: string): bigint {
  let text: string;
  if (typeof value === 'number') {
    if (!Number.isFinite(value) || value < 0)
      throw new MoneyError(`${what} must be a number of USD that is 0 or more, not ${value}`);
    text = plainDecimal(value);
  } else if (typeof value === 'string') text = value.trim();
  else
    throw new MoneyError(
      `${what} must be a decimal number or string of USD, such as 0.15 or "0.15", not ${value === null ? 'null' : typeof value}`,
    );
  const match = DECIMAL.exec(text);
  if (!match && /^\d{13,}(?:\.\d+)?$/.test(text)) throw tooLarge(what, text);
  if (!match)
    throw new MoneyError(
      `${what} must be a plain decimal of USD, such as "0.15", not ${JSON.stringify(text.slice(0, 40))}`,
    );
  const fraction = (match[2] ?? '').replace(/0+$/, '');
  if (fraction.length > decimals)
    throw new MoneyError(
      `${what} ${text} is finer than ${decimals} decimal places, the smallest unit that can be charged`,
    );
  const amount = BigInt(match[1]!) * 10n ** BigInt(decimals) + BigInt(fraction.padEnd(decimals, '0') || '0');
  if (amount > MICRO_USD_MAX) throw tooLarge(what, text);
  return amount;
}

const tooLarge = (what: string, text: string) =>
  new MoneyError(
    `${what} ${text.slice(0, 40)} is larger than ${formatUsd(MICRO_USD_MAX)} USD, the most that an amount can be`,
  );

/** Writes a finite non-negative number without an exponent: 5e-7 becomes "0.0000005". */
function plainDecimal(value: number): string {
  const text = String(value);
  const match = /^(\d+)(?:\.(\d+))?e([+-]\d+)$/.exec(text);
  if (!match) return text;
  const exponent = Number(match[3]);
  if (Math.abs(exponent) > 40) return text;
  const digits = match[1]! + (match[2] ?? '');
  const point = match[1]!.length + exponent;
  if (point <= 0) return `0.${'0'.repeat(-point)}${digits}`;
  if (point >= digits.length) return digits + '0'.repeat(point - digits.length);
  return `${digits.slice(0, point)}.${digits.slice(point)}`;
}

/** USD amount (`"1.5"`, `0.25`) to micro-USD, exactly. Throws MoneyError. */
export function parseUsd(value: unknown, what = 'amount'): MicroUsd {
  return parseDecimal(value, 6, what);
}

/** Micro-USD as a decimal text of USD without trailing zeros: 1000n is "0.001". */
export function formatUsd(amount: MicroUsd): string {
  if (amount === 0n) return '0';
  if (amount < 0n) return `-${formatUsd(-amount)}`;
  const digits = amount.toString().padStart(7, '0');
  const point = digits.length - 6;
  let end = digits.length;
  while (end > point && digits[end - 1] === '0') end--;
  return end === point ? digits.slice(0, point) : `${digits.slice(0, point)}.${digits.slice(point, end)}`;
}

/**
 * Micro-USD as a JSON number of USD, for the wire fields that are numbers. Exact up to 9 billion USD when read back
 * at 6 decimals.
 */
export function toUsdNumber(amount: MicroUsd): number {
  return Number(amount) / 1e6;
}
