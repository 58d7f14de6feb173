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

  every(ms: number, run: () => void): void {
    const timer = setInterval(run, ms).unref();
    this.add(() => clearInterval(timer));
  }

  /** Adds a function that `clear` calls. */
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
