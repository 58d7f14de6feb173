/**
 * Whether a value has still to be awaited. An `await` of any other value costs a turn of the event loop, so code that
 * every call runs awaits only promises.
 */
export const isPromise = <T>(value: T | Promise<T>): value is Promise<T> => value instanceof Promise;

/**
 * Calls `use` with `value`. A value that is no promise is used at once, because a promise costs turns of the event
 * loop.
 */
export const after = <T, R>(value: T | Promise<T>, use: (value: T) => R | Promise<R>): R | Promise<R> =>
  isPromise(value) ? value.then(use) : use(value);

/** The value that `make` returns or resolves with; what `instead` makes of the error that it throws or rejects with. */
export function orElse<T>(make: () => T | Promise<T>, instead: (error: unknown) => T | Promise<T>): T | Promise<T> {
  try {
    const value = make();
    return isPromise(value) ? value.catch(instead) : value;
  } catch (error) {
    return instead(error);
  }
}

/** The timers of one connection, which are cleared with it. They do not keep the process running. */
export class Timers {
  readonly #stops = new Set<() => void>();

  later(ms: number, run: () => void): NodeJS.Timeout {
    const timer = setTimeout(() => {
      this.#stops.delete(stop);
      run();
    }, ms).unref();
    const stop = () => clearTimeout(timer);
    this.add(stop);
    return timer;
  }

  every(ms: number, run: () => void): NodeJS.Timeout {
    const timer = setInterval(run, ms).unref();
    this.add(() => clearInterval(timer));
    return timer;
  }

  add(stop: () => void): void {
    this.#stops.add(stop);
  }

  clear(): void {
    for (const stop of this.#stops) stop();
    this.#stops.clear();
  }
}

const ignored = () => {};

/**
 * A signal that never aborts, so it drops its listeners. An AbortSignal that lives long must not get a listener from
 * each call: a removed listener still points to the one that was added after it, which keeps all later calls alive
 * until the next full garbage collection (decision 91).
 */
export const NEVER_ABORTED: AbortSignal = Object.assign(new AbortController().signal, {
  addEventListener: ignored,
  removeEventListener: ignored,
});
