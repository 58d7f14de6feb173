export type JsonObject = Readonly<Record<string, unknown>>;
/** A number that JavaScript cannot hold is kept as it was written, in an object. */
export type RequestId = string | number | RawNumber;
export interface RawNumber {
  readonly rawJSON: string;
}

/** A JSON-RPC message, told apart by what it has. Members that are not named here stay in it. */
export type Message =
  | { readonly kind: 'request'; readonly id: RequestId; readonly method: string; readonly all: JsonObject }
  | { readonly kind: 'notification'; readonly method: string; readonly all: JsonObject }
  | { readonly kind: 'response'; readonly id: RequestId | null; readonly all: JsonObject };

export const PARSE_ERROR = -32700;
export const INVALID_REQUEST = -32600;
export const METHOD_NOT_FOUND = -32601;
/** The tool's process ended, or does not run. */
export const PROCESS_GONE = -32000;

/** One message of JSON text, undefined where it is not JSON, null where it is no JSON-RPC message (a batch is none). */
export function parseMessage(text: string): Message | null | undefined {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    return undefined;
  }
  if (!isObject(value)) return null;
  const { id, method } = value;
  const hasId = typeof id === 'string' || typeof id === 'number' || isRawNumber(id);
  if (typeof method === 'string') {
    if (hasId) return { kind: 'request', id, method, all: value };
    return id === undefined ? { kind: 'notification', method, all: value } : null;
  }
  if ('result' in value || 'error' in value) return { kind: 'response', id: hasId ? id : null, all: value };
  return null;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function errorText(id: RequestId | null, code: number, message: string): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } });
}

/** Numbers that a JavaScript number might not hold. */
const LONG_NUMBER = /\d{16}|\d[.eE]/;

/** JSON.parse that keeps every number as it was written, so that writing it again gives the same. */
function parseJson(text: string): unknown {
  return LONG_NUMBER.test(text) ? JSON.parse(text, keepNumber) : JSON.parse(text);
}

function keepNumber(_name: string, value: unknown, context?: { readonly source?: string }): unknown {
  const source = context?.source;
  return typeof value === 'number' && source !== undefined && String(value) !== source ? rawJson(source) : value;
}

const { rawJSON: rawJson, isRawJSON: isRawNumber } = JSON as typeof JSON & {
  rawJSON(text: string): RawNumber;
  isRawJSON(value: unknown): value is RawNumber;
};
