import { isObject, type JsonObject } from '#wire';
import type { A2aVersion } from './version.ts';

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
