/** Copies one source to many readers. Each reader has its own pace. */
export interface FanOut<Item, End> {
  /**
   * Gives an item of `bytes` bytes to all readers. Resolves when the next item is wanted: as soon as the fastest reader
   * has room.
   */
  push(item: Item, bytes: number): Promise<void>;
  /** Ends the source: no item follows. */
  end(end: End): void;
  /** Fails the source. Each reader throws `error` after it has read the items before. */
  fail(error: unknown): void;
  join(): FanReader<Item, End>;
  readonly readers: number;
  /** At least one item was pushed. */
  readonly begun: boolean;
}

interface FanReader<Item, End> {
  /**
   * The next item, or the end. `behind`: too many bytes waited for this slow reader, so it gets no more. `stopped`:
   * `stop` was called. Throws the error of the source.
   */
  next(): Promise<FanOutStep<Item, End>>;
  /** Stops this reader. A pending `next` resolves. */
  stop(): void;
  /** Keeps the waiting items for which `choose` returns true at their place, and drops the others. */
  keep(choose: (waiting: readonly Item[]) => readonly boolean[]): void;
  leave(): void;
}

type FanOutStep<Item, End> = { readonly item: Item } | { readonly end: End } | 'behind' | 'stopped';

/** When so many bytes wait for the fastest reader too, the source has to wait. */
const ROOM_BYTES = 64 * 1024;
/**
 * How many bytes may wait for a slower reader. Readers share the items, so this bounds the memory of a source, not of a
 * reader.
 */
const BEHIND_BYTES = 1024 * 1024;

export function createFanOut<Item, End>(): FanOut<Item, End> {
  const readers = new Set<Reader<Item, End>>();
  let roomy = Promise.withResolvers<void>();
  let over: Over<End> | null = null;

  const hasRoom = () => {
    for (const { bytes } of readers) if (bytes < ROOM_BYTES) return true;
    return readers.size === 0;
  };
  const wake = () => {
    if (hasRoom()) roomy.resolve();
  };
  const finish = (how: Over<End>) => {
    over ??= how;
    for (const reader of readers) reader.finish(over);
  };

  const fan: FanOut<Item, End> & { readers: number; begun: boolean } = {
    readers: 0,
    begun: false,
    async push(item, bytes) {
      fan.begun = true;
      for (const reader of readers) reader.give(item, bytes);
      if (hasRoom()) return;
      roomy = Promise.withResolvers();
      await roomy.promise;
    },
    end: (end) => finish({ end }),
    fail: (error) => finish({ error }),
    join() {
      const reader = new Reader<Item, End>(wake, (onLeave) => {
        readers.delete(onLeave);
        fan.readers = readers.size;
        wake();
      });
      if (over) reader.finish(over);
      readers.add(reader);
      fan.readers = readers.size;
      wake();
      return reader;
    },
  };
  return fan;
}

type Over<End> = { readonly end: End } | { readonly error: unknown };

class Reader<Item, End> implements FanReader<Item, End> {
  bytes = 0;
  #queue: { readonly item: Item; readonly bytes: number }[] = [];
  #over: Over<End> | null = null;
  #state: 'all' | 'behind' | 'stopped' = 'all';
  #wake: (() => void) | null = null;
  readonly #read: () => void;
  readonly #onLeave: (reader: Reader<Item, End>) => void;

  constructor(read: () => void, onLeave: (reader: Reader<Item, End>) => void) {
    this.#read = read;
    this.#onLeave = onLeave;
  }

  give(item: Item, bytes: number): void {
    if (this.#state !== 'all') return;
    if (this.bytes > BEHIND_BYTES) {
      this.#state = 'behind';
      this.#queue = [];
    } else {
      this.#queue.push({ item, bytes });
      this.bytes += bytes;
    }
    this.#wake?.();
  }

  finish(over: Over<End>): void {
    this.#over = over;
    this.#wake?.();
  }

  stop(): void {
    this.#state = 'stopped';
    this.#queue = [];
    this.#wake?.();
  }

  async next(): Promise<FanOutStep<Item, End>> {
    for (;;) {
      if (this.#state !== 'all') return this.#state;
      const next = this.#queue.shift();
      if (next) {
        this.bytes -= next.bytes;
        this.#read();
        return next;
      }
      if (this.#over && 'error' in this.#over) throw this.#over.error;
      if (this.#over) return this.#over;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  keep(choose: (waiting: readonly Item[]) => readonly boolean[]): void {
    const choice = choose(this.#queue.map(({ item }) => item));
    this.#queue = this.#queue.filter((_one, index) => choice[index]!);
    this.bytes = this.#queue.reduce((sum, { bytes }) => sum + bytes, 0);
    this.#read();
  }

  leave(): void {
    this.#onLeave(this);
  }
}
