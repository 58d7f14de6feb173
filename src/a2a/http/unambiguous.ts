import {
  interpretedFields,
  type InterpretedFieldsAt,
  type JsonObject,
  ambiguousKeyAt,
  RawJsonError,
  uniqueMembersOf,
} from '#wire';
import { MAX_COST_META } from '#gateway';
import { X402 } from './paid-message.ts';
import { A2aError } from '../wire/errors.ts';

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
export const PROTOCOL_NAMES: InterpretedFieldsAt = [
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
