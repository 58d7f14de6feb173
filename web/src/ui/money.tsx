import type { ReactNode } from 'react';
import { exactMicroUsd } from './exact-usd.ts';
import { formatMicroUsd, MICRO } from './usd.ts';

/** Balances below this many micro-USD are shown exactly, so that they add up with what was spent. */
const EXACT_BELOW = 1_000 * MICRO;
const CENT = 10_000;

/** Formats a balance in micro-USD: exactly, or rounded down to cents if it is large. From a million USD on, compact. */
export function formatHeld(micro: number): string {
  if (micro < EXACT_BELOW) return micro === 0 ? '$0' : exactMicroUsd(micro);
  const power = Math.floor(Math.log10(micro / MICRO));
  const step = power >= 6 ? 10 ** (power - (power % 3)) * CENT : CENT;
  return formatMicroUsd(Math.floor(micro / step) * step);
}

/**
 * An amount in micro-USD, with the exact amount as its title. `signed` shows a plus before a positive amount. `held` is
 * for balances: they are rounded down, never up.
 */
export function Money({
  micro,
  signed = false,
  held = false,
}: {
  readonly micro: number | bigint | string;
  readonly signed?: boolean;
  readonly held?: boolean;
}): ReactNode {
  const amount = Number(micro);
  return (
    <span className="money figures whitespace-nowrap" title={`${String(micro)} micro-USD`}>
      {signed && amount > 0 ? '+' : ''}
      {held ? formatHeld(amount) : formatMicroUsd(amount)}
    </span>
  );
}
