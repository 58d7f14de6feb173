import { ONE_CALL } from '#gateway';
import type { Observation, Task, TaskKey } from '#tasks';
import { usageOf, type PricedByUse } from '../send/ending.ts';
import { type A2aEvent, isTerminal, type TaskState } from '../wire/events.ts';
import type { A2aVersion } from '../wire/protocol.ts';

/** Notes of a task that exists at no agent, because it is the answer of another primitive. */
export const BRIDGED = '{"bridged":true}';

/**
 * Notes of a task that began in this version, with this call. The task is requested only in this version, because an
 * agent that speaks both versions may store the tasks of each separately.
 */
export const notesOf = (version: A2aVersion, call: string): string => JSON.stringify({ version, call });

/** The version in which a task began; null if its notes do not say. */
export function versionIn(notes: string): A2aVersion | null {
  const { version } = JSON.parse(notes) as { readonly version?: unknown };
  return version === '0.3' || version === '1.0' ? version : null;
}

/** The call with which a task began; null if its notes do not say. */
export function beganBy({ notes, taskId }: Pick<Task, 'notes' | 'taskId'>): string | null {
  // A bridged task has the id of its call.
  if (notes === BRIDGED) return taskId;
  const { call } = JSON.parse(notes) as { readonly call?: unknown };
  return typeof call === 'string' ? call : null;
}

export const keyOf = (service: string, taskId: string): TaskKey => ({ primitive: 'agent', service, taskId });

/**
 * The change that an event brings to its task; null if the event changes nothing. `gave`: the task is known to have
 * given output. `bytes`: the output received from the task, if the event is its end.
 */
export function observationOf(
  offer: PricedByUse,
  { state: said, contextId, usage, output }: A2aEvent,
  gave: boolean,
  bytes: number,
): Observation | null {
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

/**
 * How the end of a task is charged. A canceled task is cut, because the client canceled it. A failed or rejected task
 * is free, because its agent failed.
 */
function endOf(state: TaskState | null): Observation['end'] {
  if (!isTerminal(state)) return null;
  return state === 'completed' ? 'complete' : state === 'canceled' ? 'cut' : 'free';
}
