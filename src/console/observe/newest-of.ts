/** Most entries that are remembered of one owner. */
const KEPT = 20;
/** Of all owners together. */
const BYTES_MAX = 8 * 1024 * 1024;

/**
 * The newest entries of each owner, in memory. If all of them take too much, the owner whose newest entry is the oldest
 * is forgotten first.
 */
export class NewestOf<T> {
  readonly #entries = new Map<string, readonly T[]>();
  readonly #bytesOf: (entry: T) => number;
  #bytes = 0;

  /** `bytesOf`: about the memory of an entry. */
  constructor(bytesOf: (entry: T) => number) {
    this.#bytesOf = bytesOf;
  }

  /** The newest first. */
  entriesOf(owner: string): readonly T[] {
    return this.#entries.get(owner) ?? [];
  }

  /** Of all owners, one after the other. */
  all(): readonly T[] {
    return [...this.#entries.values()].flat();
  }

  /** Replaces the entries of an owner. The newest first. */
  set(owner: string, entries: readonly T[]): void {
    this.#drop(owner);
    const newest = entries.slice(0, KEPT);
    this.#entries.set(owner, newest);
    for (const entry of newest) this.#bytes += this.#bytesOf(entry);
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= BYTES_MAX) break;
      this.#drop(oldest);
    }
  }

  #drop(owner: string): void {
    for (const entry of this.entriesOf(owner)) this.#bytes -= this.#bytesOf(entry);
    this.#entries.delete(owner);
  }
}
