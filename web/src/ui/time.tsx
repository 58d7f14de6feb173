import type { ReactNode } from 'react';
import { since } from './since.ts';

const EXACT = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });

/** A time relative to now, or as a date if it is more than a week away. The exact time is its title. */
export function Time({
  at,
  exact = false,
}: {
  /** ISO 8601 text, or epoch milliseconds. */
  readonly at: string | number;
  /** Always shows date and time. */
  readonly exact?: boolean;
}): ReactNode {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return String(at);
  return (
    <time dateTime={date.toISOString()} title={EXACT.format(date)} className="figures">
      {exact ? EXACT.format(date) : since(date)}
    </time>
  );
}

/** Formats milliseconds: `840 ms`, `2.4 s`, `3 min 20 s`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const seconds = Math.round(ms / 1_000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
