import { isObject } from '#wire';
import { eventOf, type EventKind, type EventValue } from './event.ts';
import { isInterrupted, isTerminal, stateOf, type TaskState } from './task-state.ts';
import type { A2aVersion } from './version.ts';

/** The member of `metadata` by which an agent says what its work used. */
export const USAGE_KEY = 'tollgate/usage';

/** The part of an event or a result that the gateway acts on. */
export interface A2aEvent {
  readonly kind: EventKind;
  readonly taskId: string | null;
  readonly contextId: string | null;
  /** Of a task and of a status update; null for the others. */
  readonly state: TaskState | null;
  /**
   * It has output of the work: an artifact, or a question to the client. The status messages of a working task are
   * not output.
   */
  readonly output: boolean;
  /** Nothing follows in the stream: the task has ended, or waits for its client, or the event is a message. */
  readonly final: boolean;
  /**
   * `metadata["tollgate/usage"]` of the event, else of the message in its status, else of the task; undefined where
   * none has it.
   */
  readonly usage: unknown;
}

/**
 * Reads a result (of send, get, cancel) or an event of a stream, of either version; null for any other value. Never
 * throws: a member of a wrong type counts as absent, and a state that no version has is `unknown`.
 */
export function readEvent(version: A2aVersion, value: unknown): A2aEvent | null {
  const event = eventOf(version, value);
  return event === null ? null : toA2aEvent(event, value);
}

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

/** Whether an artifact or a message says anything. */
const hasParts = (holder: unknown): boolean =>
  isObject(holder) &&
  Array.isArray(holder['parts']) &&
  holder['parts'].some((part) => isObject(part) && part['text'] !== '');

/** 0.3 says `final` of a status; a task that has ended ends its stream whatever is said. */
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

/** An id that is empty is one that ProtoJSON wrote out as its default. */
const idOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

/** The tasks of a list (1.0 alone has one), each read as a result; null for any other value. */
export function readTaskList(value: unknown): readonly (A2aEvent | null)[] | null {
  const tasks = isObject(value) ? value['tasks'] : undefined;
  return Array.isArray(tasks) ? tasks.map((task) => readEvent('1.0', task)) : null;
}
