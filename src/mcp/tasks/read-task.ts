import { isObject, type JsonObject } from '#wire';
import { clampReportedUsage, type Offer } from '#gateway';
import type { Observation } from '#tasks';
import { usageOf } from '../request/ending.ts';

const STATES = ['working', 'input_required', 'completed', 'failed', 'cancelled'] as const;
export type TaskState = (typeof STATES)[number];

const ENDS: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled']);

/** Whether a server ended the task with this state. A task that the gateway gave up has another state. */
export const isEnd = (state: string): boolean => ENDS.has(state);

/** A task in the form that a server shows. */
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
