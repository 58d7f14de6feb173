import { loadStatements, rowReader, type Value } from '#store';
import { GatewayError } from '#errors';
import {
  type TaskContext,
  contextOf,
  FIND_TASK,
  isStorable,
  keyOf,
  listCalls,
  sees,
  stateOf,
  toTask,
  toTaskRow,
  type TaskRow,
} from './task-rows.ts';
import { limitText, type TaskOwner, type Tasks } from './task.ts';

/** Milliseconds until the first poll of a task, and until the next poll after a change. */
export const FIRST_POLL_MS = 2_000;
/** The most accounts that are remembered as full. */
const FULL_MAX = 10_000;
/** Seconds after which the owner of a full account may try again. */
const FULL_RETRY_S = 60;
/**
 * A lock is first kept for at most this time. If the gateway crashes before it has stored the task, nobody releases the
 * lock, so the consumer's money returns when this time is over.
 */
const FIRST_KEPT_MS = 3_600_000;

const SQL = loadStatements(import.meta.url, './sql/tasks.sql', [
  'putTask',
  'joinTask',
  'addCall',
  'countLiveOfAccount',
  'noteKept',
  'listShortCalls',
]);

export interface TaskStart extends Pick<Tasks, 'admit' | 'begin'> {
  /**
   * Prolongs locks that end before their running tasks, at most `limit`. The watch calls it within a minute after a
   * task began. Resolves with the number of locks.
   */
  keepShort(limit: number): Promise<number>;
}

/** Begins tasks and adds calls to them. `liveMax`: the most running tasks of one party of an account, see limitText. */
export function createTaskStart({ database, ledger, sink, now }: TaskContext, liveMax: number): TaskStart {
  /**
   * Parties that reached the limit with their last task. Only for these does `admit` count tasks before a call.
   */
  const full = new Set<string>();

  /** `not_found` is accepted, because a call that costs nothing has no lock yet. */
  async function keepLock(callId: string, keptUntil: number): Promise<void> {
    const result = await ledger.keep(callId, keptUntil);
    if (result.ok || result.reason === 'not_found') return;
    throw new GatewayError(
      'service_unavailable',
      'The lock of this call expired before the provider began the task: retry',
    );
  }

  /** Prolongs the locks of calls of running tasks. A lock that is resolved stays as it is. */
  async function prolong(calls: readonly ShortCall[]): Promise<void> {
    if (calls.length === 0) return;
    await Promise.all(calls.map(({ callId, keptUntil }) => ledger.keep(callId, keptUntil)));
    await database.batch(
      calls.map(({ callId, keptUntil }) => ({ statement: SQL.noteKept, params: [callId, keptUntil] })),
    );
  }

  /** Prolongs the locks of the task's earlier calls to the task's new end. `callId`: the new call. */
  async function keepOthers(task: TaskRow, callId: string | undefined, keptUntil: number): Promise<void> {
    const short = (await listCalls(database, task)).filter(
      (call) => call.callId !== callId && call.settlement === null && call.keptUntil < task.expiresAt,
    );
    await prolong(short.map((call) => ({ callId: call.callId, keptUntil })));
  }

  return {
    async admit({ account, within }) {
      const party = partyOf({ account, within });
      if (!full.has(party)) return;
      const [row] = await database.query(SQL.countLiveOfAccount, [account, 2 * liveMax, within]);
      if (Number(row!['tasks']) < 2 * liveMax) return void full.delete(party);
      throw new GatewayError(
        'rate_limit_exceeded',
        `${limitText(within, liveMax, 'running tasks')}: cancel one, or wait until one ends`,
        { retryAfterS: FULL_RETRY_S },
      );
    },

    async begin(task, call) {
      if (!isStorable(task.taskId))
        throw new RangeError('The id of a task has 1 to 256 characters, without NUL and lone surrogates');
      const at = now();
      const expiresAt = at + task.ttlMs;
      const keptUntil = expiresAt + slackOf(task.ttlMs);
      const firstKeptUntil = Math.min(keptUntil, at + FIRST_KEPT_MS);
      const nextLookAt = Math.min(at + Math.max(FIRST_POLL_MS, task.pauseMs ?? 0), expiresAt);
      const { account, within, offerId } = task;
      // The lock is kept first, because work without a lock would be free. A lock without work is released with its
      // call, or expires.
      if (call) await keepLock(call.callId, firstKeptUntil);
      const own: Value[] = [...keyOf(task), account, within, offerId];
      const [put, joined, rows, counted] = await database.batch([
        {
          statement: SQL.putTask,
          params: [
            ...own,
            task.provider,
            contextOf(task.contextId),
            stateOf(task.state),
            task.notes,
            at,
            expiresAt,
            nextLookAt,
            FIRST_POLL_MS,
            task.askedAt ?? at,
          ],
        },
        {
          statement: SQL.joinTask,
          params: [...own, call ? 1 : 0, expiresAt, nextLookAt, FIRST_POLL_MS, task.messageBytes ?? 0],
        },
        { statement: FIND_TASK, params: keyOf(task) },
        { statement: SQL.countLiveOfAccount, params: [account, 2 * liveMax, within] },
        ...(call
          ? [
              {
                statement: SQL.addCall,
                params: [...own, call.callId, call.price, at, firstKeptUntil, call.most ?? null],
              },
            ]
          : []),
      ]);
      const row = toTaskRow(rows![0]!);
      const isNew = put!.length > 0;
      if (!isNew && (!sees(row, task) || row.offerId !== offerId)) return 'taken';
      if (joined!.length === 0) return 'over';
      if (isNew && Number(counted![0]!['tasks']) >= 2 * liveMax) {
        if (full.size >= FULL_MAX) full.clear();
        full.add(partyOf(task));
      }
      if (isNew) sink.begun(toTask(row));
      if (!isNew) await keepOthers(row, call?.callId, keptUntil);
      return isNew ? 'begun' : 'known';
    },

    async keepShort(limit) {
      const at = now();
      const rows = await database.query(SQL.listShortCalls, [at - FIRST_KEPT_MS, at + FIRST_KEPT_MS, limit]);
      const short = rows.map(toShortTask);
      await prolong(
        short.map(({ callId, createdAt, expiresAt }) => ({
          callId,
          keptUntil: expiresAt + slackOf(expiresAt - createdAt),
        })),
      );
      return short.length;
    },
  };
}

const partyOf = ({ account, within }: TaskOwner): string => `${account} ${within ?? ''}`;

interface ShortCall {
  readonly callId: string;
  readonly keptUntil: number;
}

const toShortTask = rowReader<{ readonly callId: string; readonly createdAt: number; readonly expiresAt: number }>({
  createdAt: Number,
  expiresAt: Number,
});

/**
 * Locks are kept this much longer than their task, so that not every message of a task must prolong all its locks.
 * Giving up the task resolves them.
 */
const slackOf = (ttlMs: number) => Math.min(Math.floor(ttlMs / 8), 3_600_000);
