import { isObject, type JsonObject } from '#wire';
import { drop, each, editMembers, isSet, onObject, type Edit } from './edit-json.ts';
import { eventOf, WRAPPERS, type EventKind, stateName, stateOf } from './events.ts';
import type { A2aOperation } from './protocol.ts';
import type { RestInput, RestMatch } from './rest.ts';
import { roleTo03, roleTo10 } from './translate.ts';
import { requirementsTo10, schemesTo10 } from './translate-card.ts';

/*
 * The HTTP+JSON binding of 0.3 has another form than its JSON-RPC. Clients and servers of every official SDK exchange
 * the ProtoJSON of 0.3's `a2a.proto` there (`content` for `parts`, `ROLE_USER`, `file.fileWithUri`, events in
 * wrappers). This file translates it to the JSON-RPC form of 0.3 and back.
 */

const partFrom: Edit = onObject((part) => {
  const { text, file, data, ...others } = part;
  if (isSet(part['kind'])) return part;
  if (isSet(text)) return { kind: 'text', text, ...others };
  if (isObject(file))
    return { kind: 'file', file: editMembers(file, { fileWithBytes: ['bytes'], fileWithUri: ['uri'] }), ...others };
  return isObject(data) ? { kind: 'data', data: data['data'] ?? {}, ...others } : part;
});

/**
 * The proto names the parts `content`; the text of the specification names them `parts`, which counts if `content` is
 * absent. A sent message without a role is the user's.
 */
const messageFrom: Edit = onObject((message) => ({
  kind: 'message',
  role: 'user',
  ...editMembers(message, {
    kind: drop,
    role: roleTo03,
    ...(isSet(message['content']) ? { content: ['parts', each(partFrom)] } : { parts: each(partFrom) }),
  }),
}));

/** `blocking` is false by default, because ProtoJSON leaves out false. */
const configurationFrom: Edit = onObject((configuration) => ({
  blocking: false,
  ...editMembers(configuration, { pushNotification: ['pushNotificationConfig'] }),
}));

/** The parameters of a 0.3 request over HTTP+JSON in the form of JSON-RPC, or a text that names the fault. */
export function legacyRestParams({ operation, ids }: RestMatch, { query = {}, body }: RestInput): JsonObject | string {
  const { id = '', configId = '' } = ids;
  switch (operation) {
    case 'send':
    case 'stream':
      return isObject(body) ? sendFrom(body) : 'the body must be a JSON object';
    case 'get':
      return taskFrom(id, query['historyLength'], query['history_length']);
    case 'push-set':
      return isObject(body) ? pushFrom(id, body) : 'the body must be a JSON object';
    case 'push-get':
    case 'push-delete':
      return { id, pushNotificationConfigId: configId };
    case 'card':
      return {};
    default:
      return { id };
  }
}

/**
 * The body is either the request in the proto's form, with the configuration in its `config`, or only that
 * configuration.
 */
function pushFrom(taskId: string, { config, configId, ...body }: JsonObject): JsonObject {
  const { pushNotificationConfig: inner } = isObject(config) ? config : body;
  const id = isObject(inner) && !isSet(inner['id']) && typeof configId === 'string' ? { id: configId } : {};
  return { taskId, pushNotificationConfig: isObject(inner) ? { ...inner, ...id } : inner };
}

function sendFrom(body: JsonObject): JsonObject {
  const { message, request, ...others } = body;
  return {
    message: messageFrom(isSet(message) ? message : request),
    ...editMembers(others, { configuration: configurationFrom, tenant: drop }),
  };
}

function taskFrom(id: string, canonical: unknown, proto: unknown): JsonObject | string {
  if (canonical !== undefined && proto !== undefined)
    return 'historyLength and history_length are the same field: send only historyLength';
  const historyLength = canonical ?? proto;
  if (historyLength === undefined || historyLength === '') return { id };
  return typeof historyLength === 'string' && /^\d{1,9}$/.test(historyLength)
    ? { id, historyLength: Number(historyLength) }
    : 'historyLength must be a whole number, once';
}

const partOf: Edit = onObject((part) => {
  const { kind, file, data, ...others } = part;
  if (kind === 'file' && isObject(file))
    return { file: editMembers(file, { bytes: ['fileWithBytes'], uri: ['fileWithUri'] }), ...others };
  return kind === 'data' ? { data: { data }, ...others } : editMembers(part, { kind: drop });
});

const messageOf: Edit = onObject((message) =>
  editMembers(message, { kind: drop, role: roleTo10, parts: ['content', each(partOf)] }),
);
const artifactOf: Edit = onObject((artifact) => editMembers(artifact, { parts: each(partOf) }));

/** Only the enum of 0.3 writes CANCELLED with two L. */
const stateIn03 = (state: unknown): string =>
  stateOf(state) === 'canceled' ? 'TASK_STATE_CANCELLED' : stateName(stateOf(state));

const statusOf: Edit = onObject((status) => editMembers(status, { state: stateIn03, message: messageOf }));
const taskOf: Edit = onObject((task) =>
  editMembers(task, { kind: drop, status: statusOf, artifacts: each(artifactOf), history: each(messageOf) }),
);

const EVENTS: Readonly<Record<EventKind, Edit>> = {
  task: taskOf,
  message: messageOf,
  status: onObject((update) => editMembers(update, { kind: drop, status: statusOf })),
  artifact: onObject((update) => editMembers(update, { kind: drop, artifact: artifactOf })),
};

const configOf: Edit = onObject((config) => {
  const { taskId, pushNotificationConfig: inner } = config;
  const id = isObject(inner) && typeof inner['id'] === 'string' ? inner['id'] : '';
  return {
    name: `tasks/${typeof taskId === 'string' ? taskId : ''}/pushNotificationConfigs/${id}`,
    pushNotificationConfig: inner,
  };
});

// The signature covers the JSON-RPC form of the card, so it is dropped here.
const cardOf: Edit = onObject((card) =>
  editMembers(card, {
    signatures: drop,
    securitySchemes: schemesTo10,
    security: requirementsTo10,
    skills: each(onObject((skill) => editMembers(skill, { security: requirementsTo10 }))),
  }),
);

/** Turns a result or a stream event of 0.3 into its HTTP+JSON form. A value of another shape stays unchanged. */
export function legacyRestResult(operation: A2aOperation, result: unknown): unknown {
  switch (operation) {
    case 'get':
    case 'cancel':
      return taskOf(result);
    case 'push-set':
    case 'push-get':
      return configOf(result);
    case 'push-list':
      return Array.isArray(result) ? { configs: result.map((one: unknown) => configOf(one)) } : result;
    case 'push-delete':
      return {};
    case 'card':
      return cardOf(result);
    default: {
      const event = eventOf('0.3', result);
      return event === null ? result : { [WRAPPERS[event.kind]]: EVENTS[event.kind](event.value) };
    }
  }
}
