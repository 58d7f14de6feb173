/** Timers of one connection, which end with it. None of them keeps the process running. */
export interface Timers {
  later(ms: number, run: () => void): NodeJS.Timeout;
  every(ms: number, run: () => void): void;
  /** Calls `stop` with `clear`. */
  add(stop: () => void): void;
  clear(): void;
}

export function createTimers(): Timers {
  const stops = new Set<() => void>();
  return {
    later(ms, run) {
      const timer = setTimeout(() => {
        stops.delete(stop);
        run();
      }, ms).unref();
      const stop = () => clearTimeout(timer);
      stops.add(stop);
      return timer;
    },
    every(ms, run) {
      const timer = setInterval(run, ms).unref();
      stops.add(() => clearInterval(timer));
    },
    add: (stop) => void stops.add(stop),
    clear() {
      for (const stop of stops) stop();
      stops.clear();
    },
  };
}
