import { type JsonObject, isObject, type LargeStrings } from '#wire';
import { TransientMap } from '#maps';
import type { TaskKey } from '#tasks';
import { type Webhooks, WEBHOOK_BODY_BYTES_MAX, type WebhookContent, type WebhookEvent } from '#webhooks';
import type { A2aVersion } from '../wire/protocol.ts';
import { isTerminal, stateOf, eventOf, KIND_NAMES, WRAPPERS, type EventKind, type EventValue } from '../wire/events.ts';
import { translateEvent } from '../wire/translate.ts';
import { exactValue } from '../wire/edit-json.ts';

/**
 * Notifies the webhooks of a task's clients of an event from any source: a reply, a stream, a poll of the task, or the
 * agent's own notification. Returns at once and never throws. The events of one task are sent in order.
 */
export type Notify = (key: TaskKey, seen: { readonly version: A2aVersion }, value: unknown) => void;

interface PushRelayOptions {
  readonly webhooks: Pick<Webhooks, 'has' | 'deliver'>;
  /**
   * The call of a task in the form of its metadata, with the cost if the task has ended and the cost is known. null if
   * the call is not known.
   */
  readonly generationOf: (key: TaskKey, ended: boolean) => Promise<JsonObject | null>;
  readonly onError: (error: unknown) => void;
}

/**
 * How many events of one task may wait for the database. If an agent streams faster, the oldest waiting events are
 * dropped.
 */
const WAITING_MAX = 1_000;
/** The arguments of `notificationOf`. The notification is only made for a task that has a webhook. */
type WaitingEvent = readonly [version: A2aVersion, value: unknown];
/** Pauses between the attempts while the database cannot be reached. */
const PAUSES_MS = [1_000, 5_000, 15_000] as const;

export function createPushRelay({ webhooks, generationOf, onError }: PushRelayOptions): Notify {
  const waiting = new TransientMap<string, WaitingEvent[]>();

  /**
   * Delivers the waiting events. It checks for a webhook once for each group of events and not for each event, because
   * most tasks have no webhook.
   */
  const deliverAll = async (key: TaskKey, events: WaitingEvent[]) => {
    while (events.length > 0) {
      if (!(await webhooks.has(key))) return void events.splice(0);
      for (let remaining = events.length; remaining > 0 && events.length > 0; remaining -= 1) {
        const event = notificationOf(...events[0]!);
        if (event !== null) await webhooks.deliver(key, event.priced(await generationOf(key, event.ended)));
        events.shift();
      }
    }
  };

  const drain = async (name: string, key: TaskKey, events: WaitingEvent[]) => {
    for (let failures = 0; events.length > 0; failures += 1) {
      try {
        await deliverAll(key, events);
      } catch (error) {
        onError(error);
        const pauseMs = PAUSES_MS[failures];
        if (pauseMs === undefined) break;
        await new Promise((resolve) => setTimeout(resolve, pauseMs).unref());
      }
    }
    waiting.delete(name);
  };

  return (key, { version }, value) => {
    const event: WaitingEvent = [version, value];
    // The id of a task may hold any character, so it comes last.
    const name = `${key.primitive} ${key.service} ${key.taskId}`;
    const events = waiting.get(name);
    if (events) {
      // The first event is being delivered, so the second is dropped.
      if (events.length >= WAITING_MAX) events.splice(1, 1);
      events.push(event);
      return;
    }
    const first = [event];
    waiting.set(name, first);
    void drain(name, key, first);
  };
}

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
  { text, value, large }: { readonly text: string; readonly value: unknown; readonly large: LargeStrings | null },
): unknown {
  const event = large === null ? null : eventOf(version, value);
  if (event === null) return exactValue(text, value);
  const short = shortened(event);
  return short === null ? null : wrapped(version, short);
}

interface Notification extends WebhookEvent {
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
  const subset = Object.fromEntries(
    members.flatMap((name) => (value[name] === undefined ? [] : [[name, value[name]]])),
  );
  const { metadata } = value;
  const generation = isObject(metadata) ? (metadata['tollgate/generation'] as JsonObject | undefined) : undefined;
  return withGeneration({ kind, value: { ...subset, status: withoutMessage(value['status']) } }, generation ?? null);
}

function withoutMessage(status: unknown): JsonObject {
  if (!isObject(status)) return {};
  const { state, timestamp } = status;
  return { state, ...(timestamp === undefined ? {} : { timestamp }) };
}
