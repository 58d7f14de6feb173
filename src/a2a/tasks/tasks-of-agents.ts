import { ONE_CALL } from '#gateway';
import type { Sight, Task, TaskKey } from '#tasks';
import { usageOf, type PricedByUse } from '../send/ending.ts';
import type { A2aEvent } from '../wire/read-result.ts';
import { isTerminal, type TaskState } from '../wire/task-state.ts';
import type { A2aVersion } from '../wire/version.ts';

/** Notes of a task that no agent has: it is an answer of another primitive. */
export const BRIDGED = '{"bridged":true}';

/**
 * Notes of a task that was begun in this version, by this call. It is asked for in no other version, as an agent of
 * both may keep the tasks of each for themselves.
 */
export const notesOf = (version: A2aVersion, call: string): string => JSON.stringify({ version, call });

/** The version that a task was begun in; null for one that does not say. */
export function versionIn(notes: string): A2aVersion | null {
  const { version } = JSON.parse(notes) as { readonly version?: unknown };
  return version === '0.3' || version === '1.0' ? version : null;
}

/** The call that a task was begun by; null where its notes do not say. */
export function beganBy({ notes, taskId }: Pick<Task, 'notes' | 'taskId'>): string | null {
  // An answer of another primitive is called as its call.
  if (notes === BRIDGED) return taskId;
  const { call } = JSON.parse(notes) as { readonly call?: unknown };
  return typeof call === 'string' ? call : null;
}

export const keyOf = (service: string, taskId: string): TaskKey => ({ primitive: 'agent', service, taskId });

/**
 * The news of an event about its task; null for an event without news of the task's state. `gave`: the task is
 * known to have given output. `bytes`: received of the task, where the event is its end.
 */
export function sightOf(
  offer: PricedByUse,
  { state: said, contextId, usage, output }: A2aEvent,
  gave: boolean,
  bytes: number,
): Sight | null {
  const state = said === 'unknown' ? null : said;
  if (state === null && (gave || !output)) return null;
  const end = endOf(state);
  return {
    state,
    end,
    output,
    bytes,
    ...(contextId === null ? {} : { contextId }),
    // An agent reports the usage of a task once. It is charged with the first message.
    usageOf: (_call, first, work) => (first ? usageOf(offer, usage, end === 'cut', work) : ONE_CALL),
  };
}

/** How an end is charged: a cancellation is the client's doing, a failure or a rejection is the agent's own. */
function endOf(state: TaskState | null): Sight['end'] {
  if (!isTerminal(state)) return null;
  return state === 'completed' ? 'complete' : state === 'canceled' ? 'cut' : 'free';
}
