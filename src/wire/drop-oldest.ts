/** Drops the oldest entry of a map or set that has more than `max` entries. */
export function dropOldest<K>(kept: Map<K, unknown> | Set<K>, max: number): void {
  if (kept.size > max) kept.delete(kept.keys().next().value!);
}
