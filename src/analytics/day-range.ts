/** A range of UTC days in days since 1970-01-01. `last` is included. */
export interface DayRange {
  readonly first: number;
  readonly last: number;
}

export const DAY_MS = 86_400_000;

/** Formats a day as `YYYY-MM-DD`. */
export function dateOf(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

/** Every day of a range, in order. */
export const daysOf = ({ first, last }: DayRange): readonly number[] =>
  Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);
