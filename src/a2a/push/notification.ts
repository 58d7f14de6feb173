import { isObject, type JsonObject, type LargeStrings } from '#wire';
import { WEBHOOK_BODY_BYTES_MAX, type WebhookContent, type WebhookEvent } from '#tasks';
import { isTerminal, stateOf, eventOf, KIND_NAMES, WRAPPERS, type EventKind, type EventValue } from '../wire/events.ts';
import { translateEvent } from '../wire/translate.ts';
import type { A2aVersion } from '../wire/protocol.ts';

/** The content type that the SDKs of each version send (1.0 section 11.2; 0.3 section 9.5). */
const CONTENT_TYPES = { '0.3': 'application/json', '1.0': 'application/a2a+json' } as const satisfies Record<
  A2aVersion,
  string
>;

/**
 * The notification of a task's event for the webhooks of clients, in the version of each client; null for a value that
 * is not an event. An event that is seen twice, on any path, is one notification. A part that is appended to an
 * artifact is always new: it can equal the part before and still be more output.
 */
export function notificationOf(version: A2aVersion, value: unknown): Notification | null {
  const event = eventOf(version, value);
  if (event === null || event.kind === 'message') return null;
  return new TaskNotification(version, event, null);
}

/**
 * The value of an event for its notifications. An event with large strings is too large for a notification, so it is
 * only told what has changed, as with every event that is too large.
 */
export function valueToNotify(
  version: A2aVersion,
  { value, large }: { readonly value: unknown; readonly large: LargeStrings | null },
): unknown {
  const event = large === null ? null : eventOf(version, value);
  if (event === null) return value;
  const short = shortened(event);
  return short === null ? null : wrapped(version, short);
}

export interface Notification extends WebhookEvent {
  /** The event ends the task. */
  readonly ended: boolean;
  /** The same notification with the call of the task. Its identity does not depend on it. */
  priced(generation: JsonObject | null): Notification;
}

class TaskNotification implements Notification {
  readonly ended: boolean;
  readonly contentOf: Notification['contentOf'];
  readonly #version: A2aVersion;
  readonly #event: EventValue;
  readonly #generation: JsonObject | null;

  constructor(version: A2aVersion, event: EventValue, generation: JsonObject | null) {
    const { status } = event.value;
    this.ended = isTerminal(stateOf(isObject(status) ? status['state'] : undefined));
    const ownContentOf: Notification['contentOf'] = (form) =>
      form === '0.3' || form === '1.0' ? contentOf(version, form, withGeneration(event, generation)) : null;
    this.contentOf = ownContentOf;
    this.#version = version;
    this.#event = event;
    this.#generation = generation;
  }

  /** Computed when needed, because most tasks have no webhook. */
  get identity(): string | null {
    const { kind, value } = this.#event;
    return kind === 'artifact' && value['append'] === true ? null : JSON.stringify([kind, value]);
  }

  priced(known: JsonObject | null): Notification {
    return new TaskNotification(this.#version, this.#event, known ?? this.#generation);
  }
}

function withGeneration({ kind, value }: EventValue, generation: JsonObject | null): EventValue {
  if (generation === null) return { kind, value };
  const { metadata } = value;
  return {
    kind,
    value: { ...value, metadata: { ...(isObject(metadata) ? metadata : {}), 'tollgate/generation': generation } },
  };
}

function contentOf(version: A2aVersion, form: A2aVersion, event: EventValue): WebhookContent | null {
  const contentType = CONTENT_TYPES[form];
  const body = bodyOf(form, inForm(version, form, event));
  if (body === null) return null;
  if (Buffer.byteLength(body) <= WEBHOOK_BODY_BYTES_MAX) return { contentType, body };
  // A client that learns of the change can ask for the rest.
  const short = shortened(event);
  const shortBody = short === null ? null : bodyOf(form, inForm(version, form, short));
  return shortBody === null ? null : { contentType, body: shortBody };
}

/** The event in the version of its reader. */
function inForm(version: A2aVersion, form: A2aVersion, { kind, value }: EventValue): EventValue {
  return eventOf(form, translateEvent(version, form, wrapped(version, { kind, value }))) ?? { kind, value };
}

const wrapped = (version: A2aVersion, { kind, value }: EventValue): JsonObject =>
  version === '1.0' ? { [WRAPPERS[kind]]: value } : { ...value, kind: KIND_NAMES[kind] };

/**
 * 1.0 sends the same events as in a stream (section 4.3.3). 0.3 sends the task (section 9.5): for a status update, a
 * task with this status.
 */
function bodyOf(form: A2aVersion, { kind, value }: EventValue): string | null {
  if (form === '1.0') return JSON.stringify({ [WRAPPERS[kind]]: value });
  if (kind === 'task') return JSON.stringify({ ...value, kind: 'task' });
  if (kind !== 'status') return null;
  const { taskId, contextId, status, metadata } = value;
  const generation = isObject(metadata) ? metadata['tollgate/generation'] : undefined;
  return JSON.stringify({
    kind: 'task',
    id: taskId,
    contextId,
    status,
    ...(generation ? { metadata: { 'tollgate/generation': generation } } : {}),
  });
}

const SHORT_MEMBERS: Readonly<Record<EventKind, readonly string[] | null>> = {
  task: ['kind', 'id', 'contextId', 'status'],
  status: ['kind', 'taskId', 'contextId', 'status', 'final'],
  artifact: null,
  message: null,
};

/** The event without its texts and artifacts; null if nothing would remain. */
function shortened({ kind, value }: EventValue): EventValue | null {
  const members = SHORT_MEMBERS[kind];
  if (members === null) return null;
  const kept = Object.fromEntries(members.flatMap((name) => (value[name] === undefined ? [] : [[name, value[name]]])));
  const { metadata } = value;
  const generation = isObject(metadata) ? (metadata['tollgate/generation'] as JsonObject | undefined) : undefined;
  return withGeneration({ kind, value: { ...kept, status: withoutMessage(value['status']) } }, generation ?? null);
}

function withoutMessage(status: unknown): JsonObject {
  if (!isObject(status)) return {};
  const { state, timestamp } = status;
  return { state, ...(timestamp === undefined ? {} : { timestamp }) };
}
