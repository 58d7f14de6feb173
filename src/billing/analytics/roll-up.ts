import { setTimeout as pause, setImmediate as nextTurn } from 'node:timers/promises';
import {
  createDueWorker,
  DatabaseError,
  loadStatements,
  rowsParam,
  type Statement,
  type Database,
  type Step,
  type Query,
  type RunProgram,
} from '#store';
import { resolvedInGroups, type JournalPlace } from '#billing/resolved';
import { COUNT_KNOWN_ACCOUNTS } from './known-accounts.ts';
import type { ReadPart, RequestedPart, SumsContext } from './roll-up-program.ts';
import { type Cursors, findCursors, findState, forgetSums, type RollUpState } from './roll-up-state.ts';
import { firstHour, type SumRow, type Sums, SumsOfCalls } from './sums.ts';
import { type OfferCost, readCall, toCostFinder } from './call-facts.ts';

interface RollUpOptions {
  readonly database: Database;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Milliseconds between two turns. null: only `run` starts a turn. */
  readonly everyMs: number | null;
  /** Called once when turns begin to fail. */
  readonly onError: (error: unknown) => void;
  /** The last group of the journal that this process knows of. null: unknown, so the journal is read. */
  readonly end?: () => number | null;
  /** The offers whose cost for the operator is known. Calls get their cost when they are added up. Default none. */
  readonly costs?: () => readonly OfferCost[];
  /** About the most calls that one transaction adds. */
  readonly callsMax?: number;
}

export interface RollUp {
  /** Increases when this process may have changed the sums. */
  readonly parts: number;
  /** Resolves when the sums have all calls that the journal had at the start. Errors go to `onError`. */
  run(): Promise<void>;
  /**
   * Forgets the sums and starts to compute them from the whole journal. `run` resolves when that is done. Rejects with
   * the database's error.
   */
  rebuild(): Promise<void>;
  close(): Promise<void>;
}

const KNOWN_ACCOUNTS_SQL = loadStatements(import.meta.url, './sql/known-accounts.sql', ['addKnownUsers']);

const ROLL_UP_SQL = loadStatements(import.meta.url, './sql/roll-up.sql', [
  'moveVersion',
  'putCursors',
  'findManyResolved',
  'clearUsageDays',
  'clearTagDays',
  'clearListingDays',
  'clearOfferSums',
  'clearAccountSums',
  'clearTimes',
  'clearMarketDays',
  'clearActiveUsers',
  'clearUserCounts',
  'clearKnownCounts',
  'uncountKnownUsers',
  'addUsageDays',
  'addTagDays',
  'addListingDays',
  'addTimes',
  'addMarketDays',
  'addOfferSums',
  'addAccountSums',
  'addActiveUsers',
  'linkActiveUsers',
  'countActiveUsers',
  'noteCountedUsers',
]);
const CLEAR = [
  ROLL_UP_SQL.clearUsageDays,
  ROLL_UP_SQL.clearTagDays,
  ROLL_UP_SQL.clearListingDays,
  ROLL_UP_SQL.clearOfferSums,
  ROLL_UP_SQL.clearAccountSums,
  ROLL_UP_SQL.clearTimes,
  ROLL_UP_SQL.clearMarketDays,
  ROLL_UP_SQL.clearActiveUsers,
  ROLL_UP_SQL.clearUserCounts,
  ROLL_UP_SQL.clearKnownCounts,
  ROLL_UP_SQL.uncountKnownUsers,
];
const ADD: readonly (readonly [Exclude<keyof Sums, 'asOf'>, Statement])[] = [
  ['usage', ROLL_UP_SQL.addUsageDays],
  ['tags', ROLL_UP_SQL.addTagDays],
  ['listings', ROLL_UP_SQL.addListingDays],
  ['times', ROLL_UP_SQL.addTimes],
  ['market', ROLL_UP_SQL.addMarketDays],
  ['offers', ROLL_UP_SQL.addOfferSums],
  ['accounts', ROLL_UP_SQL.addAccountSums],
  ['activeUsers', ROLL_UP_SQL.addActiveUsers],
  ['activeUsers', ROLL_UP_SQL.linkActiveUsers],
  ['knownUsers', KNOWN_ACCOUNTS_SQL.addKnownUsers],
];

/**
 * Statements that update the counts of users. They run after the rows are added, also for rows that an older gateway
 * added.
 */
const COUNT = [
  { statement: ROLL_UP_SQL.countActiveUsers },
  { statement: ROLL_UP_SQL.noteCountedUsers },
  ...COUNT_KNOWN_ACCOUNTS,
];

const CALLS_MAX = 20_000;
/** After this many groups without a call, the place in the journal is stored although there is nothing to add. */
const GROUPS_MAX = 1_000;
/** While the roll-up catches up, it rests after each part for this many times the duration of the part. */
const REST_TIMES = 2;
/** A turn is skipped if another gateway took one within this fraction of the interval. */
const RECENT = 0.75;

/**
 * Reads the journal after the calls were made and adds them to the tables of sums. The sums and the place in the
 * journal change in one transaction, which also increments a version. So each call is counted once, even if a process
 * is killed or several gateways do this. The transaction of a slower gateway finds another version and is rolled back.
 */
export function createRollUp(options: RollUpOptions): RollUp {
  const { database, now, everyMs, onError, end = () => null, costs = () => [], callsMax = CALLS_MAX } = options;
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
      const isRequested = isAsked;
      const before = rebuilds;
      isAsked = false;
      const ended = end();
      if (ended !== null && ended === seen) return;
      if (!isRequested && database.engine === 'postgres' && (await isRecent())) return;
      for (;;) {
        const begun = performance.now();
        const hasMore = await rollUpPart(database, callsMax, { now, costs });
        parts += 1;
        if (!hasMore || closed.aborted) break;
        if (!isRequested) {
          const restMs = (performance.now() - begun) * REST_TIMES;
          await pause(restMs, undefined, { signal: closed, ref: false }).catch(() => {});
        }
      }
      // If the sums were forgotten in the meantime, the journal must be read again.
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

/** Adds one part of the journal. Resolves with whether the journal has more. */
async function rollUpPart(
  database: Database,
  callsMax: number,
  { now, costs }: { readonly now: () => number; readonly costs: () => readonly OfferCost[] },
): Promise<boolean> {
  const context = { hoursFrom: firstHour(now()), costs: costs() };
  const { state, cursors, part } = await database.snapshot(null, async (query, program) => {
    const places = await findCursors(query);
    const read = await readPart(query, program, { places, most: callsMax, ...context });
    return { state: await findState(query), cursors: places, part: read };
  });
  if (part.calls === 0 && part.groups < GROUPS_MAX && !part.hasMore) return false;
  try {
    await database.batch(stepsOf(state, cursors, part, now()));
  } catch (error) {
    // Another gateway was faster. Go on with the rest.
    if (error instanceof DatabaseError && error.code === 'not_null_violation') return true;
    throw error;
  }
  return part.hasMore;
}

function stepsOf(state: RollUpState, cursors: Cursors, { sums, places }: ReadPart, at: number): readonly Step[] {
  // There are sums but no places, so a rebuild was requested.
  const isAnew = cursors.size === 0 && state.version > 0n;
  const asOf = Math.max(isAnew ? 0 : state.asOf, sums.asOf);
  const placeRows = places.map(({ chain, n, position }): SumRow => [chain, n, position]);
  return [
    { statement: ROLL_UP_SQL.moveVersion, params: [state.version, asOf, at] },
    ...(isAnew ? CLEAR.map((statement) => ({ statement })) : []),
    { statement: ROLL_UP_SQL.putCursors, params: [rowsParam(placeRows)] },
    ...ADD.flatMap(([table, statement]) =>
      sums[table].length === 0 ? [] : [{ statement, params: [rowsParam(sums[table])] }],
    ),
    ...COUNT,
  ];
}

const PROGRAM = new URL('./roll-up-program.ts', import.meta.url).href;
/** Number of calls that are added without a pause on the event loop: about 2 ms. */
const PAGE = 250;

/**
 * Reads the journal from the places of its chains, until about `most` calls are found, and adds these calls up. The
 * embedded database does this in its own thread.
 */
async function readPart(
  query: Query,
  program: RunProgram | null,
  {
    places: from,
    most,
    hoursFrom,
    costs,
  }: SumsContext & { readonly places: ReadonlyMap<string, JournalPlace>; readonly most: number },
): Promise<ReadPart> {
  if (program) {
    const part: RequestedPart & SumsContext = { from: [...from.values()][0] ?? null, most, hoursFrom, costs };
    return (await program(PROGRAM, part)) as ReadPart;
  }
  const { ids, places, groups, hasMore } = await resolvedInGroups(query, from, most);
  const sums = new SumsOfCalls(hoursFrom);
  const costOf = toCostFinder(costs);
  for (let begin = 0; begin < ids.length; begin += PAGE) {
    const page = ids.slice(begin, begin + PAGE).map((id) => [id]);
    for (const row of await query(ROLL_UP_SQL.findManyResolved, [rowsParam(page)])) {
      const call = readCall(row, costOf);
      if (call) sums.add(call);
    }
    // Lets other work of the event loop run in between.
    await nextTurn();
  }
  return { sums: sums.sums(), places, calls: ids.length, groups, hasMore };
}
