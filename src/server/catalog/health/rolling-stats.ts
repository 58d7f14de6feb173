export interface SlidingCount {
  add(kind: number, now: number): void;
  /** Sets the count of the slot of `at`. Does nothing for a slot that has left the window. */
  set(kind: number, at: number, count: number, now: number): void;
  total(kind: number, now: number): number;
}

/**
 * Counts events of `kinds` kinds over the last `slots` × `slotMs` milliseconds, with fixed memory and constant work per
 * event. If the clock steps back, events count in the newest slot.
 */
export function createSlidingCount({
  slots,
  slotMs,
  kinds,
}: {
  readonly slots: number;
  readonly slotMs: number;
  readonly kinds: number;
}): SlidingCount {
  const counts = new Uint32Array(slots * kinds);
  const totals = new Float64Array(kinds);
  let head = 0;

  const advance = (now: number) => {
    const slot = Math.floor(now / slotMs);
    if (slot <= head) return;
    for (let passed = Math.min(slot - head, slots), next = slot; passed > 0; passed--, next--) {
      const start = (next % slots) * kinds;
      for (let kind = 0; kind < kinds; kind++) {
        totals[kind]! -= counts[start + kind]!;
        counts[start + kind] = 0;
      }
    }
    head = slot;
  };

  return {
    add(kind, now) {
      advance(now);
      counts[(head % slots) * kinds + kind]!++;
      totals[kind]!++;
    },
    set(kind, at, count, now) {
      advance(now);
      const slot = Math.min(head, Math.floor(at / slotMs));
      if (slot <= head - slots) return;
      const index = (slot % slots) * kinds + kind;
      totals[kind]! += count - counts[index]!;
      counts[index] = count;
    },
    total(kind, now) {
      advance(now);
      return totals[kind]!;
    },
  };
}

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
