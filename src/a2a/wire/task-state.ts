import { waitsForClient } from '#tasks';

/** States of a task, by 0.3's words. `unknown` also stands for states that no version has. */
export const TASK_STATES = [
  'submitted',
  'working',
  'input-required',
  'auth-required',
  'completed',
  'canceled',
  'failed',
  'rejected',
  'unknown',
] as const;
export type TaskState = (typeof TASK_STATES)[number];

/** By the numbers of 1.0's enum, which ProtoJSON lets writers use. */
const BY_NUMBER: readonly TaskState[] = [
  'unknown',
  'submitted',
  'working',
  'completed',
  'failed',
  'canceled',
  'input-required',
  'rejected',
  'auth-required',
];

const NAMES: ReadonlyMap<unknown, TaskState> = new Map<unknown, TaskState>([
  ...TASK_STATES.flatMap((state) => [[state, state] as const, [stateName(state), state] as const]),
  ...BY_NUMBER.map((state, number) => [number, state] as const),
  // As the enum of 0.3's REST binding writes it, and many servers with it.
  ['TASK_STATE_CANCELLED', 'canceled'],
  ['cancelled', 'canceled'],
]);

/**
 * Reads a state in any version's spelling: `input-required`, `TASK_STATE_INPUT_REQUIRED`, `6`. Any other value is
 * `unknown`.
 */
export const stateOf = (value: unknown): TaskState => NAMES.get(value) ?? 'unknown';

/** 1.0's name of a state. */
export function stateName(state: TaskState): string {
  return state === 'unknown' ? 'TASK_STATE_UNSPECIFIED' : `TASK_STATE_${state.toUpperCase().replace('-', '_')}`;
}

/** Whether nothing can happen to the task any more. */
export const isTerminal = (state: TaskState | null): boolean =>
  state === 'completed' || state === 'canceled' || state === 'failed' || state === 'rejected';

/** Whether the task waits for its client: the stream ends, the task goes on with the client's next message. */
export const isInterrupted = (state: TaskState | null): boolean => state !== null && waitsForClient(state);
