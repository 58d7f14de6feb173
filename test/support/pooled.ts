import fc from 'fast-check';

/** The same values every day; the deep run looks further, and tells where, as fast-check does not know of these. */
const deep = process.env['TOLLGATE_DEEP'] === '1';

/**
 * One of `count` values that `arbitrary` gives. To make an event of a stream takes longer than to read it, so streams
 * are put together of events that are made once.
 */
export function pooled<T>(arbitrary: fc.Arbitrary<T>, count: number): fc.Arbitrary<T> {
  let pool: readonly T[] | null = null;
  const make = () => {
    const given = process.env['FC_SEED'];
    const seed = given ? Number(given) : deep ? Math.floor(Math.random() * 2 ** 31) : 1;
    if (deep) process.stdout.write(`a pool of ${count} values: FC_SEED=${seed}\n`);
    return fc.sample(arbitrary, { numRuns: count, seed });
  };
  return fc.nat({ max: count - 1 }).map((at) => (pool ??= make())[at]!);
}
