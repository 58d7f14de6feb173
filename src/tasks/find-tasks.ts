import { loadStatement, type Value } from '#store';
import { readPageToken, toPageToken } from './page-token.ts';
import type { TaskContext } from './task-context.ts';
import { isStorable, sees, toTask, toTaskRow } from './task-rows.ts';
import type { TaskPage, Tasks } from './task.ts';

const PAGE_MAX = 1_000;
const FOUND_MAX = 10;

const FIND_OF_CALL = loadStatement(import.meta.url, './sql/find-task-of-call.sql');
const LIVE_STATES = loadStatement(import.meta.url, './sql/live-states-of-calls.sql');
const FIND_ALL = loadStatement(import.meta.url, './sql/find-tasks.sql');
const LAST_IN = loadStatement(import.meta.url, './sql/last-in-context.sql');
const CLAIM_CONTEXT = loadStatement(import.meta.url, './sql/claim-context.sql');
const HAS_CONTEXT = loadStatement(import.meta.url, './sql/has-context.sql');
const LIST = loadStatement(import.meta.url, './sql/list-tasks.sql');
const COUNT = loadStatement(import.meta.url, './sql/count-tasks.sql');

/** Reads tasks for their owners. */
export function createTaskSearch({
  database,
  read,
  now,
}: TaskContext): Pick<Tasks, 'find' | 'ofCall' | 'liveStatesOf' | 'findAll' | 'lastIn' | 'claim' | 'list'> {
  return {
    async find(key, owner) {
      const row = await read(key);
      return row && sees(row, owner) ? toTask(row) : null;
    },

    async ofCall(callId, owner) {
      const [row] = await database.query(FIND_OF_CALL, [callId]);
      const task = row ? toTaskRow(row) : null;
      return task && sees(task, owner) ? toTask(task) : null;
    },

    async liveStatesOf(callIds, account) {
      if (callIds.length === 0) return new Map();
      const ids = JSON.stringify(Object.fromEntries(callIds.map((id, index) => [index, [id]])));
      const rows = await database.query(LIVE_STATES, [ids, account]);
      return new Map(rows.map((row) => [row['call_id'] as string, row['state'] as string]));
    },

    async findAll(primitive, taskId, { account, within }) {
      if (!isStorable(taskId)) return [];
      return (await database.query(FIND_ALL, [primitive, taskId, account, within, FOUND_MAX]))
        .map(toTaskRow)
        .map(toTask);
    },

    async lastIn({ account, within }, { primitive, service, contextId }) {
      if (!isStorable(contextId) || !isStorable(service)) return null;
      const [row] = await database.query(LAST_IN, [contextId, primitive, service, account, within]);
      if (row) return toTask(toTaskRow(row));
      return (await database.query(HAS_CONTEXT, [contextId, primitive, service])).length > 0 ? 'foreign' : null;
    },

    async claim({ account, within }, { primitive, service, contextId }) {
      if (!isStorable(contextId) || !isStorable(service)) return false;
      return (await database.query(CLAIM_CONTEXT, [primitive, service, contextId, account, within, now()])).length > 0;
    },

    async list({ account, within }, query): Promise<TaskPage> {
      const { primitive, service, contextId = null, state = null, since = null, after = null, pageNames } = query;
      const from =
        after === null
          ? { updatedAt: Number.MAX_SAFE_INTEGER, taskId: '', service: '' }
          : readPageToken(after, pageNames);
      // No task has such a text, and the database may even refuse it as a parameter.
      if ([service, contextId, state].some((text) => text !== null && !isStorable(text)))
        return { tasks: [], total: 0, next: null };
      const limit = Math.min(Math.max(Math.trunc(query.limit), 1), PAGE_MAX);
      const sinceMs = Math.ceil(Math.min(Math.max(since ?? 0, 0), Number.MAX_SAFE_INTEGER));
      const filter: Value[] = [account, primitive, within, service, contextId, state, sinceMs];
      const [rows, [count]] = await Promise.all([
        database.query(LIST, [...filter, from.updatedAt, from.taskId, from.service, limit + 1]),
        database.query(COUNT, filter),
      ]);
      const tasks = rows.slice(0, limit).map(toTaskRow).map(toTask);
      return { tasks, total: Number(count!['tasks']), next: rows.length > limit ? toPageToken(tasks.at(-1)!) : null };
    },
  };
}
