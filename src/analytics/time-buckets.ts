/** Four buckets per doubling, so a quantile is within 10 % of the measured times. */
const PER_DOUBLING = 4;

/** The bucket of a time in milliseconds. The first bucket also has times below one. */
export const bucketOf = (ms: number): number => Math.max(0, Math.floor(Math.log2(ms) * PER_DOUBLING));

/** The quantile `p` in whole milliseconds. null without a call. `buckets` has the number of calls by bucket. */
export function quantileOf(buckets: ReadonlyMap<number, number>, p: number): number | null {
  let calls = 0;
  for (const count of buckets.values()) calls += count;
  if (calls === 0) return null;
  const rank = Math.max(1, Math.ceil(p * calls));
  let below = 0;
  for (const [bucket, count] of [...buckets].sort(([a], [b]) => a - b)) {
    below += count;
    if (below >= rank) return Math.round(2 ** ((bucket + 0.5) / PER_DOUBLING));
  }
  return null;
}
