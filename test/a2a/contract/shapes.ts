/** The wires a client may speak. 0.3 is spoken over JSON-RPC alone here. */
export type Version = '1.0' | '0.3';
export type Binding = 'JSONRPC' | 'HTTP+JSON';

export type Json = Record<string, unknown>;

/** A task, message or event of either version, in words of one kind, with the JSON that it was read from. */
export interface Task {
  readonly type: 'task';
  readonly id: string;
  readonly contextId: string;
  /** In 0.3's words: `working`, `input-required` … */
  readonly state: string;
  readonly status: Json;
  readonly history: readonly Message[];
  readonly artifacts: readonly Artifact[];
  readonly metadata: Json;
  readonly raw: Json;
}

export interface Message {
  readonly type: 'message';
  readonly messageId: string;
  readonly role: string;
  readonly contextId: unknown;
  readonly taskId: unknown;
  readonly text: string;
  readonly raw: Json;
}

export interface Artifact {
  readonly artifactId: string;
  readonly parts: readonly Part[];
  readonly raw: Json;
}

export interface Part {
  readonly kind: 'text' | 'bytes' | 'url' | 'data' | 'none';
  readonly value: unknown;
  readonly mediaType: unknown;
  readonly filename: unknown;
}

export interface StatusEvent {
  readonly type: 'status';
  readonly taskId: string;
  readonly state: string;
  readonly text: string;
  readonly metadata: Json;
  readonly raw: Json;
}

export interface ArtifactEvent {
  readonly type: 'artifact';
  readonly taskId: string;
  readonly artifact: Artifact;
  readonly append: boolean;
  readonly lastChunk: boolean;
  readonly raw: Json;
}

export type Event = Task | Message | StatusEvent | ArtifactEvent;

export const TERMINAL = ['completed', 'failed', 'canceled', 'rejected'];

const object = (value: unknown, what: string): Json => {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error(`${what} is no object: ${JSON.stringify(value)}`);
  return value as Json;
};
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const stateWord = (state: unknown, version: Version) =>
  version === '0.3'
    ? String(state)
    : String(state)
        .replace(/^TASK_STATE_/u, '')
        .toLowerCase()
        .replaceAll('_', '-');

export function readTask(value: unknown, version: Version): Task {
  const raw = object(value, 'a task');
  const status = object(raw['status'], "a task's status");
  return {
    type: 'task',
    id: String(raw['id']),
    contextId: String(raw['contextId']),
    state: stateWord(status['state'], version),
    status,
    history: list(raw['history']).map((one) => readMessage(one, version)),
    artifacts: list(raw['artifacts']).map((one) => readArtifact(one, version)),
    metadata: (raw['metadata'] ?? {}) as Json,
    raw,
  };
}

export function readMessage(value: unknown, version: Version): Message {
  const raw = object(value, 'a message');
  const parts = list(raw['parts']).map((one) => readPart(one, version));
  return {
    type: 'message',
    messageId: String(raw['messageId']),
    role: String(raw['role']).replace('ROLE_', '').toLowerCase(),
    contextId: raw['contextId'],
    taskId: raw['taskId'],
    text: parts.map(({ kind, value: text }) => (kind === 'text' ? String(text) : '')).join(''),
    raw,
  };
}

export function readArtifact(value: unknown, version: Version): Artifact {
  const raw = object(value, 'an artifact');
  return { artifactId: String(raw['artifactId']), parts: list(raw['parts']).map((one) => readPart(one, version)), raw };
}

function readPart(value: unknown, version: Version): Part {
  const part = object(value, 'a part');
  const file = (version === '0.3' ? part['file'] : part) as Json | undefined;
  const mediaType = version === '0.3' ? file?.['mimeType'] : part['mediaType'];
  const rest = { mediaType, filename: version === '0.3' ? file?.['name'] : part['filename'] };
  if (part['text'] !== undefined) return { kind: 'text', value: part['text'], ...rest };
  if (part['data'] !== undefined) return { kind: 'data', value: part['data'], ...rest };
  const bytes = version === '0.3' ? file?.['bytes'] : part['raw'];
  if (bytes !== undefined) return { kind: 'bytes', value: bytes, ...rest };
  const url = version === '0.3' ? file?.['uri'] : part['url'];
  return url === undefined ? { kind: 'none', value: undefined, ...rest } : { kind: 'url', value: url, ...rest };
}

/** What a send or an event of a stream says: 1.0 names it by its one member, 0.3 by `kind`. */
export function readEvent(value: unknown, version: Version): Event {
  const raw = object(value, 'an event');
  if (version === '0.3') return readKind(raw, String(raw['kind']), raw, version);
  const names = Object.keys(raw).filter((name) => ['task', 'message', 'statusUpdate', 'artifactUpdate'].includes(name));
  if (names.length !== 1)
    throw new Error(`an event has to have one of task, message, statusUpdate, artifactUpdate: ${JSON.stringify(raw)}`);
  const kinds: Readonly<Record<string, string>> = { statusUpdate: 'status-update', artifactUpdate: 'artifact-update' };
  return readKind(object(raw[names[0]!], names[0]!), kinds[names[0]!] ?? names[0]!, raw, version);
}

function readKind(inner: Json, kind: string, raw: Json, version: Version): Event {
  if (kind === 'task') return { ...readTask(inner, version), raw };
  if (kind === 'message') return { ...readMessage(inner, version), raw };
  const taskId = String(inner['taskId']);
  if (kind === 'artifact-update') {
    const artifact = readArtifact(inner['artifact'], version);
    return {
      type: 'artifact',
      taskId,
      artifact,
      append: inner['append'] === true,
      lastChunk: inner['lastChunk'] === true,
      raw,
    };
  }
  if (kind !== 'status-update') throw new Error(`an event of no known kind: ${JSON.stringify(raw)}`);
  const status = object(inner['status'], "an event's status");
  const text = status['message'] === undefined ? '' : readMessage(status['message'], version).text;
  return {
    type: 'status',
    taskId,
    state: stateWord(status['state'], version),
    text,
    metadata: (inner['metadata'] ?? {}) as Json,
    raw,
  };
}

/** An object for a request, in the words of the version. */
export function writeMessage(version: Version, parts: readonly Part[] | string, more: Json = {}): Json {
  const list_ =
    typeof parts === 'string'
      ? [{ kind: 'text', value: parts, mediaType: undefined, filename: undefined } as const]
      : parts;
  const messageId = crypto.randomUUID();
  if (version === '1.0') return { messageId, role: 'ROLE_USER', parts: list_.map(writePart), ...more };
  return { kind: 'message', messageId, role: 'user', parts: list_.map(writeLegacyPart), ...more };
}

const PART_MEMBERS = { text: 'text', bytes: 'raw', url: 'url', data: 'data', none: 'none' } as const;

const writePart = ({ kind, value, mediaType, filename }: Part): Json => ({
  [PART_MEMBERS[kind]]: value,
  mediaType,
  filename,
});

function writeLegacyPart({ kind, value, mediaType, filename }: Part): Json {
  if (kind === 'text' || kind === 'data') return { kind, [kind]: value };
  return { kind: 'file', file: { [kind === 'url' ? 'uri' : 'bytes']: value, mimeType: mediaType, name: filename } };
}
