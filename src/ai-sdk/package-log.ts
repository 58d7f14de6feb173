/** Texts of each kind that are logged at once, and then one in so many milliseconds. */
const TEXTS_MAX = 100;
const TEXT_MS = 60_000;

/** Logs a package over all its processes: it could end for a new budget. */
export interface PackageLog {
  /** The end of its process, or of its start. The pauses between starts bound these texts. */
  own(text: string): void;
  /** A line that the package wrote. It may write one with each call. */
  line(text: string): void;
  /** An address that it did not get. */
  refused(text: string): void;
}

export function createPackageLog(log: (text: string) => void, now = () => performance.now()): PackageLog {
  return { own: log, line: bounded(log, now), refused: bounded(log, now) };
}

/** Passes texts on within the budget, and drops all others. */
function bounded(log: (text: string) => void, now: () => number): (text: string) => void {
  let left = TEXTS_MAX;
  let at = now();
  return (text) => {
    const present = now();
    left = Math.min(TEXTS_MAX, left + (present - at) / TEXT_MS);
    at = present;
    if (left < 1) return;
    left -= 1;
    log(text);
  };
}
