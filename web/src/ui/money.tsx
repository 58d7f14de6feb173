import type { ReactNode } from 'react';
import { formatMicroUsd, MICRO } from './usd.ts';

const CENT = 10_000;

/** The smallest step, in micro-USD, that `formatUsd` shows for an amount of this size. */
function stepOf(micro: number): number {
  const power = Math.floor(Math.log10(Math.max(1, micro) / MICRO));
  if (power >= 6) return 10 ** (power - (power % 3)) * CENT;
  return power >= 0 ? CENT : 10 ** Math.max(0, power + 4);
}

/** Formats a balance in micro-USD, rounded down. */
export function formatHeld(micro: number): string {
  const step = stepOf(micro);
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
    <span className="figures whitespace-nowrap" title={`${String(micro)} micro-USD`}>
      {signed && amount > 0 ? '+' : ''}
      {held ? formatHeld(amount) : formatMicroUsd(amount)}
    </span>
  );
}
