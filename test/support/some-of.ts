/**
 * By day one in `n` of the items, and all in the deep run. `first` differs between the rows that have the same items,
 * so that each item is in some row. Of fewer items than `n` it is one.
 */
export function someOf<T>(items: readonly T[], n: number, first = 0): readonly T[] {
  const step = process.env['TOLLGATE_DEEP'] === '1' ? 1 : Math.min(n, items.length);
  return items.filter((_, at) => (at + first) % step === 0);
}
