import type { ReactNode } from 'react';

const MICRO = 1_000_000;

/**
 * USD as people read it: cents for what is at least a cent, else as many digits as show three figures of it:
 * `$12.50`, `$0.0042`, `$0`.
 */
export function formatUsd(usd: number): string {
  const size = Math.abs(usd);
  if (size === 0) return '$0';
  if (size >= 1_000_000) return usd.toLocaleString('en-US', { ...USD, notation: 'compact', maximumFractionDigits: 2 });
  const cents = Math.round(size * 100) / 100;
  const digits = size >= 1 || Math.abs(cents - size) < 1e-9 ? 2 : Math.min(12, 2 - Math.floor(Math.log10(size)));
  const text = usd.toLocaleString('en-US', { ...USD, minimumFractionDigits: 2, maximumFractionDigits: digits });
  return text;
}

const USD = { style: 'currency', currency: 'USD' } as const;

/** Micro-USD as people read it. */
export const formatMicroUsd = (micro: number | bigint | string): string => formatUsd(Number(micro) / MICRO);

const CENT = 10_000;

/** The least step, in micro-USD, that `formatUsd` shows of an amount of this size. */
function stepOf(micro: number): number {
  const power = Math.floor(Math.log10(Math.max(1, micro) / MICRO));
  if (power >= 6) return 10 ** (power - (power % 3)) * CENT;
  return power >= 0 ? CENT : 10 ** Math.max(0, power + 4);
}

/**
 * An amount in micro-USD, with the exact one as its title. `signed` shows a plus in front of what came in. `held` is
 * for what somebody has: it is never shown as more than it is.
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
  const step = stepOf(amount);
  const shown = held ? Math.floor(amount / step) * step : amount;
  return (
    <span className="figures whitespace-nowrap" title={`${String(micro)} micro-USD`}>
      {signed && amount > 0 ? '+' : ''}
      {formatMicroUsd(shown)}
    </span>
  );
}
