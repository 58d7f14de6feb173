import { loadStatement, type Database, type Value } from '#store';
import { GatewayError } from '#wire';
import type { Conclude, Ledger, LockRecord } from '#billing';
import { ONE_CALL, type MeasuredWork, type ReportedUsage } from '#gateway';
import { endingToText, type Ending } from './ending.ts';
import { readPageToken, toPageToken } from './page-token.ts';
import { listCalls, settleCalls } from './settle-calls.ts';
import { FIND_TASK, isStorable, keyOf, toTask, toTaskRow, type TaskRow } from './task-rows.ts';
import { readTaskCost } from './task-cost.ts';
import type { TaskSink } from './task-sink.ts';
import type { Sight, Task, TaskCall, TaskKey, TaskOwner, TaskPage, TaskQuery, Tasks } from './task.ts';

export interface TasksOptions {
  readonly database: Database;
  readonly ledger: Pick<Ledger, 'keep' | 'find'>;
  readonly conclude: Conclude;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Called when a pending call was settled here; see TaskSink. */
  readonly onConcluded: NonNullable<TaskSink['concluded']>;
  /** Most tasks of one account that go on at once; default no bound. */
  readonly liveMax?: number;
  readonly onBegun?: TaskSink['begun'];
  readonly onEnded?: TaskSink['ended'];
  /** The signed receipt of a settled call; default none. */
  readonly receipt?: (record: LockRecord) => string | null;
  /** What the provider of an offer is called; null for an offer that is gone. */
  readonly providerName?: (offerId: string) => string | null;
}

/** Tasks, with what is for whoever looks after them; see createTaskWatch. */
export interface KeptTasks extends Tasks {
  /**
   * Ends a task whose time is over: its messages are charged where it has given output, nothing is charged for it
   * else. null for one that has ended, or has more time by now.
   */
  giveUp(key: TaskKey): Promise<Task | null>;
  /** Settles what of an ended task is not settled, because whoever saw its end broke off. */
  settleRest(key: TaskKey): Promise<void>;
}

/** The pause before the first look at a task, and before the next after it was seen to change. Milliseconds. */
export const FIRST_LOOK_MS = 2_000;
/** After this time somebody else looks whether an end was settled. */
const SETTLE_MS = 15_000;
/** The same where a call was left to its own run: its client may take long to read the end of the reply. */
const OWN_RUN_MS = 120_000;
const PAGE_MAX = 1_000;
const FOUND_MAX = 10;
/** Accounts that are known to be full, at most. */
const FULL_MAX = 10_000;
/** When it is tried again, for one that is. */
const FULL_RETRY_S = 60;
const UNKNOWN_STATE = 'unknown';

const PUT = loadStatement(import.meta.url, './sql/put-task.sql');
const JOIN = loadStatement(import.meta.url, './sql/join-task.sql');
const ADD_CALL = loadStatement(import.meta.url, './sql/add-call.sql');
const FIND_OF_CALL = loadStatement(import.meta.url, './sql/find-task-of-call.sql');
const FIND_ALL = loadStatement(import.meta.url, './sql/find-tasks.sql');
const LAST_IN = loadStatement(import.meta.url, './sql/last-in-context.sql');
const CLAIM_CONTEXT = loadStatement(import.meta.url, './sql/claim-context.sql');
const HAS_CONTEXT = loadStatement(import.meta.url, './sql/has-context.sql');
const LIST = loadStatement(import.meta.url, './sql/list-tasks.sql');
const COUNT = loadStatement(import.meta.url, './sql/count-tasks.sql');
const COUNT_LIVE = loadStatement(import.meta.url, './sql/count-live-tasks.sql');
const COUNT_OF_ACCOUNT = loadStatement(import.meta.url, './sql/count-live-of-account.sql');
const NOTE_SIGHT = loadStatement(import.meta.url, './sql/note-sight.sql');
const END = loadStatement(import.meta.url, './sql/end-task.sql');
const NOTE_KEPT = loadStatement(import.meta.url, './sql/note-kept.sql');

/** Tasks of all gateways on a database that have not ended. */
export async function countLiveTasks(database: Database): Promise<number> {
  const [row] = await database.query(COUNT_LIVE);
  return Number(row!['tasks']);
}

export function createTasks(options: TasksOptions): KeptTasks {
  const { database, ledger, now, liveMax = Number.MAX_SAFE_INTEGER } = options;
  /** Accounts whose last task was the last that they may have, so that no other is counted before its calls. */
  const full = new Set<string>();
  const { onBegun: begun, onEnded: ended, onConcluded: concluded, providerName } = options;
  const sink: TaskSink = { concluded, ...(begun ? { begun } : {}), ...(ended ? { ended } : {}) };
  const nameOf = ({ offerId, provider }: TaskRow) => providerName?.(offerId) ?? provider;
  const settling = { database, conclude: options.conclude, nameOf, sink };

  const read = async (key: TaskKey): Promise<TaskRow | null> => {
    if (!isStorable(key.taskId) || !isStorable(key.service)) return null;
    const [row] = await database.query(FIND_TASK, keyOf(key));
    return row ? toTaskRow(row) : null;
  };

  /**
   * Notes the end for all calls that `task` has; null where it has ended meanwhile, or goes on with another call,
   * or (`over`) longer.
   */
  const end = async (
    task: TaskRow,
    sight: Pick<Sight, 'contextId' | 'snapshot'> & { readonly state: string },
    ending: Ending,
    over: number,
    settleMs: number,
  ) => {
    const at = now();
    const params: Value[] = [
      ...keyOf(task),
      stateOf(sight.state),
      contextOf(sight.contextId),
      sight.snapshot ?? null,
      at,
      endingToText(ending),
      at + settleMs,
      task.calls,
      over,
      task.output ? 1 : 0,
    ];
    const [row] = await database.query(END, params);
    return row ? toTaskRow(row) : null;
  };

  return {
    async admit(account) {
      if (!full.has(account)) return;
      const [row] = await database.query(COUNT_OF_ACCOUNT, [account, liveMax]);
      if (Number(row!['tasks']) < liveMax) return void full.delete(account);
      throw new GatewayError(
        'rate_limit_exceeded',
        `${liveMax} tasks of this account go on, which is as many as it may have: cancel some, or wait for an end`,
        {
          retryAfterS: FULL_RETRY_S,
        },
      );
    },

    async begin(task, call) {
      if (!isStorable(task.taskId))
        throw new RangeError(
          'The id of a task has 1 to 256 characters, none of them NUL or half of a pair: refuse others before',
        );
      const at = now();
      const expiresAt = at + task.ttlMs;
      const keptUntil = expiresAt + slackOf(task.ttlMs);
      const nextLookAt = Math.min(at + Math.max(FIRST_LOOK_MS, task.pauseMs ?? 0), expiresAt);
      const { account, run, offerId } = task;
      const own: Value[] = [...keyOf(task), account, run, offerId];
      const [put, joined, rows, counted] = await database.batch([
        {
          statement: PUT,
          params: [
            ...own,
            task.provider,
            contextOf(task.contextId),
            stateOf(task.state),
            task.notes,
            at,
            expiresAt,
            nextLookAt,
            FIRST_LOOK_MS,
            task.askedAt ?? at,
          ],
        },
        {
          statement: JOIN,
          params: [...own, call ? 1 : 0, expiresAt, nextLookAt, FIRST_LOOK_MS, task.messageBytes ?? 0],
        },
        { statement: FIND_TASK, params: keyOf(task) },
        { statement: COUNT_OF_ACCOUNT, params: [account, liveMax] },
        ...(call
          ? [{ statement: ADD_CALL, params: [...own, call.callId, call.price, at, keptUntil, call.most ?? null] }]
          : []),
      ]);
      const found = toTaskRow(rows![0]!);
      const isNew = put!.length > 0;
      if (!isNew && (!sees(found, task) || found.offerId !== offerId)) return 'taken';
      if (joined!.length === 0) return 'over';
      if (isNew && Number(counted![0]!['tasks']) >= liveMax) {
        if (full.size >= FULL_MAX) full.clear();
        full.add(account);
      }
      if (isNew) sink.begun?.(toTask(found));
      if (call) await ledger.keep(call.callId, keptUntil);
      if (!isNew) await keepOthers(found, keptUntil);
      return isNew ? 'begun' : 'known';
    },

    async find(key, owner) {
      const row = await read(key);
      return row && sees(row, owner) ? toTask(row) : null;
    },

    async ofCall(callId, owner) {
      const [row] = await database.query(FIND_OF_CALL, [callId]);
      const task = row ? toTaskRow(row) : null;
      return task && sees(task, owner) ? toTask(task) : null;
    },

    async findAll(primitive, taskId, { account, run }) {
      if (!isStorable(taskId)) return [];
      return (await database.query(FIND_ALL, [primitive, taskId, account, run, FOUND_MAX])).map(toTaskRow).map(toTask);
    },

    async lastIn({ account, run }, { primitive, service, contextId }) {
      if (!isStorable(contextId) || !isStorable(service)) return null;
      const [row] = await database.query(LAST_IN, [contextId, primitive, service, account, run]);
      if (row) return toTask(toTaskRow(row));
      return (await database.query(HAS_CONTEXT, [contextId, primitive, service])).length > 0 ? 'foreign' : null;
    },

    async claim({ account, run }, { primitive, service, contextId }) {
      if (!isStorable(contextId) || !isStorable(service)) return false;
      return (await database.query(CLAIM_CONTEXT, [primitive, service, contextId, account, run, now()])).length > 0;
    },

    list: (owner, query) => list(database, owner, query),

    async saw(key, sight, except) {
      for (;;) {
        const row = await read(key);
        if (!row) return null;
        if (!row.live)
          return {
            task: toTask(row),
            settled: sight.end === null ? [] : await settleCalls(settling, row, await listCalls(database, row), except),
          };
        const seenState = sight.state === null ? row.state : stateOf(sight.state);
        if (sight.end === null) {
          const [state, contextId, output] = [seenState, contextOf(sight.contextId), sight.output === true];
          if (state === row.state && (contextId === null || contextId === row.contextId) && (!output || row.output))
            return { task: toTask(row), settled: [] };
          const at = now();
          const noted: Value[] = [
            ...keyOf(key),
            state,
            contextId,
            at,
            at + FIRST_LOOK_MS,
            FIRST_LOOK_MS,
            output ? 1 : 0,
          ];
          const [changed] = await database.query(NOTE_SIGHT, noted);
          if (changed) return { task: toTask(toTaskRow(changed)), settled: [] };
          continue;
        }
        const calls = await listCalls(database, row);
        const outcome = sight.end === 'cut' && !row.output && sight.output !== true ? 'free' : sight.end;
        const work = {
          elapsedMs: Math.max(0, now() - row.askedAt),
          bytesIn: row.sentBytes,
          bytesOut: sight.bytes ?? 0,
        };
        const used =
          outcome === 'free'
            ? new Map<string, ReportedUsage>()
            : usageOfCalls(calls, sight, work, outcome === 'complete' ? UNREPORTED : UNTOLD);
        const ending: Ending = { outcome, reason: seenState, used };
        const over = await end(
          row,
          { ...sight, state: seenState },
          ending,
          Number.MAX_SAFE_INTEGER,
          except === undefined ? SETTLE_MS : OWN_RUN_MS,
        );
        if (!over) continue;
        sink.ended?.(toTask(over), false);
        return { task: toTask(over), settled: await settleCalls(settling, over, calls, except) };
      }
    },

    async costOf(key, beganBy) {
      const row = await read(key);
      return (
        row && readTaskCost({ database, ledger, receipt: options.receipt ?? (() => null) }, key, beganBy(toTask(row)))
      );
    },

    async giveUp(key) {
      for (;;) {
        const row = await read(key);
        if (!row?.live || row.expiresAt > now()) return null;
        const calls = await listCalls(database, row);
        const over = await end(row, row, givenUp(row, calls), now(), SETTLE_MS);
        if (!over) continue;
        sink.ended?.(toTask(over), true);
        await settleCalls(settling, over, calls);
        return toTask(over);
      }
    },

    async settleRest(key) {
      const row = await read(key);
      if (row && !row.live) await settleCalls(settling, row, await listCalls(database, row));
    },
  };

  /** What is locked for earlier calls of the task lasts as long as it does. */
  async function keepOthers(task: TaskRow, keptUntil: number): Promise<void> {
    const short = (await listCalls(database, task)).filter(
      (call) => call.settlement === null && call.keptUntil < task.expiresAt,
    );
    if (short.length === 0) return;
    await Promise.all(short.map(({ callId }) => ledger.keep(callId, keptUntil)));
    await database.batch(short.map(({ callId }) => ({ statement: NOTE_KEPT, params: [callId, keptUntil] })));
  }
}

/** What the records of the calls of a task say that nobody saw the end of. */
const GAVE_UP = 'gave_up';

/** What was delivered is paid: each message that the task had. What else it used was never told. */
function givenUp({ output }: TaskRow, calls: readonly TaskCall[]): Ending {
  if (!output) return { outcome: 'free', reason: GAVE_UP, used: new Map() };
  return { outcome: 'cut', reason: GAVE_UP, used: new Map(calls.map(({ callId }) => [callId, ONE_CALL])) };
}

/**
 * Locks are kept for longer than their task by this, so that a task of many messages does not have all its locks
 * prolonged with each. They are given back when the task is given up.
 */
const slackOf = (ttlMs: number) => Math.min(Math.floor(ttlMs / 8), 3_600_000);

/** An account sees all that is its own; a run only what was begun under the same call. */
function sees(task: TaskOwner, { account, run }: TaskOwner): boolean {
  return task.account === account && (run === null || task.run === run);
}

const stateOf = (state: string) => (isStorable(state) ? state : UNKNOWN_STATE);
const contextOf = (contextId: string | null | undefined) => (contextId && isStorable(contextId) ? contextId : null);

function usageOfCalls(
  calls: readonly TaskCall[],
  { usageOf }: Sight,
  work: MeasuredWork,
  otherwise: ReportedUsage,
): Map<string, ReportedUsage> {
  return new Map(
    calls.map(({ callId, price }, index) => [callId, usageOf?.({ callId, price }, index === 0, work) ?? otherwise]),
  );
}

const UNREPORTED: ReportedUsage = { usage: null, flags: ['usage_missing'] };
/** Who was stopped need not have come to a report. */
const UNTOLD: ReportedUsage = { usage: null, flags: [] };

async function list(database: Database, { account, run }: TaskOwner, query: TaskQuery): Promise<TaskPage> {
  const { primitive, service, contextId = null, state = null, since = null, after = null } = query;
  const from = after === null ? { updatedAt: Number.MAX_SAFE_INTEGER, taskId: '', service: '' } : readPageToken(after);
  // A text that no task can have is one that the database may not even take.
  if ([service, contextId, state].some((text) => text !== null && !isStorable(text)))
    return { tasks: [], total: 0, next: null };
  const limit = Math.min(Math.max(Math.trunc(query.limit), 1), PAGE_MAX);
  const sinceMs = Math.ceil(Math.min(Math.max(since ?? 0, 0), Number.MAX_SAFE_INTEGER));
  const filter: Value[] = [account, primitive, run, service, contextId, state, sinceMs];
  const [rows, [count]] = await Promise.all([
    database.query(LIST, [...filter, from.updatedAt, from.taskId, from.service, limit + 1]),
    database.query(COUNT, filter),
  ]);
  const tasks = rows.slice(0, limit).map(toTaskRow).map(toTask);
  return { tasks, total: Number(count!['tasks']), next: rows.length > limit ? toPageToken(tasks.at(-1)!) : null };
}
