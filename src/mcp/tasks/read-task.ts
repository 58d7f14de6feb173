import { isObject, type JsonObject } from '#wire';
import { heldAgainst, type Offer } from '#gateway';
import type { Sight } from '#tasks';
import { usageOf } from '../turn/ending.ts';

const STATES = ['working', 'input_required', 'completed', 'failed', 'cancelled'] as const;
export type TaskState = (typeof STATES)[number];

const ENDS: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled']);

/** Whether a task that was noted in this state has ended by its server's word; one that was given up has not. */
export const isEnd = (state: string): boolean => ENDS.has(state);

/** A task as a server shows it. */
export interface ServerTask {
  readonly taskId: unknown;
  readonly state: TaskState;
  /** Milliseconds from its creation on that the server keeps it; null where it sets no bound. */
  readonly ttlMs: number | null;
  /** How long the server wants to be left alone between two looks; null where it does not say. */
  readonly pollMs: number | null;
  /** The result of the tool, of a task that is completed; null where there is none. */
  readonly result: JsonObject | null;
}

/** Reads a task out of a result. null for a result that is none. */
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
 * What is seen of a task, by the rules of a call that is answered at once: a result is charged, one with `isError`,
 * a failure and a cancelled task are free. Where the tool is priced by its use, what the result reports of that
 * counts. `bytes`: of the answer that shows the task.
 */
export function sightOf(
  offer: Offer,
  tool: string,
  { state, pollMs, result }: Pick<ServerTask, 'state' | 'pollMs' | 'result'>,
  bytes: number,
): Sight {
  if (!isEnd(state)) return { state, end: null, ...(pollMs === null ? {} : { pauseMs: pollMs }) };
  if (state !== 'completed' || result === null || result['isError'] === true) return { state, end: 'free' };
  const reported = usageOf(offer, tool, result['_meta']);
  return {
    state,
    end: 'complete',
    output: true,
    bytes,
    usageOf: (_call, _first, work) => heldAgainst(reported, offer, work),
  };
}
