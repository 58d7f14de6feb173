/** Counts by name. Names with the count zero are deleted. */
export interface Counter {
  of(key: string): number;
  add(key: string, count: 1 | -1): void;
}

export function createCounter(): Counter {
  const counts = new Map<string, number>();
  return {
    of: (key) => counts.get(key) ?? 0,
    add(key, count) {
      const now = (counts.get(key) ?? 0) + count;
      if (now > 0) counts.set(key, now);
      else counts.delete(key);
    },
  };
}
