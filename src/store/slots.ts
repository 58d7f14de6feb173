/**
 * Items that come and go with each call, such as those that wait for an answer. Each has a number, which is free again
 * after it. An array, not a Map or a Set: each time one of these grows, its old table stays in the old heap and keeps
 * the calls of that moment alive until the next full collection (decision 91).
 */
export class Slots<T extends object> {
  readonly #items: (T | null)[] = [];
  readonly #free: number[] = [];

  /** Returns the number of the item. */
  add(item: T): number {
    const slot = this.#free.pop() ?? this.#items.length;
    this.#items[slot] = item;
    return slot;
  }

  /** Takes the item with this number out; null without one. */
  take(slot: number): T | null {
    const item = this.#items[slot] ?? null;
    if (item === null) return null;
    this.#items[slot] = null;
    this.#free.push(slot);
    return item;
  }

  /** Takes all items out. */
  takeAll(): readonly T[] {
    return this.#items.flatMap((_item, slot) => this.take(slot) ?? []);
  }
}
