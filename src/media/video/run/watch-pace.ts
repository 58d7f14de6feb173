/** The file came too slowly. */
export class TooSlow extends Error {}

const PACE_MS = 30_000;

/** Measures how fast a file comes. */
export interface Pace {
  /** Aborts with TooSlow. */
  readonly tooSlow: AbortSignal;
  /** The file begins to arrive. Before that, nothing is measured. */
  begin(): void;
  /** The gateway waits for the provider, or does not: the time of its own disk or store does not count. */
  waits(isWaiting: boolean): void;
  arrived(bytes: number): void;
  stop(): void;
}

interface PaceOptions {
  /** In bytes a second; 0 for none. */
  readonly leastPace: number;
  /** The length of a period, in milliseconds. */
  readonly paceMs?: number;
}

/** Measures how fast a file comes, over one period after the other. `course` gets the bytes that have arrived. */
export function watchPace({ leastPace, paceMs = PACE_MS }: PaceOptions, course: { bytes: number }): Pace {
  const aborting = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let [bytes, waitedMs] = [0, 0];
  let since: number | null = null;
  const note = () => {
    const at = performance.now();
    if (since !== null) waitedMs += at - since;
    return at;
  };
  const check = () => {
    const at = note();
    // A period that was spent on the gateway's own disk or store says nothing about the provider.
    if (waitedMs >= paceMs / 2 && bytes < (leastPace * waitedMs) / 1000)
      aborting.abort(new TooSlow(`its file comes more slowly than ${leastPace} bytes a second`));
    [bytes, waitedMs] = [0, 0];
    if (since !== null) since = at;
  };
  return {
    tooSlow: aborting.signal,
    begin() {
      if (leastPace > 0) timer = setInterval(check, paceMs);
    },
    waits(isWaiting) {
      const at = note();
      since = isWaiting ? at : null;
    },
    arrived(more) {
      bytes += more;
      course.bytes += more;
    },
    stop: () => clearInterval(timer),
  };
}
