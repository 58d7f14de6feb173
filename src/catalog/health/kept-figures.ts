import { loadStatements, type Database, type Row } from '#store';

/** The counts of offers that are saved. */
export interface OfferFigures {
  readonly unsaved: UnsavedFigures;
  /** Takes over saved sums. Counts that are not saved yet are added to them. */
  restore(figures: readonly Figure[]): void;
  /** Takes over measurements of an offer from before this process started. Later measurements replace them. */
  recall(offer: string, firstByteMs: readonly number[], tokensPerSecond: number | null): void;
}

const SQL = loadStatements(import.meta.url, '../sql/offer-figures.sql', [
  'addFigure',
  'addOfferDay',
  'changedFigures',
  'deleteOldMinutes',
  'deleteExcessTotals',
]);

const HOUR_MS = 3_600_000;

export interface KeptFiguresOptions {
  readonly database: Pick<Database, 'engine' | 'query' | 'batch'>;
  readonly figures: OfferFigures;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** How often new counts are written, in milliseconds. */
  readonly saveMs?: number;
  /** How often the counts of other gateways are read from PostgreSQL, in milliseconds. */
  readonly lookMs?: number;
  /** Called when the database fails, and called again only if it has worked in between. */
  readonly onError: (error: Error) => void;
}

/** Figures of offers in the database. They survive a restart, and all gateways of the database share them. */
interface KeptFigures {
  /** Deletes at most `batch` rows that are no longer needed. Resolves with their number. */
  sweep(batch: number): Promise<number>;
  /** Writes the counts since the last save. Never rejects. */
  close(): Promise<void>;
}
/** Maximum number of offers in one transaction. So even thousands of offers do not delay the ledger. */
const GROUP_MAX = 50;
/** The totals of about 10,000 offers, as many as the process keeps in memory. */
const TOTALS_MAX = 50_000;
/** How far the clocks of two gateways may differ, including the time of a transaction. */
const SKEW_MS = 120_000;

/**
 * Reads the figures, then writes new counts every `saveMs`, never during a call. Each row is a sum to which every
 * gateway adds. The returned row contains the additions of all. If the database is unavailable, the counts are written
 * later. If the process is killed, the counts of the last `saveMs` are lost. If the answer to a commit is lost, its
 * counts are added twice. That is acceptable because figures are not money. Rejects with the database's error.
 */
export async function openKeptFigures(options: KeptFiguresOptions): Promise<KeptFigures> {
  const { database, figures, now, saveMs = 5_000, lookMs = 30_000, onError } = options;
  let failing = false;
  let lookedAt = -Infinity;

  const save = async (): Promise<void> => {
    const deltas = figures.unsaved.take().sort((a, b) => (a.offer < b.offer ? -1 : 1));
    for (let from = 0; from < deltas.length; from += GROUP_MAX) {
      const group = deltas.slice(from, from + GROUP_MAX);
      const steps = figuresOf(group).map(({ offer, kind, minute, count }) => ({
        statement: SQL.addFigure,
        params: [offer, kind, minute, count, now()],
      }));
      const days = daysOf(group).map(({ offer, day, successes, failures }) => ({
        statement: SQL.addOfferDay,
        params: [offer, day, successes, failures],
      }));
      try {
        figures.restore((await database.batch([...steps, ...days])).flat().map(figureOf));
      } catch (error) {
        figures.unsaved.putBack(deltas.slice(from));
        throw error;
      }
    }
  };

  const look = async (since: number): Promise<void> => {
    const rows = await database.query(SQL.changedFigures, [since, now() - HOUR_MS]);
    figures.restore(rows.map(figureOf));
  };

  const work = async (): Promise<void> => {
    try {
      // Saving comes first, so that the figures that are read afterwards include it.
      await save();
      const at = now();
      if (database.engine === 'postgres' && Math.abs(at - lookedAt) >= lookMs) {
        await look(lookedAt - SKEW_MS);
        lookedAt = at;
      }
      failing = false;
    } catch (error) {
      if (!failing) onError(error instanceof Error ? error : new Error(String(error)));
      failing = true;
    }
  };

  lookedAt = now();
  await look(0);
  let working: Promise<void> | null = null;
  const timer = setInterval(() => {
    working ??= work().finally(() => (working = null));
  }, saveMs);
  timer.unref();

  return {
    async sweep(batch) {
      const minutes = await database.query(SQL.deleteOldMinutes, [now() - HOUR_MS - SKEW_MS, batch]);
      if (minutes.length === batch) return batch;
      const totals = await database.query(SQL.deleteExcessTotals, [batch - minutes.length, TOTALS_MAX]);
      return minutes.length + totals.length;
    },
    async close() {
      clearInterval(timer);
      await working;
      await work();
    },
  };
}

const figureOf = (row: Row): Figure => ({
  offer: row['offer'] as string,
  kind: row['kind'] as string,
  minute: Number(row['minute']),
  count: Number(row['count']),
});

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
interface UnsavedFigures {
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
function figuresOf(deltas: readonly FigureDelta[]): Figure[] {
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
function daysOf(deltas: readonly FigureDelta[]): OfferDay[] {
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
