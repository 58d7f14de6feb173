import { waitsForClient } from '#tasks';

/** The states of a task, by their names in 0.3. `unknown` also means a state that no version has. */
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

/** The states by their numbers in the enum of 1.0, which ProtoJSON allows. */
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
  // The spelling of 0.3's REST binding, which many servers use.
  ['TASK_STATE_CANCELLED', 'canceled'],
  ['cancelled', 'canceled'],
]);

/**
 * Reads a state in the spelling of any version: `input-required`, `TASK_STATE_INPUT_REQUIRED`, `6`. Any other value is
 * `unknown`.
 */
export const stateOf = (value: unknown): TaskState => NAMES.get(value) ?? 'unknown';

/** The name of a state in 1.0. */
export function stateName(state: TaskState): string {
  return state === 'unknown' ? 'TASK_STATE_UNSPECIFIED' : `TASK_STATE_${state.toUpperCase().replace('-', '_')}`;
}

/** Whether the task has ended for good. */
export const isTerminal = (state: TaskState | null): boolean =>
  state === 'completed' || state === 'canceled' || state === 'failed' || state === 'rejected';

/** Whether the task waits for its client. Its stream ends, and the task goes on with the client's next message. */
export const isInterrupted = (state: TaskState | null): boolean => state !== null && waitsForClient(state);
