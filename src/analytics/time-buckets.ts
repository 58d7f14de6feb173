/** Four buckets for each doubling: a quantile is within 10 % of the measured times. */
const PER_DOUBLING = 4;

/** The bucket of a time in milliseconds; times below one are in the first. */
export const bucketOf = (ms: number): number => Math.max(0, Math.floor(Math.log2(ms) * PER_DOUBLING));

/**
 * The time that a share `p` of the calls did not exceed, in whole milliseconds; null without a call. `buckets`: calls
 * by the bucket of their time.
 */
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
