// Ways to wait: for the next item of several sources, for a signal, or for a time at most.

/** The result of `take` if no item came in time. */
export const LATE = Symbol('late');

/** A queue that hands the items of several sources to one taker, in the order in which they came. */
export interface Mailbox<T> {
  /** Resolves when the item was taken, so that a source can wait. After the end, the item is dropped. Never rejects. */
  put(item: T): Promise<void>;
  /** Adds an item of `chars` characters if the bounds leave room for it; else drops it. */
  offer(item: T, chars: number): void;
  /**
   * Resolves to the next item; to null after the last one; to LATE if no item came within `waitMs`. Rejects with the
   * reason of `fail`, after all earlier items were taken.
   */
  take(waitMs?: number): Promise<T | null | typeof LATE>;
  isEmpty(): boolean;
  end(): void;
  fail(reason: Error): void;
}

/** Bounds for `offer`: the number of items that wait, and the characters of the offered items that wait. */
interface MailboxBounds {
  readonly itemsMax: number;
  readonly charsMax: number;
}

export function createMailbox<T>({ itemsMax, charsMax }: MailboxBounds = UNBOUNDED): Mailbox<T> {
  const waiting: { readonly item: T; readonly onTaken: () => void }[] = [];
  let over: { readonly reason: Error | null } | null = null;
  let wake: (() => void) | null = null;
  let offered = 0;

  const close = (reason: Error | null) => {
    over ??= { reason };
    wake?.();
  };
  const put = (item: T): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (over) resolve();
    else waiting.push({ item, onTaken: resolve });
    wake?.();
    return promise;
  };

  return {
    put,
    offer(item, chars) {
      if (waiting.length >= itemsMax || offered + chars > charsMax) return;
      offered += chars;
      void put(item).then(() => void (offered -= chars));
    },
    async take(waitMs) {
      if (waiting.length === 0 && !over) {
        const { promise, resolve } = Promise.withResolvers<void>();
        wake = resolve;
        // After a pause of the process, timers run before input is read. setImmediate lets input that came in time be
        // read first.
        const timer = waitMs === undefined ? undefined : setTimeout(() => setImmediate(resolve), waitMs);
        await promise;
        clearTimeout(timer);
        wake = null;
      }
      const first = waiting.shift();
      if (first) {
        first.onTaken();
        return first.item;
      }
      if (!over) return LATE;
      if (over.reason) throw over.reason;
      return null;
    },
    isEmpty: () => waiting.length === 0,
    end: () => close(null),
    fail: (reason) => close(reason),
  };
}

const UNBOUNDED: MailboxBounds = { itemsMax: Infinity, charsMax: Infinity };

/** Resolves to the outcome of a promise. Rejects with the reason of `signal` if that aborts first. */
export async function orAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const stop = () => aborted.reject(signal.reason);
  if (signal.aborted) stop();
  else signal.addEventListener('abort', stop, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

export function aborted(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (signal.aborted) resolve();
  else signal.addEventListener('abort', () => resolve(), { once: true });
  return promise;
}

/** Resolves when all promises have resolved, or after `ms`. Rejects if one of them rejects before. */
export async function allWithin(ms: number, promises: readonly Promise<unknown>[]): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, ms);
  try {
    await Promise.race([Promise.all(promises), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
