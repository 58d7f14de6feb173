import fc from 'fast-check';

/**
 * One of `count` values that `arbitrary` gives. To make an event of a stream takes longer than to read it, so streams
 * are put together of events that are made once.
 */
export function pooled<T>(arbitrary: fc.Arbitrary<T>, count: number): fc.Arbitrary<T> {
  let pool: readonly T[] | null = null;
  return fc.nat({ max: count - 1 }).map((at) => (pool ??= fc.sample(arbitrary, count))[at]!);
}
