import type { JsonObject } from '#wire';
import type { TaskKey, Webhooks } from '#tasks';
import type { A2aVersion } from '../wire/protocol.ts';
import { notificationOf, type Notification } from './notification.ts';

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
/** Pauses between the attempts while the database cannot be reached. */
const PAUSES_MS = [1_000, 5_000, 15_000] as const;

export function createPushRelay({ webhooks, generationOf, onError }: PushRelayOptions): Notify {
  const waiting = new Map<string, Notification[]>();

  /**
   * Delivers the waiting events. It checks for a webhook once for each group of events and not for each event, because
   * most tasks have no webhook.
   */
  const deliverAll = async (key: TaskKey, events: Notification[]) => {
    while (events.length > 0) {
      if (!(await webhooks.has(key))) return void events.splice(0);
      for (let left = events.length; left > 0 && events.length > 0; left -= 1) {
        const event = events[0]!;
        await webhooks.deliver(key, event.priced(await generationOf(key, event.ended)));
        events.shift();
      }
    }
  };

  const drain = async (name: string, key: TaskKey, events: Notification[]) => {
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
    const event = notificationOf(version, value);
    if (event === null) return;
    const name = JSON.stringify([key.primitive, key.service, key.taskId]);
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
