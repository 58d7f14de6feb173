/**
 * Returns the value of a key. If the map has none, `make` makes it, and the map keeps it. The method of the same name
 * that Node 26 has is missing in Node 24.
 */
export function getOrInsert<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const value = make();
  map.set(key, value);
  return value;
}

/** Drops the oldest entry of a map or set that has more than `max` entries. */
export function dropOldest<K>(entries: Map<K, unknown> | Set<K>, max: number): void {
  if (entries.size > max) entries.delete(entries.keys().next().value!);
}

export interface Placed {
  /** For the list only: the index of the item, -1 if it is not in the list. */
  place: number;
}

/**
 * The items of calls in flight, which come and go with each call. An array, not a Set. Each time a Set grows, it leaves
 * its old table in the old heap. That table keeps all items of that moment alive, with their calls, until the next full
 * garbage collection. Measured with one item per reply: 16 KB to copy for every call.
 */
export class PlacedList<T extends Placed> {
  readonly #items: T[] = [];

  /** In any order. */
  get items(): readonly T[] {
    return this.#items;
  }

  add(item: T): void {
    if (item.place === -1) item.place = this.#items.push(item) - 1;
  }

  /** Takes an item out, if it is in the list. The last item takes its place. */
  remove(item: T): void {
    const { place } = item;
    if (place === -1) return;
    item.place = -1;
    const last = this.#items.pop()!;
    if (last === item) return;
    this.#items[place] = last;
    last.place = place;
  }
}
