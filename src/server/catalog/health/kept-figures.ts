import { loadStatements, type Database, type Row } from '#store';

export interface OfferFigures {
  readonly unsaved: UnsavedFigures;
  /** Takes over saved sums. Counts that are not saved yet are added to them. */
  restore(figures: readonly Figure[]): void;
  /** The same for the sums of prompts by day. */
  restorePrompts(days: readonly PromptDay[]): void;
  /** Takes over measurements of an offer from before this process started. Later measurements replace them. */
  recall(offer: string, firstByteMs: readonly number[], tokensPerSecond: number | null): void;
}

const SQL = loadStatements(import.meta.url, '../sql/offer-figures.sql', [
  'addFigure',
  'addOfferDay',
  'promptsSince',
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
export interface KeptFigures {
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
      const days = daysOf(group).map(({ offer, day, successes, failures, prompt, cached, charged }) => ({
        statement: SQL.addOfferDay,
        params: [offer, day, successes, failures, prompt, cached, Math.round(charged)],
      }));
      try {
        const results = await database.batch([...steps, ...days]);
        figures.restore(results.slice(0, steps.length).flat().map(figureOf));
        figures.restorePrompts(results.slice(steps.length).flat().map(promptDayOf));
      } catch (error) {
        figures.unsaved.putBack(deltas.slice(from));
        throw error;
      }
    }
  };

  const load = async (since: number): Promise<void> => {
    const rows = await database.query(SQL.changedFigures, [since, now() - HOUR_MS]);
    figures.restore(rows.map(figureOf));
    const days = await database.query(SQL.promptsSince, [dayOf(now()) - PROMPT_DAYS + 1]);
    figures.restorePrompts(days.map(promptDayOf));
  };

  const work = async (): Promise<void> => {
    try {
      // Saving comes first, so that the figures that are read afterwards include it.
      await save();
      const at = now();
      if (database.engine === 'postgres' && Math.abs(at - lookedAt) >= lookMs) {
        await load(lookedAt - SKEW_MS);
        lookedAt = at;
      }
      failing = false;
    } catch (error) {
      if (!failing) onError(error instanceof Error ? error : new Error(String(error)));
      failing = true;
    }
  };

  lookedAt = now();
  await load(0);
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

const promptDayOf = (row: Row): PromptDay => ({
  offer: row['offer'] as string,
  day: Number(row['day']),
  prompt: Number(row['prompt']),
  cached: Number(row['cached']),
  charged: Number(row['prompt_charged']),
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

/** Prompt tokens, those of them that a cache had, and what was charged for all of them, in micro-USD. */
export interface PromptSums {
  prompt: number;
  cached: number;
  charged: number;
}

/** The prompts of an offer on a UTC day (days since 1970-01-01). */
interface PromptDay extends Readonly<PromptSums> {
  readonly offer: string;
  readonly day: number;
}

/** The days whose prompts are known: today and yesterday. */
export const PROMPT_DAYS = 2;

interface FigureDelta extends PromptSums {
  readonly offer: string;
  readonly minute: number;
  successes: number;
  failures: number;
  readonly flags: Map<string, number>;
}

interface UnsavedFigures {
  /** The counts of this offer and minute. The caller adds to them. */
  deltaOf(offer: string, minute: number): FigureDelta;
  take(): FigureDelta[];
  /** Puts back counts that were taken and could not be saved. */
  putBack(deltas: readonly FigureDelta[]): void;
  /** All counts as figures, without removing them. */
  figures(): Figure[];
  /** The sums of all counts by offer and day, without removing them. */
  days(): readonly OfferDay[];
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
    deltaOf(offer, minute) {
      const figure = current.get(offer);
      if (figure?.minute === minute) return figure;
      if (figure) earlier.push(figure);
      if (earlier.length + current.size >= DELTAS_MAX && earlier.length > 0) earlier.shift();
      const delta: FigureDelta = {
        offer,
        minute,
        successes: 0,
        failures: 0,
        flags: new Map(),
        prompt: 0,
        cached: 0,
        charged: 0,
      };
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
    days: () => daysOf([...earlier, ...current.values()]),
  };
}

export function addPrompts(sums: PromptSums, more: Readonly<PromptSums>): void {
  sums.prompt += more.prompt;
  sums.cached += more.cached;
  sums.charged += more.charged;
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

/** Attempts at an offer on a UTC day, with the prompts of those that succeeded. */
interface OfferDay extends PromptSums {
  readonly offer: string;
  readonly day: number;
  successes: number;
  failures: number;
}

const DAY_MS = 86_400_000;

export const dayOf = (at: number): number => Math.floor(at / DAY_MS);

/** The attempts of these counts by day, in the same order on every gateway. */
function daysOf(deltas: readonly FigureDelta[]): OfferDay[] {
  const days = new Map<string, OfferDay>();
  for (const delta of deltas) {
    const { offer, minute, successes, failures } = delta;
    if (successes + failures === 0) continue;
    const day = dayOf(minute);
    const key = `${offer}\n${day}`;
    let offerDay = days.get(key);
    if (!offerDay)
      days.set(key, (offerDay = { offer, day, successes: 0, failures: 0, prompt: 0, cached: 0, charged: 0 }));
    offerDay.successes += successes;
    offerDay.failures += failures;
    addPrompts(offerDay, delta);
  }
  return [...days].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each);
}
