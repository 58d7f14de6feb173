import { membersOf, replaceAt, type Span } from './json-text.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

interface Written {
  /** The message as it was written, on one line. */
  readonly text: string;
  /** The same, parsed: to look at, not to be written again, since numbers and the order of keys could change. */
  readonly value: JsonObject;
}

export interface Request extends Written {
  readonly kind: 'request';
  /** JSON text of its id, as it was written. */
  readonly id: string;
  readonly method: string;
}

export interface Notification extends Written {
  readonly kind: 'notification';
  readonly method: string;
}

export interface Response extends Written {
  readonly kind: 'response';
}

/** A JSON-RPC message, told apart by what it has. */
export type Message = Request | Notification | Response;

export const ERROR = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  /** The tool's process ended, or does not run, or there is no room for another. */
  process: -32000,
  sessionNotFound: -32001,
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022,
} as const;

/**
 * One message of JSON text, undefined where it is not JSON, null where it is no JSON-RPC message (a batch is none,
 * nor is one with a key twice).
 */
export function parseMessage(written: string): Message | null | undefined {
  // Line ends in JSON are white space, and end a message on a pipe and a field of an event.
  const text = /[\r\n]/.test(written) ? written.replaceAll(/[\r\n]+/g, ' ') : written;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(value)) return null;
  const members = membersOf(text);
  // What is priced and routed by one reader must not be something else for the next.
  if (members === null || repeatsInside(text, members.get('params'))) return null;
  const { method } = value;
  const id = members.get('id');
  if (typeof method === 'string') {
    if (id === undefined) return { kind: 'notification', method, text, value };
    return keyOf(value['id']) === null
      ? null
      : { kind: 'request', id: text.slice(id.start, id.end), method, text, value };
  }
  return 'result' in value || 'error' in value ? { kind: 'response', text, value } : null;
}

/** Whether a key stands twice in `params`, or in their `_meta`. */
function repeatsInside(text: string, params: Span | undefined): boolean {
  if (params === undefined) return false;
  const inside = membersOf(text, params.start);
  const meta = inside?.get('_meta');
  return inside === null || (meta !== undefined && membersOf(text, meta.start) === null);
}

/**
 * Ids and progress tokens as something to compare: 1 and "1" are two, 1 and 1.0 are one. Null for what is neither
 * text nor number.
 */
export function keyOf(value: unknown): string | null {
  if (typeof value === 'string') return `"${value}`;
  return typeof value === 'number' ? String(value) : null;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function paramsOf({ value }: Message): JsonObject {
  return isObject(value['params']) ? value['params'] : {};
}

/** `_meta` of the parameters. */
export function metaOf(message: Message): JsonObject {
  const { _meta: meta } = paramsOf(message);
  return isObject(meta) ? meta : {};
}

/** Code of the error that a response is, or null. */
export function errorCodeOf({ value }: Pick<Response, 'value'>): number | null {
  const { error } = value;
  return isObject(error) && typeof error['code'] === 'number' ? error['code'] : null;
}

/** A response that is an error. `id` is JSON text. */
export function errorText(id: string | null, code: number, message: string, data?: unknown): string {
  return replaceAt(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message, data } }), ['id'], id ?? 'null');
}

/** A response. `id` is JSON text. */
export function resultText(id: string, result: unknown): string {
  return replaceAt(JSON.stringify({ jsonrpc: '2.0', id: null, result }), ['id'], id);
}
