/**
 * How often `kind` was counted for an offer: in the minute that began at `minute` (epoch milliseconds), or ever
 * (`minute` 0).
 */
export interface Figure {
  readonly offer: string;
  /** `success` or `failure`. Also `flag` for a minute, and `flag:<name>` for all time. */
  readonly kind: string;
  readonly minute: number;
  readonly count: number;
}

/** The counts of one offer within one minute. */
interface FigureDelta {
  readonly offer: string;
  readonly minute: number;
  successes: number;
  failures: number;
  readonly flags: Map<string, number>;
}

/** Counts that are not in the database yet. */
export interface UnsavedFigures {
  /** The counts of this offer and minute. The caller adds to them. */
  of(offer: string, minute: number): FigureDelta;
  /** Returns all counts and removes them. */
  take(): FigureDelta[];
  /** Puts back counts that were taken and could not be saved. */
  putBack(deltas: readonly FigureDelta[]): void;
  /** All counts as figures, without removing them. */
  figures(): Figure[];
}

export const FLAG_PREFIX = 'flag:';

/**
 * The limit while the database is unavailable. It is more than 10,000 offers produce in a few minutes. The oldest are
 * dropped first.
 */
const DELTAS_MAX = 30_000;

export function createUnsavedFigures(): UnsavedFigures {
  const current = new Map<string, FigureDelta>();
  let earlier: FigureDelta[] = [];
  return {
    of(offer, minute) {
      const found = current.get(offer);
      if (found?.minute === minute) return found;
      if (found) earlier.push(found);
      if (earlier.length + current.size >= DELTAS_MAX && earlier.length > 0) earlier.shift();
      const delta: FigureDelta = { offer, minute, successes: 0, failures: 0, flags: new Map() };
      current.set(offer, delta);
      return delta;
    },
    take() {
      const all = [...earlier, ...current.values()];
      earlier = [];
      current.clear();
      return all;
    },
    putBack(deltas) {
      earlier = [...deltas, ...earlier].slice(-DELTAS_MAX);
    },
    figures: () => figuresOf([...earlier, ...current.values()]),
  };
}

/** The sums of these counts, one for each figure, in the same order on every gateway. */
export function figuresOf(deltas: readonly FigureDelta[]): Figure[] {
  const sums = new Map<string, Figure>();
  const add = (offer: string, kind: string, minute: number, count: number) => {
    if (count === 0) return;
    const key = `${offer}\n${kind}\n${minute}`;
    sums.set(key, { offer, kind, minute, count: count + (sums.get(key)?.count ?? 0) });
  };
  for (const { offer, minute, successes, failures, flags } of deltas) {
    let flagged = 0;
    for (const [flag, count] of flags) {
      add(offer, FLAG_PREFIX + flag, 0, count);
      flagged += count;
    }
    for (const at of [0, minute]) {
      add(offer, 'success', at, successes);
      add(offer, 'failure', at, failures);
    }
    add(offer, 'flag', minute, flagged);
  }
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, figure]) => figure);
}

/** Attempts at an offer on a UTC day (days since 1970-01-01). */
interface OfferDay {
  readonly offer: string;
  readonly day: number;
  successes: number;
  failures: number;
}

const DAY_MS = 86_400_000;

/** The attempts of these counts by day, in the same order on every gateway. */
export function daysOf(deltas: readonly FigureDelta[]): OfferDay[] {
  const days = new Map<string, OfferDay>();
  for (const { offer, minute, successes, failures } of deltas) {
    if (successes + failures === 0) continue;
    const day = Math.floor(minute / DAY_MS);
    const key = `${offer}\n${day}`;
    let found = days.get(key);
    if (!found) days.set(key, (found = { offer, day, successes: 0, failures: 0 }));
    found.successes += successes;
    found.failures += failures;
  }
  return [...days].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each);
}
