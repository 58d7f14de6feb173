import { isObject, type JsonObject } from '#wire';
import { waitsForClient } from '#tasks';
import type { A2aVersion } from './protocol.ts';

/** The member of `metadata` in which an agent reports its usage. */
export const USAGE_KEY = 'tollgate/usage';

/** The members of an event or a result that the gateway uses. */
export interface A2aEvent {
  readonly kind: EventKind;
  readonly taskId: string | null;
  readonly contextId: string | null;
  /** The state in a task or status update; null for other kinds. */
  readonly state: TaskState | null;
  /**
   * The event has output: an artifact, a message, or a question to the client. The status messages of a working task
   * are not output.
   */
  readonly output: boolean;
  /**
   * The usage in `metadata["tollgate/usage"]`. Of a task: from the event, else the message in its status, else the
   * task. Of other kinds: from the event, else the message in its status. undefined if absent.
   */
  readonly usage: unknown;
}

/**
 * Reads a result (of send, get, cancel) or a stream event of either version; null for any other value. Never throws: a
 * member of a wrong type counts as absent, and a state that no version has is `unknown`.
 */
export function readEvent(version: A2aVersion, whole: unknown): A2aEvent | null {
  const event = eventOf(version, whole);
  if (event === null) return null;
  const { kind, value } = event;
  const status = isObject(value['status']) ? value['status'] : {};
  const state = kind === 'task' || kind === 'status' ? stateOf(status['state']) : null;
  return {
    kind,
    taskId: idOf(value[kind === 'task' ? 'id' : 'taskId']),
    contextId: idOf(value['contextId']),
    state,
    output: hasOutput(event, state, status['message']),
    usage: usageOf(kind === 'task' ? [whole, status['message'], value] : [value, whole, status['message']]),
  };
}

/** Whether an event in the stream of a task belongs to that task. A message need not name its task. */
export const isOfTask = ({ kind, taskId }: A2aEvent, id: string): boolean =>
  taskId === id || (kind === 'message' && taskId === null);

function hasOutput({ kind, value }: EventValue, state: TaskState | null, content: unknown): boolean {
  const { artifact, artifacts } = value;
  if (kind === 'message') return true;
  if (kind === 'artifact') return hasParts(artifact);
  return (
    (state === 'input-required' && hasParts(content)) ||
    (kind === 'task' && Array.isArray(artifacts) && artifacts.some(hasParts))
  );
}

const hasParts = (holder: unknown): boolean =>
  isObject(holder) &&
  Array.isArray(holder['parts']) &&
  holder['parts'].some((part) => isObject(part) && part['text'] !== '');

function usageOf(holders: readonly unknown[]): unknown {
  for (const holder of holders) {
    const metadata: unknown = isObject(holder) ? holder['metadata'] : undefined;
    if (isObject(metadata) && Object.hasOwn(metadata, USAGE_KEY)) return metadata[USAGE_KEY];
  }
  return undefined;
}

/** An empty id counts as absent, because ProtoJSON may write the default value. */
const idOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

export type EventKind = 'message' | 'task' | 'status' | 'artifact';

/** An event or a result of a send without its wrapper. `value` keeps the form of its version. */
export interface EventValue {
  readonly kind: EventKind;
  readonly value: JsonObject;
}

const KINDS: ReadonlyMap<unknown, EventKind> = new Map<unknown, EventKind>([
  ['message', 'message'],
  ['task', 'task'],
  ['status-update', 'status'],
  ['artifact-update', 'artifact'],
]);

/** The member in which 1.0 wraps an event (`StreamResponse`, section 3.2.3). */
export const WRAPPERS = {
  task: 'task',
  message: 'message',
  status: 'statusUpdate',
  artifact: 'artifactUpdate',
} as const satisfies Record<EventKind, string>;

/** 0.3's discriminator (`kind`). */
export const KIND_NAMES = {
  task: 'task',
  message: 'message',
  status: 'status-update',
  artifact: 'artifact-update',
} as const satisfies Record<EventKind, string>;

/**
 * Finds the kind of a stream event or of a result of a send; null for any other value. Without a wrapper and without
 * `kind`, the members decide: results of `GetTask` have neither, and some servers forget them.
 */
export function eventOf(version: A2aVersion, value: unknown): EventValue | null {
  if (!isObject(value)) return null;
  if (version === '1.0') {
    for (const kind of ['task', 'message', 'status', 'artifact'] as const) {
      const inner = value[WRAPPERS[kind]];
      if (isObject(inner)) return { kind, value: inner };
    }
  }
  const kind = KINDS.get(value['kind']) ?? kindByMembers(value);
  return kind === null ? null : { kind, value };
}

function kindByMembers(value: JsonObject): EventKind | null {
  if (typeof value['taskId'] === 'string' && isObject(value['artifact'])) return 'artifact';
  if (typeof value['taskId'] === 'string' && isObject(value['status'])) return 'status';
  if (typeof value['id'] === 'string' && isObject(value['status'])) return 'task';
  return typeof value['messageId'] === 'string' && Array.isArray(value['parts']) ? 'message' : null;
}

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

export function stateName(state: TaskState): string {
  return state === 'unknown' ? 'TASK_STATE_UNSPECIFIED' : `TASK_STATE_${state.toUpperCase().replace('-', '_')}`;
}

export const isTerminal = (state: TaskState | null): boolean =>
  state === 'completed' || state === 'canceled' || state === 'failed' || state === 'rejected';

/** Whether the task waits for its client. Its stream ends, and the task goes on with the client's next message. */
export const isInterrupted = (state: TaskState | null): boolean => state !== null && waitsForClient(state);
