import { listParam, loadStatements, type Database, type Value } from '#store';
import type { SettlePendingCall, Ledger, LockRecord } from '#billing';
import { GatewayError } from '#errors';
import type { Health, Offer } from '#catalog';
import { createTaskStart, type TaskStart } from './begin-task.ts';
import { createTaskEnd, type TaskEnd } from './end-task.ts';
import { type TaskContext, FIND_TASK, isStorable, keyOf, listCalls, toTask, toTaskRow, sees } from './task-rows.ts';
import type { TaskSink, Tasks, TaskPage, PageNames, CallCost } from './task.ts';

export interface TasksOptions {
  readonly database: Database;
  readonly ledger: Pick<Ledger, 'keep' | 'find'>;
  readonly settlePendingCall: SettlePendingCall;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** The most running tasks of one account; default no limit. */
  readonly liveMax?: number;
  /** Each gets all events of tasks at this gateway. */
  readonly sinks: readonly TaskSink[];
  /** The signed receipt of a settled call; default none. */
  readonly receipt?: (record: LockRecord) => string | null;
  /** undefined if the offer does not exist any more. */
  readonly offerOf: (offerId: string) => Offer | undefined;
  /** Gets the flags of settled calls. */
  readonly health: Pick<Health, 'flagged'>;
}

/** Tasks, with additional methods for the watch; see createTaskWatch. */
export interface KeptTasks extends Tasks, TaskEnd, TaskStart {}

const PAGE_MAX = 1_000;
const FOUND_MAX = 10;

const SQL = loadStatements(import.meta.url, './sql/tasks.sql', [
  'findTaskOfCall',
  'liveStatesOfCalls',
  'findTasks',
  'lastInContext',
  'claimContext',
  'hasContext',
  'listTasks',
  'countTasks',
  'countLiveTasks',
]);

export async function countLiveTasks(database: Database): Promise<number> {
  const [row] = await database.query(SQL.countLiveTasks);
  return Number(row!['tasks']);
}

export function createTasks(options: TasksOptions): KeptTasks {
  const { database, ledger, settlePendingCall, now, liveMax = Number.MAX_SAFE_INTEGER } = options;
  const { sinks, offerOf, health, receipt = () => null } = options;
  const context: TaskContext = {
    database,
    ledger,
    settlePendingCall,
    nameOf: ({ offerId, provider }) => offerOf(offerId)?.provider.name ?? provider,
    sink: {
      begun: (task) => sinks.forEach((sink) => sink.begun?.(task)),
      ended: (task, gaveUp) => sinks.forEach((sink) => sink.ended?.(task, gaveUp)),
      async tellGivenUp(task) {
        for (const sink of sinks) await sink.tellGivenUp?.(task);
      },
      concluded(call) {
        for (const sink of sinks) sink.concluded?.(call);
        const offer = offerOf(call.task.offerId);
        if (offer) for (const flag of call.flags) health.flagged(offer, flag);
      },
    },
    async read(key) {
      if (!isStorable(key.taskId) || !isStorable(key.service)) return null;
      const [row] = await database.query(FIND_TASK, keyOf(key));
      return row ? toTaskRow(row) : null;
    },
    now,
  };
  const { read } = context;
  return {
    ...createTaskStart(context, liveMax),
    ...createTaskEnd(context),

    async find(key, owner) {
      const row = await read(key);
      return row && sees(row, owner) ? toTask(row) : null;
    },

    async ofCall(callId, owner) {
      const [row] = await database.query(SQL.findTaskOfCall, [callId]);
      const task = row ? toTaskRow(row) : null;
      return task && (owner === null || sees(task, owner)) ? toTask(task) : null;
    },

    async liveStatesOf(callIds, account) {
      if (callIds.length === 0) return new Map();
      const rows = await database.query(SQL.liveStatesOfCalls, [listParam(callIds), account]);
      return new Map(rows.map((row) => [row['call_id'] as string, row['state'] as string]));
    },

    async findAll(primitive, taskId, { account, within }) {
      if (!isStorable(taskId)) return [];
      return (await database.query(SQL.findTasks, [primitive, taskId, account, within, FOUND_MAX]))
        .map(toTaskRow)
        .map(toTask);
    },

    async lastIn({ account, within }, { primitive, service, contextId }) {
      if (!isStorable(contextId) || !isStorable(service)) return null;
      const [row] = await database.query(SQL.lastInContext, [contextId, primitive, service, account, within]);
      if (row) return toTask(toTaskRow(row));
      return (await database.query(SQL.hasContext, [contextId, primitive, service])).length > 0 ? 'foreign' : null;
    },

    async claim({ account, within }, { primitive, service, contextId }) {
      if (!isStorable(contextId) || !isStorable(service)) return false;
      return (
        (await database.query(SQL.claimContext, [primitive, service, contextId, account, within, now()])).length > 0
      );
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
        database.query(SQL.listTasks, [...filter, from.updatedAt, from.taskId, from.service, limit + 1]),
        database.query(SQL.countTasks, filter),
      ]);
      const tasks = rows.slice(0, limit).map(toTaskRow).map(toTask);
      return { tasks, total: Number(count!['tasks']), next: rows.length > limit ? toPageToken(tasks.at(-1)!) : null };
    },

    async costOf(key, beganBy) {
      const row = await read(key);
      if (row === null) return null;
      const began = beganBy(toTask(row));
      // A task that ended with its first message has no stored call: the call that began it settled itself.
      const later = (await listCalls(database, key)).map(({ callId }) => callId);
      const calls: CallCost[] = [];
      for (const id of new Set([...(began === null ? [] : [began]), ...later])) {
        const record = await ledger.find(id);
        if (record === null) calls.push({ id, charged: 0n, receipt: null });
        else if (record.state === 'held') return null;
        else {
          const runCost = record.lendable > 0n ? { runCost: record.charged + record.lent } : {};
          calls.push({ id, charged: record.charged, ...runCost, receipt: receipt(record) });
        }
      }
      return { calls };
    },
  };
}

/** The last task of a page. The next page begins after it. */
interface PageEnd {
  readonly updatedAt: number;
  readonly taskId: string;
  readonly service: string;
}

const TOKEN_LENGTH_MAX = 4096;

/**
 * An opaque URL-safe text. It contains only the position in the list and grants no access: the owner is checked
 * separately.
 */
function toPageToken({ updatedAt, taskId, service }: PageEnd): string {
  return Buffer.from(JSON.stringify([updatedAt, taskId, service])).toString('base64url');
}

/** The names in a TaskQuery and a TaskPage. */
const OWN_NAMES: PageNames = { after: 'after', next: 'next' };

function readPageToken(token: string, { after, next }: PageNames = OWN_NAMES): PageEnd {
  const parts = token.length <= TOKEN_LENGTH_MAX ? parse(Buffer.from(token, 'base64url').toString()) : null;
  if (Array.isArray(parts) && parts.length === 3) {
    const [updatedAt, taskId, service] = parts as unknown[];
    if (Number.isSafeInteger(updatedAt) && isText(taskId) && isText(service))
      return { updatedAt: updatedAt as number, taskId, service };
  }
  throw new GatewayError(
    'invalid_request',
    `${after} must be the ${next} of a page of this list. Leave it out for the first page`,
    { param: after },
  );
}

const isText = (value: unknown): value is string => typeof value === 'string' && isStorable(value);

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
