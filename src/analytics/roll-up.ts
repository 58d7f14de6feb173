import { setTimeout as pause } from 'node:timers/promises';
import { createDueWorker, DatabaseError, loadStatement, type Database, type Step } from '#store';
import { COUNT_KNOWN_ACCOUNTS } from './known-accounts.ts';
import { readPart } from './read-part.ts';
import type { ReadPart } from './roll-up-program.ts';
import { type Cursors, findCursors, findState, forgetSums, type RollUpState } from './roll-up-state.ts';
import { rowsText } from './rows-text.ts';
import type { SumRow, Sums } from './sums.ts';

interface RollUpOptions {
  readonly database: Database;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Milliseconds between two turns; null: only `run` takes one. */
  readonly everyMs: number | null;
  /** Called once when turns begin to fail. */
  readonly onError: (error: unknown) => void;
  /** The last group of the journal, as far as this process knows it without asking; null: it has to be asked. */
  readonly end?: () => number | null;
  /** Calls that one transaction adds at most, about. */
  readonly callsMax?: number;
}

/** Adds up what the journal tells. */
export interface RollUp {
  /** Grows when this process may have changed the sums. */
  readonly parts: number;
  /** Resolves when the sums have all that the journal had. Errors go to `onError`. */
  run(): Promise<void>;
  /**
   * Lets the sums begin anew, and begins to make them of the whole journal; `run` resolves when that is done. Rejects
   * with the database's error.
   */
  rebuild(): Promise<void>;
  close(): Promise<void>;
}

const load = (name: string) => loadStatement(import.meta.url, `./sql/${name}.sql`);
const MOVE = load('move-version');
const PUT_CURSORS = load('put-cursors');
const CLEAR = [
  ...['usage-days', 'listing-days', 'times', 'market-days', 'active-users', 'user-counts', 'known-counts'].map((name) =>
    load(`clear-${name}`),
  ),
  load('uncount-known-users'),
];
const ADD: readonly (readonly [Exclude<keyof Sums, 'asOf'>, ReturnType<typeof load>])[] = [
  ['usage', load('add-usage-days')],
  ['listings', load('add-listing-days')],
  ['times', load('add-times')],
  ['market', load('add-market-days')],
  ['activeUsers', load('add-active-users')],
  ['activeUsers', load('link-active-users')],
  ['knownUsers', load('add-known-users')],
];

/** After what was added, and for what a gateway of before added. */
const COUNT = [
  ...['count-active-users', 'note-counted-users'].map((name) => ({ statement: load(name) })),
  ...COUNT_KNOWN_ACCOUNTS,
];

const CALLS_MAX = 20_000;
/** Groups without a resolution after which the place in the journal is noted all the same. */
const GROUPS_MAX = 1_000;
/** After a part of a long way, it rests for so many times the time that the part took. */
const REST_TIMES = 2;
/** A turn that another gateway took within this part of the time between turns is not taken again. */
const RECENT = 0.75;

/**
 * Reads the journal behind the calls and adds them to the tables of sums. The sums and the place in the journal change
 * in one transaction, which also moves a version on. So each call is counted once, whatever is killed, and by one of
 * several gateways: the others find the version moved, and their transaction is undone.
 */
export function createRollUp(options: RollUpOptions): RollUp {
  const { database, now, everyMs, onError, end = () => null, callsMax = CALLS_MAX } = options;
  let seen: number | null = null;
  let rebuilds = 0;
  let isAsked = false;
  let parts = 0;
  const isRecent = async () => {
    const { rolledAt } = await findState(database.query);
    return Math.abs(now() - rolledAt) < everyMs! * RECENT;
  };
  const worker = createDueWorker({
    pauseMs: everyMs,
    onError: (error, failures) => {
      if (failures === 1) onError(error);
    },
    async turn({ closed }) {
      const wanted = isAsked;
      const before = rebuilds;
      isAsked = false;
      const ended = end();
      if (ended !== null && ended === seen) return;
      if (!wanted && database.engine === 'postgres' && (await isRecent())) return;
      for (;;) {
        const begun = performance.now();
        const hasMore = await rollUpPart(database, callsMax, now);
        parts += 1;
        if (!hasMore || closed.aborted) break;
        if (!wanted) {
          const restMs = (performance.now() - begun) * REST_TIMES;
          await pause(restMs, undefined, { signal: closed, ref: false }).catch(() => {});
        }
      }
      // What was forgotten meanwhile has to be read.
      seen = before === rebuilds ? ended : null;
    },
  });
  return {
    get parts() {
      return parts;
    },
    run() {
      isAsked = true;
      return worker.run();
    },
    async rebuild() {
      await forgetSums(database);
      rebuilds += 1;
      seen = null;
      isAsked = true;
      worker.wake();
    },
    close: worker.close,
  };
}

/** Adds one part. Resolves with whether the journal has more. */
async function rollUpPart(database: Database, callsMax: number, now: () => number): Promise<boolean> {
  const { state, cursors, part } = await database.snapshot(async (query, program) => {
    const places = await findCursors(query);
    const read = await readPart(query, program, places, callsMax);
    return { state: await findState(query), cursors: places, part: read };
  });
  if (part.calls === 0 && part.groups < GROUPS_MAX && !part.hasMore) return false;
  try {
    await database.batch(stepsOf(state, cursors, part, now()));
  } catch (error) {
    // Another gateway was faster: what it left is read now.
    if (error instanceof DatabaseError && error.code === 'not_null_violation') return true;
    throw error;
  }
  return part.hasMore;
}

function stepsOf(state: RollUpState, cursors: Cursors, { sums, places }: ReadPart, at: number): readonly Step[] {
  // Sums without a place were told to begin anew.
  const isAnew = cursors.size === 0 && state.version > 0n;
  const asOf = Math.max(isAnew ? 0 : state.asOf, sums.asOf);
  const placeRows = places.map(({ chain, n, position }): SumRow => [chain, n, position]);
  return [
    { statement: MOVE, params: [state.version, asOf, at] },
    ...(isAnew ? CLEAR.map((statement) => ({ statement })) : []),
    { statement: PUT_CURSORS, params: [rowsText(placeRows)] },
    ...ADD.flatMap(([table, statement]) =>
      sums[table].length === 0 ? [] : [{ statement, params: [rowsText(sums[table])] }],
    ),
    ...COUNT,
  ];
}
