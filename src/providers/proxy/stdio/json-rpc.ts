import { elementsOf, isObject, RawJsonError, removeAt, type JsonObject } from '#wire';
import { parseRaw, type RawMessage } from '#json-rpc/message';

/** The parsed value is only for reading. To write it again could change numbers and the order of keys. */
type MessageText = Pick<RawMessage, 'text' | 'value'>;

export interface RpcRequest extends MessageText {
  readonly kind: 'request';
  /** The id as JSON text, unchanged. */
  readonly idText: string;
  readonly method: string;
}

export interface Notification extends MessageText {
  readonly kind: 'notification';
  readonly method: string;
}

export interface Response extends MessageText {
  readonly kind: 'response';
}

export type RpcMessage = RpcRequest | Notification | Response;

export const ERROR = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  /** The tool's process doesn't run, or the tool has no room for another session. */
  process: -32000,
  sessionNotFound: -32001,
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022,
} as const;

/**
 * Parses one JSON-RPC message. Returns undefined for text that isn't JSON, and null for other JSON. Less strict than
 * the gateway, which has already checked the messages that it sends.
 */
export function parseMessage(written: string): RpcMessage | null | undefined {
  const raw = parseRaw(LINE_BREAK.test(written) ? inOneLine(written) : written);
  if (!raw) return raw;
  const { text, value, members } = raw;
  const { method } = value;
  if (typeof method !== 'string') return 'result' in value || 'error' in value ? { kind: 'response', ...raw } : null;
  const id = members.get('id');
  if (id === undefined) return { kind: 'notification', method, ...raw };
  // Some serializers write every absent member as null.
  if (value['id'] === null && method.startsWith('notifications/'))
    return { kind: 'notification', method, ...raw, text: removeAt(text, ['id']) };
  return keyOf(value['id']) === null ? null : { kind: 'request', idText: text.slice(id.start, id.end), method, ...raw };
}

const LINE_BREAK = /[\r\n]/;
const [LF, CR, SPACE] = [0x0a, 0x0d, 0x20];

/**
 * A line break in JSON is only white space, but it would end a message on a pipe and a field of an event. Replaced in
 * the bytes, because millions of them take a regular expression a quarter of a second.
 */
function inOneLine(written: string): string {
  const bytes = Buffer.from(written);
  let length = 0;
  let wasBreak = false;
  // An iterator takes five times as long.
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    const isBreak = byte === CR || byte === LF;
    if (!isBreak) bytes[length++] = byte;
    else if (!wasBreak) bytes[length++] = SPACE;
    wasBreak = isBreak;
  }
  return bytes.toString('utf8', 0, length);
}

/** The most messages of a batch that are read. */
export const BATCH_MESSAGES_MAX = 1_000;

/**
 * The texts of the messages of a batch, which servers of 2025-03-26 may write. Any other text is returned as the only
 * element. null for more than BATCH_MESSAGES_MAX.
 */
export function elementsOfBatch(text: string): readonly string[] | null {
  if (!/^\s*\[\s*\{/.test(text)) return [text];
  try {
    const spans = elementsOf(text, 0, BATCH_MESSAGES_MAX + 1);
    return spans.length > BATCH_MESSAGES_MAX ? null : spans.map(({ start, end }) => text.slice(start, end));
  } catch (error) {
    if (error instanceof RawJsonError) return [text];
    throw error;
  }
}

/**
 * Makes an id or a progress token comparable: 1 and "1" differ, 1 and 1.0 are equal. Returns null if the value is
 * neither a string nor a number.
 */
export function keyOf(value: unknown): string | null {
  if (typeof value === 'string') return `"${value}`;
  return typeof value === 'number' ? String(value) : null;
}

export function paramsOf({ value }: RpcMessage): JsonObject {
  return isObject(value['params']) ? value['params'] : {};
}

export function metaOf(message: RpcMessage): JsonObject {
  const { _meta: meta } = paramsOf(message);
  return isObject(meta) ? meta : {};
}

export function errorCodeOf({ value }: Pick<Response, 'value'>): number | null {
  const { error } = value;
  return isObject(error) && typeof error['code'] === 'number' ? error['code'] : null;
}

/** HTTP status if the whole reply to a modern request is an error. All other errors are sent with status 200. */
const STATUS: ReadonlyMap<number, number> = new Map([
  [ERROR.parse, 400],
  [ERROR.invalidRequest, 400],
  [ERROR.methodNotFound, 404],
  [ERROR.headerMismatch, 400],
  [ERROR.missingCapability, 400],
  [ERROR.unsupportedVersion, 400],
]);

export function statusOfError(code: number | null): number {
  return (code === null ? undefined : STATUS.get(code)) ?? 200;
}
