// A task as its server shows it, what it costs, and how the client sees it: with another id and lifetime.

import { hash } from 'node:crypto';
import { isObject, type JsonObject, membersOf, parseExact, RawJsonError, splice, withMembers } from '#wire';
import { clampReportedUsage, costOf } from '#call';
import type { Offer } from '#catalog';
import { type Observation, isStorable, type SeenTask } from '#tasks';
import { usageOf } from '../request/ending.ts';
import { withMetaAt } from '../wire/meta.ts';

const STATES = ['working', 'input_required', 'completed', 'failed', 'cancelled'] as const;
type TaskState = (typeof STATES)[number];

const ENDS: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled']);

/** Whether a server ended the task with this state. A task that the gateway gave up has another state. */
export const isEnd = (state: string): boolean => ENDS.has(state);

export interface ServerTask {
  readonly taskId: unknown;
  readonly state: TaskState;
  /** How long the server keeps the task after its creation, in milliseconds; null if it sets no limit. */
  readonly ttlMs: number | null;
  /** The pause between two looks that the server wants, in milliseconds; null if it does not say. */
  readonly pollMs: number | null;
  /** The result of the tool; null if the task is not completed or has no result. */
  readonly result: JsonObject | null;
}

/** Reads a task from a result; null if the result is not a task. */
export function readTask(result: unknown): ServerTask | null {
  if (!isObject(result)) return null;
  const { taskId, status, ttlMs, pollIntervalMs, result: inlined } = result;
  const state = STATES.find((one) => one === status);
  if (!state) return null;
  return {
    taskId,
    state,
    ttlMs: countOf(ttlMs),
    pollMs: countOf(pollIntervalMs),
    result: isObject(inlined) ? inlined : null,
  };
}

const countOf = (value: unknown): number | null =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : null;

/**
 * The observation of a task. The rules are those for a call that is answered at once: a result is charged; a result
 * with `isError`, a failure and a cancelled task are free. If the tool is priced by use, the reported use is charged.
 * `bytes`: the size of the answer that shows the task.
 */
export function observationOf(
  offer: Offer,
  tool: string,
  { state, pollMs, result }: Pick<ServerTask, 'state' | 'pollMs' | 'result'>,
  bytes: number,
): Observation {
  if (!isEnd(state)) return { state, end: null, ...(pollMs === null ? {} : { pauseMs: pollMs }) };
  if (state !== 'completed' || result === null || result['isError'] === true) return { state, end: 'free' };
  const reported = usageOf(offer, tool, result['_meta']);
  return {
    state,
    end: 'complete',
    output: true,
    bytes,
    usageOf: (_call, _first, work) => clampReportedUsage(reported, offer, work),
  };
}

/**
 * How much longer than its server's `ttlMs` the gateway keeps a task, so that it still sees an end shortly before. In
 * milliseconds.
 */
const GRACE_MS = 60_000;
/** The longest pause between two looks, even if a server asks for a longer one. In milliseconds. */
const PAUSE_MS_MAX = 60_000;

/**
 * How long a task may run from its creation until the gateway gives it up: as long as its server keeps it, but at most
 * `ttlMsMax`. In milliseconds.
 */
export const lifetimeOf = (serverTtlMs: number | null, ttlMsMax: number): number =>
  serverTtlMs === null ? ttlMsMax : Math.min(serverTtlMs + GRACE_MS, ttlMsMax);

/**
 * The `ttlMs` of a running task for the client. It is at most `ttlMsMax`, because then the gateway gives the task up.
 */
export const shownTtlMs = (serverTtlMs: number | null, ttlMsMax: number): number =>
  Math.min(serverTtlMs ?? ttlMsMax, ttlMsMax);

/** The pause before the next poll, in milliseconds. */
export const pauseOf = (pollMs: number | null): number => Math.min(pollMs ?? 0, PAUSE_MS_MAX);

/**
 * The id of a task for the client: the server's own id, then a mark of the offer. Two servers may choose the same id.
 * With the mark, an id names one task of one provider, both at the address of the service and at that of all services.
 * Null for an id that is not a string, or is empty or too long.
 */
export function clientTaskId(offerId: string, serverTaskId: unknown): string | null {
  if (typeof serverTaskId !== 'string' || serverTaskId === '') return null;
  const id = `${serverTaskId}.${hash('sha256', offerId, 'base64url').slice(0, MARK_CHARS)}`;
  return isStorable(id) ? id : null;
}

export const serverTaskId = (clientId: string): string => clientId.slice(0, -MARK_CHARS - 1);

const MARK_CHARS = 8;

/** The cost of a settled task, for the `_meta` of its result. */
export interface TaskCost {
  readonly callId: string;
  readonly settlement: SeenTask['settled'][number]['settlement'];
  /** A compact JWS; null without a receipt. */
  readonly receipt: string | null;
}

/**
 * The answer to `tasks/get` (JSON text), with the id that the client knows and `ttlMs` (null leaves the server's
 * value). The cost is put into the `_meta` of the tool's result, or of the answer if that has no result.
 */
export function showTask(text: string, taskId: string, ttlMs: number | null, cost: TaskCost | null): string {
  try {
    return show(text, taskId, ttlMs, cost);
  } catch (error) {
    if (!(error instanceof RawJsonError)) throw error;
    // A key occurs twice. The result may be paid for already, so it is parsed: the last value counts, as for most
    // readers.
    return show(JSON.stringify(parseExact(text)), taskId, ttlMs, cost);
  }
}

function show(text: string, taskId: string, ttlMs: number | null, cost: TaskCost | null): string {
  const members = { taskId: JSON.stringify(taskId), ...(ttlMs === null ? {} : { ttlMs: String(ttlMs) }) };
  const renamed = splice(text, [withMembers(text, membersOf(text).get('result')!, members)]);
  if (cost === null) return renamed;
  const answer = membersOf(renamed).get('result')!;
  const result = membersOf(renamed, answer.start).get('result');
  return withMetaAt(renamed, result && renamed[result.start] === '{' ? result : answer, costMeta(cost));
}

function costMeta({ callId, settlement, receipt }: TaskCost): Readonly<Record<string, string | null>> {
  return {
    'tollgate/generation': JSON.stringify({ id: callId, ...costOf({ settlement }) }),
    'tollgate/receipt': receipt === null ? null : JSON.stringify(receipt),
  };
}
