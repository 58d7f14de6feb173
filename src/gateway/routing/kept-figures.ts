import { loadStatement, type Database, type Row } from '#store';
import type { OfferFigures } from './offer-figures.ts';
import { daysOf, figuresOf, type Figure } from './unsaved-figures.ts';

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

const ADD = loadStatement(import.meta.url, './sql/add-figure.sql');
const ADD_DAY = loadStatement(import.meta.url, './sql/add-offer-day.sql');
const CHANGED = loadStatement(import.meta.url, './sql/changed-figures.sql');
const DELETE_MINUTES = loadStatement(import.meta.url, './sql/delete-old-minutes.sql');
const DELETE_TOTALS = loadStatement(import.meta.url, './sql/delete-excess-totals.sql');

const HOUR_MS = 3_600_000;
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
        statement: ADD,
        params: [offer, kind, minute, count, now()],
      }));
      const days = daysOf(group).map(({ offer, day, successes, failures }) => ({
        statement: ADD_DAY,
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
    const rows = await database.query(CHANGED, [since, now() - HOUR_MS]);
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
      const minutes = await database.query(DELETE_MINUTES, [now() - HOUR_MS - SKEW_MS, batch]);
      if (minutes.length === batch) return batch;
      const totals = await database.query(DELETE_TOTALS, [batch - minutes.length, TOTALS_MAX]);
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
