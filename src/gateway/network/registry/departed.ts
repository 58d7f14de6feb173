import { loadStatements, type Database, type Row, type Step } from '#store';
import type { GroupWrites } from './group-writes.ts';
import { NAMES_KEPT_MS } from './service-names.ts';

const SQL = loadStatements(import.meta.url, './sql/departed.sql', [
  'listDeparted',
  'findUncalled',
  'deleteDepartedNames',
  'deleteDepartedPins',
  'emptyDeparted',
  'deleteDepartedRegistration',
  'deleteDeparted',
]);

/** Characters of what all departed providers registered. Twenty thousand usual services have about as many. */
const KEPT_MAX = 64 * 1024 * 1024;
/** A provider counts for its texts, its rows, and each pin of a tool. */
const ROWS = 2_048;
const PIN = 400;
/** Its connection may be marked as ended for a moment while its gateway does not answer. */
const AWAY_LEAST_MS = 10 * 60_000;
/** From one look at the database to the next. */
const EVERY_MS = 60_000;
/** Providers of one look at the database: more of them would be too many. And those of one transaction. */
const LIST_MAX = Math.ceil(KEPT_MAX / ROWS) + 1_000;
const GROUP = 20;

interface DepartedProvider {
  readonly provider: string;
  readonly leftAt: number;
  readonly network: string;
  readonly size: number;
  readonly earned: boolean;
}

export interface DepartedOptions {
  readonly database: Pick<Database, 'query'>;
  readonly writes: Pick<GroupWrites, 'submit'>;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly keptMax?: number;
  readonly awayLeastMs?: number;
  readonly everyMs?: number;
}

/**
 * Takes away what providers left behind, because a wallet costs nothing. Several gateways may do it at once. Both
 * reject with the database's error.
 */
export interface Departed {
  /**
   * After 30 days away a provider that was never paid is forgotten, and one that was paid keeps its name and account
   * for the records. All that departed providers keep together is bounded; if it is more, that of the network with the
   * most makes way, of providers that were never paid first. Resolves with the number of providers, at most `batch`.
   */
  sweep(batch: number): Promise<number>;
  /** Forgets a provider that has left, unless it was ever called. */
  forget(provider: string): Promise<void>;
}

export function createDeparted(options: DepartedOptions): Departed {
  const { database, writes, now, keptMax = KEPT_MAX, awayLeastMs = AWAY_LEAST_MS, everyMs = EVERY_MS } = options;
  let restsUntil = -Infinity;
  return {
    async sweep(batch) {
      if (now() < restsUntil) return 0;
      const rows = await database.query(SQL.listDeparted, [now() - awayLeastMs, LIST_MAX]);
      const departed = rows.map(departedOf);
      const isOver = ({ leftAt }: DepartedProvider) => leftAt < now() - NAMES_KEPT_MS;
      const others = departed.filter((one) => !isOver(one));
      const leaving = [...departed.filter(isOver), ...tooMany(others, keptMax)].slice(0, batch);
      for (let at = 0; at < leaving.length; at += GROUP)
        await writes.submit(leaving.slice(at, at + GROUP).flatMap(stepsFor));
      if (leaving.length < batch && rows.length < LIST_MAX) restsUntil = now() + everyMs;
      return leaving.length;
    },
    async forget(provider) {
      const [row] = await database.query(SQL.findUncalled, [provider]);
      if (row) await writes.submit(stepsFor(departedOf(row)));
    },
  };
}

const departedOf = (row: Row): DepartedProvider => ({
  provider: row['provider'] as string,
  leftAt: Number(row['left_at']),
  network: row['network'] as string,
  size: Number(row['bytes']) + ROWS + PIN * Number(row['pins']),
  earned: Boolean(Number(row['earned'])),
});

/**
 * Those that have to go so that the others have at most `keptMax` together, in equal shares of their networks.
 * `departed`: the longest away first.
 */
function tooMany(departed: readonly DepartedProvider[], keptMax: number): readonly DepartedProvider[] {
  const networks = [...Map.groupBy(departed, ({ network }) => network).values()].map((members) => ({
    // The last one is the first to go.
    members: members.toReversed().sort((a, b) => Number(b.earned) - Number(a.earned)),
    sum: members.reduce((sum, { size }) => sum + size, 0),
  }));
  const share = shareOf(
    networks.map(({ sum }) => sum),
    keptMax,
  );
  return networks.flatMap(({ members, sum }) => {
    let rest = sum;
    const first = members.findLastIndex(({ size }) => {
      if (rest <= share) return true;
      rest -= size;
      return false;
    });
    return members.slice(first + 1);
  });
}

/** The most that each may have so that all of these have at most `max` together; Infinity if they have no more. */
function shareOf(sums: readonly number[], max: number): number {
  let rest = max;
  for (const [at, sum] of sums.toSorted((a, b) => a - b).entries()) {
    const share = rest / (sums.length - at);
    if (sum > share) return share;
    rest -= sum;
  }
  return Infinity;
}

function stepsFor({ provider, leftAt, earned }: DepartedProvider): readonly Step[] {
  const params = [provider, leftAt];
  return [
    { statement: SQL.deleteDepartedNames, params },
    { statement: SQL.deleteDepartedPins, params },
    ...(earned
      ? [{ statement: SQL.emptyDeparted, params }]
      : [
          { statement: SQL.deleteDepartedRegistration, params },
          { statement: SQL.deleteDeparted, params },
        ]),
  ];
}
