import { isObject, type JsonObject } from '#wire';
import { readPushConfig, type PushConfig } from './push-config.ts';
import type { A2aVersion } from './protocol.ts';

export interface SendParams {
  readonly messageId: string;
  /** The task that the message continues; null for a new one. */
  readonly taskId: string | null;
  readonly contextId: string | null;
  readonly referenceTaskIds: readonly string[];
  readonly texts: readonly string[];
  /** The number of file parts, by value or by reference, and of data parts. */
  readonly files: number;
  readonly data: number;
  /** Whether the reply waits for the end of the work. Both versions wait by default. */
  readonly blocking: boolean;
  readonly historyLength: number | null;
  readonly pushConfig: PushConfig | null;
  readonly acceptedOutputModes: readonly string[];
}

export const ID_CHARS_MAX = 256;
const PARTS_MAX = 1_000;
const MODES_MAX = 100;
const REFERENCES_MAX = 100;

class Fault extends Error {}

/**
 * Reads the parameters of `message/send`, `SendMessage` and their streaming forms. Returns a text that names the wrong
 * member and the right value if they are not valid. Both versions require `messageId`, `role` (user) and `parts` (at
 * least one). Unknown members and unknown kinds of parts are accepted.
 */
export function readSend(version: A2aVersion, params: unknown): SendParams | string {
  try {
    return parseSend(version, params);
  } catch (error) {
    if (error instanceof Fault) return error.message;
    throw error;
  }
}

function parseSend(version: A2aVersion, params: unknown): SendParams {
  if (!isObject(params)) throw new Fault('params must be an object with a message');
  const message = params['message'];
  if (!isObject(message)) throw new Fault('message must be an object');
  const messageId = readId(message, 'messageId');
  if (messageId === null) throw new Fault(`message.messageId must be a string of 1 to ${ID_CHARS_MAX} characters`);
  const role = message['role'];
  // An agent reads a role that its version does not know as an absent role.
  if (version === '1.0' ? role !== 'ROLE_USER' && role !== 1 : role !== 'user') {
    throw new Fault(`message.role must be "${version === '1.0' ? 'ROLE_USER' : 'user'}"`);
  }
  optionalObject(params, 'metadata');
  optionalObject(message, 'metadata', 'message.');
  const configuration = optionalObject(params, 'configuration') ?? {};
  return {
    messageId,
    taskId: readId(message, 'taskId'),
    contextId: readId(message, 'contextId'),
    referenceTaskIds: readStrings(message['referenceTaskIds'], 'message.referenceTaskIds', REFERENCES_MAX),
    ...readParts(version, message['parts']),
    ...readConfiguration(version, configuration),
  };
}

function readConfiguration(
  version: A2aVersion,
  configuration: JsonObject,
): Pick<SendParams, 'blocking' | 'historyLength' | 'pushConfig' | 'acceptedOutputModes'> {
  const waits = version === '1.0' ? configuration['returnImmediately'] : configuration['blocking'];
  const name = version === '1.0' ? 'returnImmediately' : 'blocking';
  if (waits !== undefined && waits !== null && typeof waits !== 'boolean')
    throw new Fault(`configuration.${name} must be true or false`);
  return {
    blocking: version === '1.0' ? waits !== true : waits !== false,
    historyLength: readHistoryLength(configuration['historyLength']),
    pushConfig: readInlinePush(version, configuration),
    acceptedOutputModes: readStrings(
      configuration['acceptedOutputModes'],
      'configuration.acceptedOutputModes',
      MODES_MAX,
    ),
  };
}

function readInlinePush(version: A2aVersion, configuration: JsonObject): PushConfig | null {
  const name = version === '1.0' ? 'taskPushNotificationConfig' : 'pushNotificationConfig';
  const config = optionalObject(configuration, name, 'configuration.');
  if (config === null) return null;
  const read = readPushConfig(version, version === '1.0' ? config : { pushNotificationConfig: config }, {
    inline: true,
  });
  if (typeof read === 'string') throw new Fault(`configuration.${read}`);
  return read;
}

function readHistoryLength(value: unknown): number | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0)
    throw new Fault('configuration.historyLength must be a whole number of at least 0');
  return value;
}

function readParts(version: A2aVersion, parts: unknown): Pick<SendParams, 'texts' | 'files' | 'data'> {
  if (!Array.isArray(parts) || parts.length === 0)
    throw new Fault('message.parts must be an array of at least one part');
  if (parts.length > PARTS_MAX) throw new Fault(`message.parts must have at most ${PARTS_MAX} parts`);
  const texts: string[] = [];
  let [files, data] = [0, 0];
  parts.forEach((part: unknown, index) => {
    const kind = kindOfPart(version, part);
    if (typeof kind === 'object') throw new Fault(`message.parts[${index}]${kind.fault}`);
    if (kind === 'text') texts.push((part as { text: string }).text);
    else if (kind === 'file') files += 1;
    else if (kind === 'data') data += 1;
  });
  return { texts, files, data };
}

const CONTENTS = ['text', 'raw', 'url', 'data'] as const;

function kindOfPart(
  version: A2aVersion,
  part: unknown,
): 'text' | 'file' | 'data' | 'other' | { readonly fault: string } {
  if (!isObject(part)) return { fault: ' must be an object' };
  if (version === '0.3') return kindOfLegacyPart(part);
  // Only `data` may be null, because null is a JSON value there. In the other members null means absent.
  const contents = CONTENTS.filter((name) =>
    name === 'data' ? Object.hasOwn(part, name) : part[name] !== undefined && part[name] !== null,
  );
  if (contents.length > 1)
    return { fault: ` must have one of ${CONTENTS.join(', ')}, not both ${contents[0]} and ${contents[1]}` };
  const [content] = contents;
  if (content === undefined)
    return {
      fault: ` must have one of text, raw, url, data${Object.hasOwn(part, 'kind') ? '; `kind` is of A2A 0.3' : ''}`,
    };
  if (content === 'data') return 'data';
  return typeof part[content] === 'string'
    ? content === 'text'
      ? 'text'
      : 'file'
    : { fault: `.${content} must be a string` };
}

function kindOfLegacyPart(part: JsonObject): 'text' | 'file' | 'data' | 'other' | { readonly fault: string } {
  switch (part['kind']) {
    case 'text':
      return typeof part['text'] === 'string' ? 'text' : { fault: '.text must be a string' };
    case 'file': {
      const { file } = part;
      if (!isObject(file)) return { fault: '.file must be an object' };
      return typeof file['bytes'] === 'string' || typeof file['uri'] === 'string'
        ? 'file'
        : { fault: '.file must have bytes or uri, a string' };
    }
    case 'data':
      return isObject(part['data']) ? 'data' : { fault: '.data must be an object' };
    default:
      return typeof part['kind'] === 'string' ? 'other' : { fault: '.kind must be "text", "file" or "data"' };
  }
}

/** Reads an id; null if it is absent or empty. */
function readId(message: JsonObject, name: string): string | null {
  const value = message[name];
  if (value === undefined || value === null || value === '') return null;
  if (typeof value !== 'string' || value.length > ID_CHARS_MAX)
    throw new Fault(`message.${name} must be a string of 1 to ${ID_CHARS_MAX} characters`);
  return value;
}

function readStrings(value: unknown, name: string, max: number): readonly string[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > max || !value.every((one) => typeof one === 'string')) {
    throw new Fault(`${name} must be an array of at most ${max} strings`);
  }
  return value;
}

function optionalObject(holder: JsonObject, name: string, path = ''): JsonObject | null {
  const value = holder[name];
  if (value === undefined || value === null) return null;
  if (!isObject(value)) throw new Fault(`${path}${name} must be an object`);
  return value;
}
