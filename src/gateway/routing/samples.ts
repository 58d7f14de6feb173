/** The newest measurements of one quantity. */
export interface Samples {
  add(value: number): void;
  /** The value that a share `p` of the samples does not exceed (nearest rank); null before the first sample. */
  percentile(p: number): number | null;
}

/** Keeps the last `size` values. They are sorted when a percentile is requested, not when they arrive. */
export function createSamples(size: number): Samples {
  const ring = new Float64Array(size);
  let count = 0;
  let next = 0;
  let sorted: Float64Array | null = null;

  return {
    add(value) {
      ring[next] = value;
      next = (next + 1) % size;
      if (count < size) count++;
      sorted = null;
    },
    percentile(p) {
      if (count === 0) return null;
      sorted ??= ring.slice(0, count).sort();
      return sorted[Math.max(0, Math.ceil(p * count) - 1)]!;
    },
  };
}
