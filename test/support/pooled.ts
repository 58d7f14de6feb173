import fc from 'fast-check';

/**
 * Everyday runs use the same values each time. The deep run uses a random seed and prints it, because fast-check
 * doesn't know these values.
 */
const deep = process.env['TOLLGATE_DEEP'] === '1';

/**
 * Picks one of `count` values that were made once by `arbitrary`. Making an event of a stream takes longer than reading
 * it, so streams consist of prepared events.
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
