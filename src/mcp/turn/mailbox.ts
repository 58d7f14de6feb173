/** Nothing came in the time that a taker had. */
export const LATE = Symbol('late');

/** Hands items of several sources to one taker, one by one, in the order in which they came. */
export interface Mailbox<T> {
  /** Resolves when the item was taken, so that a source can wait. Never rejects. */
  put(item: T): Promise<void>;
  /** Puts an item of so many characters where the bounds leave room for it, else drops it. */
  offer(item: T, chars: number): void;
  /**
   * The next item; null after the last one, LATE when none came within `waitMs`. Rejects with the reason of `fail`,
   * after all that came before it.
   */
  take(waitMs?: number): Promise<T | null | typeof LATE>;
  readonly length: number;
  /** Nothing more comes. */
  end(): void;
  /** Nothing more comes, and something is wrong. */
  fail(reason: Error): void;
}

/** Bounds of what is offered: items that wait, and characters of those that were offered. */
interface MailboxBounds {
  readonly itemsMax: number;
  readonly charsMax: number;
}

export function createMailbox<T>({ itemsMax, charsMax }: MailboxBounds = UNBOUNDED): Mailbox<T> {
  const waiting: { readonly item: T; readonly taken: () => void }[] = [];
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
    else waiting.push({ item, taken: resolve });
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
        // After a process stood still, its timers come first: what came meanwhile is read before the time is over.
        const timer = waitMs === undefined ? undefined : setTimeout(() => setImmediate(resolve), waitMs);
        await promise;
        clearTimeout(timer);
        wake = null;
      }
      const first = waiting.shift();
      if (first) {
        first.taken();
        return first.item;
      }
      if (!over) return LATE;
      if (over.reason) throw over.reason;
      return null;
    },
    get length() {
      return waiting.length;
    },
    end: () => close(null),
    fail: (reason) => close(reason),
  };
}

const UNBOUNDED: MailboxBounds = { itemsMax: Infinity, charsMax: Infinity };
