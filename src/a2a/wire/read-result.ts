import { isObject } from '#wire';
import { eventOf, type EventKind, type EventValue } from './event.ts';
import { isInterrupted, isTerminal, stateOf, type TaskState } from './task-state.ts';
import type { A2aVersion } from './version.ts';

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
  /** No event follows in the stream: the task has ended or waits for its client, or the event is a message. */
  readonly final: boolean;
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
export function readEvent(version: A2aVersion, value: unknown): A2aEvent | null {
  const event = eventOf(version, value);
  return event === null ? null : toA2aEvent(event, value);
}

/** Whether an event in the stream of a task belongs to that task. A message need not name its task. */
export const isOfTask = ({ kind, taskId }: A2aEvent, id: string): boolean =>
  taskId === id || (kind === 'message' && taskId === null);

function toA2aEvent({ kind, value }: EventValue, whole: unknown): A2aEvent {
  const status = isObject(value['status']) ? value['status'] : {};
  const state = kind === 'task' || kind === 'status' ? stateOf(status['state']) : null;
  return {
    kind,
    taskId: idOf(value[kind === 'task' ? 'id' : 'taskId']),
    contextId: idOf(value['contextId']),
    state,
    output: hasOutput(kind, value, state, status['message']),
    final: kind === 'message' || isFinal(state, kind === 'status' ? value['final'] : undefined),
    usage: usageOf(kind === 'task' ? [whole, status['message'], value] : [value, whole, status['message']]),
  };
}

function hasOutput(
  kind: EventKind,
  { artifact, artifacts }: EventValue['value'],
  state: TaskState | null,
  said: unknown,
): boolean {
  if (kind === 'message') return true;
  if (kind === 'artifact') return hasParts(artifact);
  return (
    (state === 'input-required' && hasParts(said)) ||
    (kind === 'task' && Array.isArray(artifacts) && artifacts.some(hasParts))
  );
}

/** Whether an artifact or a message has content. */
const hasParts = (holder: unknown): boolean =>
  isObject(holder) &&
  Array.isArray(holder['parts']) &&
  holder['parts'].some((part) => isObject(part) && part['text'] !== '');

/** Whether the stream ends. 0.3 has `final` in a status update; a task that has ended ends its stream in any case. */
function isFinal(state: TaskState | null, said: unknown): boolean {
  if (isTerminal(state) || said === true) return true;
  return isInterrupted(state) && said !== false;
}

function usageOf(holders: readonly unknown[]): unknown {
  for (const holder of holders) {
    const metadata: unknown = isObject(holder) ? holder['metadata'] : undefined;
    if (isObject(metadata) && Object.hasOwn(metadata, USAGE_KEY)) return metadata[USAGE_KEY];
  }
  return undefined;
}

/** An empty id counts as absent, because ProtoJSON may write the default value. */
const idOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

/** The tasks of a list (only 1.0 has lists), each read as a result; null for any other value. */
export function readTaskList(value: unknown): readonly (A2aEvent | null)[] | null {
  const tasks = isObject(value) ? value['tasks'] : undefined;
  return Array.isArray(tasks) ? tasks.map((task) => readEvent('1.0', task)) : null;
}
