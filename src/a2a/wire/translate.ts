import { isObject, type JsonObject, isExactNumber } from '#wire';
import { drop, editMembers, onObject, type Edit, type Edits, each, isSet } from './edit-json.ts';
import type { A2aOperation, A2aVersion } from './protocol.ts';
import { inlinePushTo03, inlinePushTo10, pushTo03, pushTo10, pushListTo03, pushListTo10 } from './push-config.ts';
import { eventOf, WRAPPERS, type EventKind, isInterrupted, isTerminal, stateName, stateOf } from './events.ts';
import { cardTo03, cardTo10 } from './translate-card.ts';

/*
 * Translation between the JSON of A2A 0.3 and 1.0: parts, messages, tasks, updates, and the parameters and results of
 * each operation. Nothing here throws. A value of another shape stays unchanged, so that its reader can refuse it.
 */

/**
 * Translates the parameters of an operation to another version. Never throws: members of another shape stay unchanged,
 * so that the target can refuse them. `methodOf` tells whether the target has the operation. The README of this module
 * lists the losses.
 */
export function translateParams(
  operation: A2aOperation,
  from: A2aVersion,
  target: A2aVersion,
  params: unknown,
): unknown {
  if (from === target) return params;
  return (target === '1.0' ? PARAMS_TO_10 : PARAMS_TO_03)[operation](params);
}

/**
 * Translates the result of an operation to another version; for a stream, each event. Never throws: a value of another
 * shape stays unchanged. The README of this module lists the losses.
 */
export function translateResult(
  operation: A2aOperation,
  from: A2aVersion,
  target: A2aVersion,
  result: unknown,
): unknown {
  if (from === target) return result;
  const edit = (target === '1.0' ? RESULT_TO_10 : RESULT_TO_03)[operation];
  return edit === undefined ? translateEvent(from, target, result) : edit(result);
}

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

/**
 * Data in 0.3 must be an object. This member of `metadata` marks another value, which is wrapped in `data.value`. The
 * official SDKs write and read the mark.
 */
const WRAPPED = 'data_part_compat';

/**
 * Translates a part from 0.3 to 1.0. The content becomes a member of the part, and so do the members of `file`. A value
 * that is not a part of 0.3 stays unchanged.
 */
function partTo10(part: unknown): unknown {
  if (!isObject(part)) return part;
  const { kind, text, raw: _raw, url: _url, data, file, ...others } = part;
  if (isKind(kind, 'text', text)) return { text, ...others };
  if (isKind(kind, 'data', data)) return unwrapped(data, others);
  if (!isKind(kind, 'file', file) || !isObject(file)) return part;
  const { bytes, uri, mimeType, name } = file;
  if (!isSet(bytes) && !isSet(uri)) return part;
  return {
    ...(isSet(bytes) ? { raw: bytes } : { url: uri }),
    ...others,
    ...(isSet(name) ? { filename: name } : {}),
    ...(isSet(mimeType) ? { mediaType: mimeType } : {}),
  };
}

const isKind = (kind: unknown, kindName: string, content: unknown): boolean =>
  (kind === kindName || !isSet(kind)) && content !== undefined;

function unwrapped(data: unknown, others: JsonObject): JsonObject {
  const { metadata } = others;
  if (!isObject(metadata) || metadata[WRAPPED] !== true) return { data, ...others };
  const { [WRAPPED]: _flag, ...rest } = metadata;
  const { metadata: _metadata, ...members } = others;
  const value: unknown = isObject(data) && Object.hasOwn(data, 'value') ? data['value'] : data;
  return { data: value, ...members, ...(Object.keys(rest).length > 0 ? { metadata: rest } : {}) };
}

/**
 * Translates a part from 1.0 to 0.3. 0.3 has no names for `filename` and `mediaType` of texts and data, so they keep
 * theirs. A value that is not a part of 1.0 stays unchanged.
 */
function partTo03(part: unknown): unknown {
  if (!isObject(part)) return part;
  const { kind: _kind, text, raw, url, data, filename, mediaType, ...others } = part;
  const described = { ...(isSet(filename) ? { filename } : {}), ...(isSet(mediaType) ? { mediaType } : {}) };
  if (isSet(text)) return { kind: 'text', text, ...described, ...others };
  if (isSet(raw) || isSet(url)) {
    const file = {
      ...(isSet(raw) ? { bytes: raw } : { uri: url }),
      ...(isSet(mediaType) && mediaType !== '' ? { mimeType: mediaType } : {}),
      ...(isSet(filename) && filename !== '' ? { name: filename } : {}),
    };
    return { ...others, kind: 'file', file };
  }
  if (data === undefined) return part;
  return isObject(data) && !isExactNumber(data)
    ? { kind: 'data', data, ...described, ...others }
    : { kind: 'data', data: { value: data }, ...described, ...flagged(others) };
}

function flagged(others: JsonObject): JsonObject {
  const { metadata } = others;
  return { ...others, metadata: { ...(isObject(metadata) ? metadata : {}), [WRAPPED]: true } };
}

const ROLES_TO_10: ReadonlyMap<unknown, string> = new Map([
  ['user', 'ROLE_USER'],
  ['agent', 'ROLE_AGENT'],
]);

/**
 * Roles of 1.0 by name and by number, because ProtoJSON allows both. 0.3 has no unspecified role, so it becomes the
 * agent's.
 */
const ROLES_TO_03: ReadonlyMap<unknown, string> = new Map<unknown, string>([
  ['ROLE_USER', 'user'],
  [1, 'user'],
  ['ROLE_AGENT', 'agent'],
  [2, 'agent'],
  ['ROLE_UNSPECIFIED', 'agent'],
  [0, 'agent'],
]);

/** An unknown role stays unchanged. */
export const roleTo10: Edit = (role) => ROLES_TO_10.get(role) ?? role;
export const roleTo03: Edit = (role) => ROLES_TO_03.get(role) ?? role;

/** Translates a message from 0.3 to 1.0, in any place: in parameters, in a history, in a status, as a result. */
export const messageTo10: Edit = onObject((message) =>
  editMembers(message, { kind: drop, role: roleTo10, parts: each(partTo10) }),
);

/** Translates a message from 1.0 to 0.3. ProtoJSON leaves out empty members, but 0.3 requires `role` and `parts`. */
const messageTo03: Edit = onObject((message) => ({
  kind: 'message',
  ...withDefaults(editMembers(message, { kind: drop, role: roleTo03, parts: each(partTo03) }), {
    role: 'agent',
    parts: [],
  }),
}));

const artifactTo10: Edit = onObject((artifact) => editMembers(artifact, { parts: each(partTo10) }));

const artifactTo03: Edit = onObject((artifact) =>
  withDefaults(editMembers(artifact, { parts: each(partTo03) }), { parts: [] }),
);

/**
 * Adds members that the target version requires and the source may leave out. They come last, so that the order of the
 * other members stays.
 */
function withDefaults(object: JsonObject, defaults: JsonObject): JsonObject {
  const missing = Object.entries(defaults).filter(([name]) => !Object.hasOwn(object, name));
  return missing.length === 0 ? object : { ...object, ...Object.fromEntries(missing) };
}

const statusTo10: Edit = onObject((status) =>
  editMembers(status, { state: (state) => stateName(stateOf(state)), message: messageTo10 }),
);

const statusTo03: Edit = onObject((status) =>
  withDefaults(editMembers(status, { state: stateOf, message: messageTo03 }), { state: 'unknown' }),
);

export const taskTo10: Edit = onObject((task) =>
  editMembers(task, { kind: drop, status: statusTo10, artifacts: each(artifactTo10), history: each(messageTo10) }),
);

/** Translates a task from 1.0 to 0.3, which requires a context and a status. */
export const taskTo03: Edit = onObject((task) => ({
  kind: 'task',
  ...withDefaults(
    editMembers(task, { kind: drop, status: statusTo03, artifacts: each(artifactTo03), history: each(messageTo03) }),
    {
      contextId: '',
      status: { state: 'unknown' },
    },
  ),
}));

/** Translates a status update from 0.3 to 1.0. 1.0 has no `final`: the state and the end of the stream replace it. */
const statusUpdateTo10: Edit = onObject((update) =>
  editMembers(update, { kind: drop, final: drop, status: statusTo10 }),
);

/**
 * Translates a status update from 1.0 to 0.3. Clients of 0.3 read `final` as the end of the stream. 1.0 ends a stream
 * at a terminal and at an interrupted state (sections 3.1.2 and 11.7).
 */
const statusUpdateTo03: Edit = onObject((update) => ({
  kind: 'status-update',
  ...withDefaults(editMembers(update, { kind: drop, final: drop, status: statusTo03 }), {
    contextId: '',
    status: { state: 'unknown' },
  }),
  final: endsStream(update),
}));

function endsStream({ status }: JsonObject): boolean {
  const state = stateOf(isObject(status) ? status['state'] : undefined);
  return isTerminal(state) || isInterrupted(state);
}

const artifactUpdateTo10: Edit = onObject((update) => editMembers(update, { kind: drop, artifact: artifactTo10 }));

const artifactUpdateTo03: Edit = onObject((update) => ({
  kind: 'artifact-update',
  ...withDefaults(editMembers(update, { kind: drop, artifact: artifactTo03 }), { contextId: '' }),
}));

const not: Edit = (value) => (typeof value === 'boolean' ? !value : value);

const configurationTo10: Edit = onObject((configuration) =>
  editMembers(configuration, {
    blocking: ['returnImmediately', not],
    pushNotificationConfig: ['taskPushNotificationConfig', inlinePushTo10],
  }),
);

/**
 * A request of 1.0 waits by default. Servers of 0.3 differ in their default for `blocking`, so it is always written.
 */
const configurationTo03: Edit = onObject((configuration) => ({
  ...(typeof configuration['returnImmediately'] === 'boolean' ? {} : { blocking: true }),
  ...editMembers(configuration, {
    returnImmediately: ['blocking', (value) => (typeof value === 'boolean' ? !value : undefined)],
    taskPushNotificationConfig: ['pushNotificationConfig', inlinePushTo03],
  }),
}));

const to = (edits: Edits): Edit => onObject((params) => editMembers(params, edits));

const SEND_TO_10 = to({ message: messageTo10, configuration: configurationTo10, tenant: drop });
const SEND_TO_03: Edit = onObject((params) => {
  const sent = editMembers(params, { message: messageTo03, configuration: configurationTo03, tenant: drop });
  return isObject(sent['configuration']) ? sent : { ...sent, configuration: { blocking: true } };
});

const CONFIG_OF_TASK_TO_10 = to({ id: ['taskId'], pushNotificationConfigId: ['id'], metadata: drop, tenant: drop });
const CONFIG_OF_TASK_TO_03 = to({ taskId: ['id'], id: ['pushNotificationConfigId'], tenant: drop });

const PARAMS_TO_10: Readonly<Record<A2aOperation, Edit>> = {
  send: SEND_TO_10,
  stream: SEND_TO_10,
  get: to({ metadata: drop, tenant: drop }),
  list: to({}),
  cancel: to({ tenant: drop }),
  subscribe: to({ metadata: drop, tenant: drop }),
  'push-set': pushTo10,
  'push-get': CONFIG_OF_TASK_TO_10,
  'push-list': CONFIG_OF_TASK_TO_10,
  'push-delete': CONFIG_OF_TASK_TO_10,
  card: to({ tenant: drop }),
};

const PARAMS_TO_03: Readonly<Record<A2aOperation, Edit>> = {
  send: SEND_TO_03,
  stream: SEND_TO_03,
  get: to({ tenant: drop }),
  list: to({ tenant: drop }),
  cancel: to({ tenant: drop }),
  subscribe: to({ tenant: drop }),
  'push-set': pushTo03,
  'push-get': CONFIG_OF_TASK_TO_03,
  'push-list': to({ taskId: ['id'], pageSize: drop, pageToken: drop, tenant: drop }),
  'push-delete': CONFIG_OF_TASK_TO_03,
  card: to({ tenant: drop }),
};

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

const RESULT_TO_10: Readonly<Partial<Record<A2aOperation, Edit>>> = {
  get: taskTo10,
  cancel: taskTo10,
  'push-set': pushTo10,
  'push-get': pushTo10,
  'push-list': pushListTo10,
  'push-delete': (result) => result ?? {},
  card: cardTo10,
};

const RESULT_TO_03: Readonly<Partial<Record<A2aOperation, Edit>>> = {
  get: taskTo03,
  list: onObject((page) => editMembers(page, { tasks: each(taskTo03) })),
  cancel: taskTo03,
  'push-set': pushTo03,
  'push-get': pushTo03,
  'push-list': pushListTo03,
  'push-delete': (result) => (isObject(result) ? null : result),
  card: cardTo03,
};
