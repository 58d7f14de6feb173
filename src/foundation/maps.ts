/*
 * Maps whose entries come and go with calls. A `Map` that grows and shrinks with each call is not for them: V8 links
 * the table of a map to the one that follows it, so once a table is in the old heap, all later tables stay until the
 * next full collection, with every entry that they had, and each scavenge copies them (decision 91).
 */

/** So many entries go before a map itself is replaced, and with it the chain of its tables. */
const RENEWED_AFTER = 64;

/** A map of what is under way now. */
export class TransientMap<K, V> {
  #entries = new Map<K, V>();
  #deleted = 0;

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key);
  }

  has(key: K): boolean {
    return this.#entries.has(key);
  }

  set(key: K, value: V): void {
    this.#entries.set(key, value);
  }

  delete(key: K): boolean {
    if (!this.#entries.delete(key)) return false;
    this.#deleted += 1;
    if (this.#deleted >= RENEWED_AFTER + 4 * this.#entries.size) {
      this.#entries = new Map(this.#entries);
      this.#deleted = 0;
    }
    return true;
  }

  clear(): void {
    this.#entries = new Map();
    this.#deleted = 0;
  }

  keys(): Iterable<K> {
    return this.#entries.keys();
  }

  values(): Iterable<V> {
    return this.#entries.values();
  }

  /** The oldest first. An entry that goes meanwhile may still come. */
  [Symbol.iterator](): Iterator<[K, V]> {
    return this.#entries[Symbol.iterator]();
  }
}

/**
 * A map that keeps recently used entries: between `size` and twice `size` of them. It drops the older half at once, so
 * a look-up needs no bookkeeping.
 */
export class RecentMap<T> {
  readonly #size: number;
  #young = new TransientMap<string, T>();
  #old = new TransientMap<string, T>();

  constructor(size: number) {
    this.#size = size;
  }

  get(key: string): T | undefined {
    const known = this.#young.get(key);
    if (known !== undefined) return known;
    const old = this.#old.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  set(key: string, value: T): void {
    this.#young.set(key, value);
    if (this.#young.size < this.#size) return;
    this.#old = this.#young;
    this.#young = new TransientMap();
  }

  delete(key: string): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }
}

const IDLE_MIN = 256;

/**
 * A map that makes its values on demand, and keeps those that are idle for the next use. When it has many, it drops the
 * idle ones.
 */
export class IdleMap<T> {
  readonly #make: (key: string) => T;
  readonly #isIdle: (value: T) => boolean;
  readonly #entries = new Map<string, T>();
  #max = IDLE_MIN;

  constructor(make: (key: string) => T, isIdle: (value: T) => boolean) {
    this.#make = make;
    this.#isIdle = isIdle;
  }

  get(key: string): T {
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    if (this.#entries.size >= this.#max) {
      for (const [name, value] of this.#entries) if (this.#isIdle(value)) this.#entries.delete(name);
      this.#max = Math.max(IDLE_MIN, 2 * this.#entries.size);
    }
    const created = this.#make(key);
    this.#entries.set(key, created);
    return created;
  }

  values(): Iterable<T> {
    return this.#entries.values();
  }
}

/** Bytes that an entry takes besides its value. */
const ENTRY_BYTES = 1_024;

interface SharedEntry<V> {
  readonly value: V;
  readonly bytes: number;
  readonly owner: OwnerEntries<V>;
}

interface OwnerEntries<V> {
  readonly name: string;
  bytes: number;
  /** The least recently used first. */
  readonly entries: TransientMap<string, SharedEntry<V>>;
}

/**
 * A cache for what others can have made as large and as often as they like. While it has more than `bytesMax` bytes,
 * the owner with the most bytes loses its least recently used entry, so many entries never displace the few of another.
 */
export class SharedCache<V> {
  readonly #bytesMax: number;
  readonly #entries = new TransientMap<string, SharedEntry<V>>();
  /** The least recently used first. */
  readonly #owners = new TransientMap<string, OwnerEntries<V>>();
  #newest: SharedEntry<V> | null = null;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (entry === this.#newest) return entry.value;
    this.#newest = entry;
    this.#owners.delete(entry.owner.name);
    this.#owners.set(entry.owner.name, entry.owner);
    entry.owner.entries.delete(key);
    entry.owner.entries.set(key, entry);
    return entry.value;
  }

  /** `bytes`: the size of the value. */
  set(key: string, value: V, bytes: number, ownerName: string): void {
    this.delete(key);
    const owner = this.#owners.get(ownerName) ?? { name: ownerName, bytes: 0, entries: new TransientMap() };
    this.#owners.delete(ownerName);
    this.#owners.set(ownerName, owner);
    const entry = { value, bytes: bytes + ENTRY_BYTES, owner };
    this.#newest = entry;
    this.#entries.set(key, entry);
    owner.entries.set(key, entry);
    owner.bytes += entry.bytes;
    this.#bytes += entry.bytes;
    while (this.#bytes > this.#bytesMax) {
      let largest: OwnerEntries<V> | null = null;
      for (const one of this.#owners.values()) if (one.bytes > (largest?.bytes ?? 0)) largest = one;
      const [oldest] = largest!.entries.keys();
      this.delete(oldest!);
    }
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    const { owner, bytes } = entry;
    this.#entries.delete(key);
    owner.entries.delete(key);
    owner.bytes -= bytes;
    this.#bytes -= bytes;
    if (owner.entries.size === 0) this.#owners.delete(owner.name);
  }
}
