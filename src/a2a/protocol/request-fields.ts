import {
  interpretedFields,
  type InterpretedFieldsAt,
  type JsonObject,
  ambiguousKeyAt,
  RawJsonError,
  uniqueMembersOf,
  isObject,
} from '#wire';
import { namesPrivateHost } from '#security';
import { MAX_COST_META } from '#call';
import { X402 } from '../wire/protocol.ts';
import { A2aError } from '../wire/errors.ts';
import { protoName } from '../wire/rest.ts';

/*
 * The fields of a request that the gateway reads, by their names in both versions and bindings: proto names become JSON
 * names, and names and values that an agent could read otherwise than the gateway are refused.
 */

const METADATA = interpretedFields([MAX_COST_META, 'tollgate/agent', 'tollgate/run', ...Object.values(X402)]);
const PUSH = interpretedFields(['id', 'taskId', 'url', 'token', 'authentication', 'pushNotificationConfig']);
const AUTHENTICATION = interpretedFields(['scheme', 'schemes', 'credentials']);
const pushAt = (...path: readonly string[]): InterpretedFieldsAt => [
  [path, PUSH],
  [[...path, 'authentication'], AUTHENTICATION],
];
const MESSAGE = interpretedFields([
  'kind',
  'messageId',
  'taskId',
  'contextId',
  'referenceTaskIds',
  'role',
  'parts',
  'content',
  'extensions',
  'metadata',
]);
const PART = interpretedFields(['kind', 'text', 'file', 'data', 'raw', 'url', 'filename', 'mediaType', 'metadata']);
const FILE = interpretedFields(['bytes', 'uri', 'fileWithBytes', 'fileWithUri', 'name', 'mimeType']);

/** Names of the protocol by the path of their object, outermost first. Members of data and metadata are free. */
const PROTOCOL_NAMES: InterpretedFieldsAt = [
  [
    [],
    interpretedFields([
      // A bare body must not have members that look like a JSON-RPC envelope.
      ...'jsonrpc method params result error'.split(' '),
      ...'id taskId contextId tenant message request metadata configuration name'.split(' '),
      ...'pushNotificationConfig taskPushNotificationConfig pushNotificationConfigId url token authentication'.split(
        ' ',
      ),
      ...'historyLength status pageSize pageToken statusTimestampAfter includeArtifacts config configId'.split(' '),
    ]),
  ],
  [['config'], interpretedFields(['pushNotificationConfig'])],
  [['message'], MESSAGE],
  [['message', 'parts', '*'], PART],
  [['message', 'parts', '*', 'file'], FILE],
  [
    ['configuration'],
    interpretedFields([
      ...'acceptedOutputModes historyLength blocking returnImmediately'.split(' '),
      ...'pushNotificationConfig taskPushNotificationConfig pushNotification'.split(' '),
    ]),
  ],
  [['authentication'], AUTHENTICATION],
  ...pushAt('configuration', 'pushNotificationConfig'),
  ...pushAt('configuration', 'taskPushNotificationConfig'),
  ...pushAt('pushNotificationConfig'),
  ...pushAt('config', 'pushNotificationConfig'),
];

/**
 * The members of parameters, of both versions and bindings, that the gateway reads. It forwards all other members
 * unchanged.
 */
const INTERPRETED_FIELDS: InterpretedFieldsAt = [
  ...PROTOCOL_NAMES,
  [['metadata'], METADATA],
  [['message', 'metadata'], METADATA],
];

/**
 * Refuses member names that nearly match a name that the gateway reads. An agent could read them as that member and so
 * disagree with the gateway about the task or the cost of a message. Throws A2aError `InvalidParams`.
 */
export function refuseAmbiguousKeys(params: JsonObject): void {
  const fault = ambiguousKeyAt(params, INTERPRETED_FIELDS);
  if (fault !== null) throw new A2aError('InvalidParams', fault.message, { param: fault.param });
}

/**
 * Refuses parameters with duplicate keys at any level, because readers differ in which of the values they take. Throws
 * A2aError `InvalidParams`.
 */
export function refuseRepeatedKeys(paramsText: string): void {
  try {
    uniqueMembersOf(paramsText);
  } catch (error) {
    if (!(error instanceof RawJsonError)) throw error;
    throw new A2aError('InvalidParams', `The parameters are ambiguous: ${error.message}`);
  }
}

/** 0.3 has other names for these members over HTTP+JSON. */
const OTHER_STEPS: ReadonlyMap<string, string> = new Map([
  ['message', 'request'],
  ['parts', 'content'],
]);

/** The canonical names of the fields whose proto name differs, in the objects of a request, outermost first. */
const PLACES = PROTOCOL_NAMES.flatMap(([path, { exact }]) => {
  const renamed = [...exact].map((name) => [protoName(name), name] as const).filter(([proto, name]) => proto !== name);
  const names = new Map(renamed);
  const paths = path.reduce<readonly (readonly string[])[]>(
    (before, step) => {
      const steps = [step, ...(OTHER_STEPS.has(step) ? [OTHER_STEPS.get(step)!] : [])];
      return before.flatMap((begun) => steps.map((next) => [...begun, next]));
    },
    [[]],
  );
  return names.size === 0 ? [] : paths.map((one) => ({ path: one, names }));
});
const ANY_PROTO_NAME = new RegExp(
  `"(?:${[...new Set(PLACES.flatMap(({ names }) => [...names.keys()]))].join('|')})"\\s*:`,
);

/**
 * Replaces proto names with canonical names. Readers of ProtoJSON accept both, and both of the protocol's test kits
 * send both. The renamed parameters are forwarded, so that the agent reads the same as the gateway. Returns the same
 * object if no name changes. `text` is JSON text that contains the parameters: if it has no proto name, the search is
 * skipped. Throws A2aError `InvalidParams` if a member is present under both names.
 */
export function withCanonicalNames(params: JsonObject, text: string): JsonObject {
  if (!ANY_PROTO_NAME.test(text)) return params;
  return PLACES.reduce((renamed, { path, names }) => renameAt(renamed, path, names, '') as JsonObject, params);
}

function renameAt(value: unknown, path: readonly string[], names: ReadonlyMap<string, string>, at: string): unknown {
  const [step, ...rest] = path;
  if (step === '*')
    return Array.isArray(value)
      ? value.map((one: unknown, index) => renameAt(one, rest, names, `${at}[${index}]`))
      : value;
  if (!isObject(value)) return value;
  if (step === undefined) return renameIn(value, names, at);
  if (!isObject(value[step]) && !Array.isArray(value[step])) return value;
  const inner = renameAt(value[step], rest, names, at === '' ? step : `${at}.${step}`);
  return inner === value[step] ? value : { ...value, [step]: inner };
}

function renameIn(object: JsonObject, names: ReadonlyMap<string, string>, at: string): JsonObject {
  const keys = Object.keys(object).filter((key) => names.has(key));
  if (keys.length === 0) return object;
  const both = keys.find((key) => Object.hasOwn(object, names.get(key)!));
  if (both !== undefined) {
    const [param, path] = [names.get(both)!, at === '' ? '' : `${at}.`];
    throw new A2aError('InvalidParams', `${path}${both} and ${path}${param} are the same field: send only ${param}`, {
      param: `${path}${param}`,
    });
  }
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [names.get(key) ?? key, value]));
}

/**
 * Refuses a message with a file URL on a host of a private network, because the agent would fetch it from within its
 * own network. The agent must check the IP addresses that public names resolve to. Throws A2aError `InvalidParams`.
 */
export function refusePrivateFiles({ message }: JsonObject): void {
  const parts: unknown = isObject(message) ? message['parts'] : undefined;
  if (!Array.isArray(parts)) return;
  for (const [index, part] of parts.entries()) {
    if (!isObject(part)) continue;
    const { url, file } = part;
    const { uri, fileWithUri } = isObject(file) ? file : NO_FILE;
    const addresses = { url, 'file.uri': uri, 'file.fileWithUri': fileWithUri };
    const address = Object.entries(addresses).find(([, address]) => isPrivate(address));
    if (address === undefined) continue;
    const param = `message.parts[${index}].${address[0]}`;
    throw new A2aError('InvalidParams', `${param} must name a host of the public internet`, { param });
  }
}

const NO_FILE: JsonObject = {};
const isPrivate = (address: unknown): boolean => typeof address === 'string' && namesPrivateHost(address);
