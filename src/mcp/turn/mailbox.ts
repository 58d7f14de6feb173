/** Nothing came in the time that a taker had. */
export const LATE = Symbol('late');

/** Hands over what comes from several sources, one by one in the order in which it came, to one taker. */
export interface Mailbox<T> {
  /** Resolves when it was taken, so that a source can wait; rejects never. */
  put(item: T): Promise<void>;
  /**
   * The next one; null when there will be none, LATE when none came within `waitMs`. Rejects with the reason of
   * `fail`, after all that came before it.
   */
  take(waitMs?: number): Promise<T | null | typeof LATE>;
  readonly length: number;
  /** Nothing more comes. */
  end(): void;
  /** Nothing more comes, and something is wrong. */
  fail(reason: Error): void;
}

export function createMailbox<T>(): Mailbox<T> {
  const waiting: { readonly item: T; readonly taken: () => void }[] = [];
  let over: { readonly reason: Error | null } | null = null;
  let wake: (() => void) | null = null;

  const close = (reason: Error | null) => {
    over ??= { reason };
    wake?.();
  };

  return {
    put(item) {
      const { promise, resolve } = Promise.withResolvers<void>();
      if (over) resolve();
      else waiting.push({ item, taken: resolve });
      wake?.();
      return promise;
    },
    async take(waitMs) {
      if (waiting.length === 0 && !over) {
        const { promise, resolve } = Promise.withResolvers<void>();
        wake = resolve;
        const timer = waitMs === undefined ? undefined : setTimeout(resolve, waitMs);
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
