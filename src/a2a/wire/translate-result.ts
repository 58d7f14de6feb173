import { isObject } from '#wire';
import { each, editMembers, onObject, type Edit } from './edit-members.ts';
import { eventOf, WRAPPERS, type EventKind } from './event.ts';
import type { Operation } from './methods.ts';
import { cardTo03, cardTo10 } from './translate-card.ts';
import { messageTo03, messageTo10 } from './translate-message.ts';
import { pushListTo03, pushListTo10, pushTo03, pushTo10 } from './translate-push.ts';
import {
  artifactUpdateTo03,
  artifactUpdateTo10,
  statusUpdateTo03,
  statusUpdateTo10,
  taskTo03,
  taskTo10,
} from './translate-task.ts';
import type { A2aVersion } from './version.ts';

const EVENT_TO_10: Readonly<Record<EventKind, Edit>> = {
  task: taskTo10,
  message: messageTo10,
  status: statusUpdateTo10,
  artifact: artifactUpdateTo10,
};
const EVENT_TO_03: Readonly<Record<EventKind, Edit>> = {
  task: taskTo03,
  message: messageTo03,
  status: statusUpdateTo03,
  artifact: artifactUpdateTo03,
};

/**
 * Translates a stream event, the body of a push notification or a result of a send to another version. 1.0 wraps it by
 * its kind; 0.3 has a member `kind`. A value that is not an event stays unchanged.
 */
export function translateEvent(from: A2aVersion, target: A2aVersion, value: unknown): unknown {
  if (from === target) return value;
  const event = eventOf(from, value);
  if (event === null) return value;
  if (target === '0.3') return EVENT_TO_03[event.kind](event.value);
  return { [WRAPPERS[event.kind]]: EVENT_TO_10[event.kind](event.value) };
}

const TO_10: Readonly<Partial<Record<Operation, Edit>>> = {
  get: taskTo10,
  cancel: taskTo10,
  'push-set': pushTo10,
  'push-get': pushTo10,
  'push-list': pushListTo10,
  'push-delete': (result) => result ?? {},
  card: cardTo10,
};

const TO_03: Readonly<Partial<Record<Operation, Edit>>> = {
  get: taskTo03,
  list: onObject((page) => editMembers(page, { tasks: each(taskTo03) })),
  cancel: taskTo03,
  'push-set': pushTo03,
  'push-get': pushTo03,
  'push-list': pushListTo03,
  'push-delete': (result) => (isObject(result) ? null : result),
  card: cardTo03,
};

/**
 * Translates the result of an operation to another version; for a stream, each event. Never throws: a value of another
 * shape stays unchanged. The README of this module lists the losses.
 */
export function translateResult(operation: Operation, from: A2aVersion, target: A2aVersion, result: unknown): unknown {
  if (from === target) return result;
  const edit = (target === '1.0' ? TO_10 : TO_03)[operation];
  return edit === undefined ? translateEvent(from, target, result) : edit(result);
}
