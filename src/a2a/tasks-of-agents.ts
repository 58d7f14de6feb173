import { type Offer, type Sight, type TaskCall, type TaskKey, type Usage } from '#gateway';
import { usageOf } from './ending.ts';
import type { A2aEvent } from './wire/read-result.ts';
import { isTerminal } from './wire/task-state.ts';

/** Notes of a task that no agent keeps: it is an answer of another primitive, and nobody can be asked for it. */
export const BRIDGED = '{"bridged":true}';

export const keyOf = (service: string, taskId: string): TaskKey => ({ primitive: 'agent', service, taskId });

/** What an event says of its task; null for one that says nothing of where it stands. */
export function sightOf(offer: Pick<Offer, 'priceCap'>, { state, contextId, usage }: A2aEvent): Sight | null {
  if (state === null || state === 'unknown') return null;
  const end = !isTerminal(state) ? null : state === 'completed' ? 'complete' : 'free';
  return {
    state,
    end,
    ...(contextId === null ? {} : { contextId }),
    // What a task used is told once, and charged with its first message.
    usageOf: (_call: TaskCall, first: boolean): Usage | null => (first ? usageOf(offer, usage).usage : { call: 1n }),
  };
}
