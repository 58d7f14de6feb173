import {
  isObject,
  type JsonObject,
  membersOfParsed,
  type Members,
  RawJsonError,
  interpretedFields,
  findAmbiguousKey,
  ambiguousKeyFault,
  type AmbiguousKeyFault,
  removeAt,
  replaceAt,
  spanAt,
} from '#wire';

/** Use `idText` to answer, because a number above 2^53 may be rounded here. */
export type RequestId = string | number;

export interface JsonRpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** A message as text and as parsed value, with the positions of its members in `text`. */
export interface RawMessage {
  readonly text: string;
  readonly value: JsonObject;
  readonly members: Members;
}

export interface RequestMessage extends RawMessage {
  readonly kind: 'request';
  readonly id: RequestId;
  /** The id as JSON text, for the reply. */
  readonly idText: string;
  readonly method: string;
  readonly params: JsonObject | undefined;
}

export interface NotificationMessage extends RawMessage {
  readonly kind: 'notification';
  readonly method: string;
  readonly params: JsonObject | undefined;
}

/** Has either `result` or `error`. The id is null in an error about an unreadable message. */
export interface ResponseMessage extends RawMessage {
  readonly kind: 'response';
  readonly id: RequestId | null;
  readonly idText: string;
  readonly result?: unknown;
  readonly error?: JsonRpcError;
  /** The text of the result, if it is known without `members`. */
  readonly resultText?: string;
}

export type JsonRpcMessage = RequestMessage | NotificationMessage | ResponseMessage;

/**
 * Parses one JSON-RPC message. Returns undefined if the text is not JSON. Returns null if it is JSON but not a JSON-RPC
 * 2.0 message; a batch is not a message. A duplicate key in the message, in `params` or in `params._meta` also gives
 * null, because parsers differ in which value they take, and the provider must see what was billed. `params` and
 * `_meta` are objects if they are present. The text of the message is another one if it had nulls, see withoutNulls.
 * `parsed`: the value of the text, if it is known.
 */
export function parseMessage(text: string, parsed?: unknown): JsonRpcMessage | null | undefined {
  const raw = parseRaw(text, parsed);
  if (!raw || raw.value['jsonrpc'] !== '2.0') return raw && null;
  const { params, method, result } = raw.value;
  if (params === null || hasNull(params, OBJECTS) || hasNull(result, OBJECTS) || isNotifiedOfNull(method, params)) {
    const rest = withoutNulls(text, isNotifiedOfNull(method, params));
    if (rest !== text) return parseMessage(rest);
  }
  if (params !== undefined && !(isObject(params) && (!Object.hasOwn(params, '_meta') || isObject(params['_meta']))))
    return null;
  return method === undefined ? toResponse(raw) : toCall(raw);
}

const OBJECTS = ['_meta', 'arguments'];
/** Optional members of the notifications of MCP. `data` of a log message may be null. */
const NOTIFIED = ['total', 'message', 'logger', 'reason'];

function hasNull(holder: unknown, names: readonly string[]): boolean {
  if (!isObject(holder)) return false;
  for (const name of names) if (holder[name] === null) return true;
  return false;
}

const isNotifiedOfNull = (method: unknown, params: unknown): boolean =>
  typeof method === 'string' && method.startsWith('notifications/') && hasNull(params, NOTIFIED);

/**
 * A message without null for its optional objects. Many serializers write null for an object that is absent, and many
 * servers and clients refuse it. Null arguments become an empty object, because some servers require one.
 */
function withoutNulls(text: string, notified: boolean): string {
  let rest = text;
  for (const path of notified ? [...OPTIONAL, ...OF_NOTIFICATIONS] : OPTIONAL)
    if (isNullAt(rest, path)) rest = removeAt(rest, path);
  return isNullAt(rest, ARGUMENTS) ? replaceAt(rest, ARGUMENTS, '{}') : rest;
}

const OPTIONAL = [['params'], ['params', '_meta'], ['result', '_meta']] as const;
const OF_NOTIFICATIONS = NOTIFIED.map((name) => ['params', name]);
const ARGUMENTS = ['params', 'arguments'] as const;

function isNullAt(text: string, path: readonly string[]): boolean {
  const span = spanAt(text, path);
  return span !== null && text.startsWith('null', span.start);
}

const PARAMS_META = ['params', '_meta'];

/** Parses a JSON object without checking that it is a message. Returns undefined and null as parseMessage does. */
export function parseRaw(text: string, parsed?: unknown): RawMessage | null | undefined {
  let value = parsed;
  try {
    value ??= JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(value)) return null;
  try {
    return { text, value, members: membersOfParsed(text, value, PARAMS_META) };
  } catch (error) {
    if (error instanceof RawJsonError) return null;
    throw error;
  }
}

/**
 * Makes a parseMessage for the messages of one stream. The events of an agent's stream differ in their results alone.
 * So the text around the result is compared with that of the response before, and only the result is parsed.
 */
export function createMessageParser(): typeof parseMessage {
  let form: { readonly model: ResponseMessage; readonly before: string; readonly behind: string } | null = null;

  /** A text that is JSON by itself, between texts that make a message around another result, makes one too. */
  const alike = (text: string): ResponseMessage | null => {
    if (form === null) return null;
    const { model, before, behind } = form;
    const [start, end] = [before.length, text.length - behind.length];
    if (start >= end || !text.startsWith(before) || !text.endsWith(behind)) return null;
    // JSON.parse takes white space around the result, which is no part of it.
    if (text.charCodeAt(start) <= SPACE || text.charCodeAt(end - 1) <= SPACE) return null;
    const resultText = text.slice(start, end);
    try {
      const result: unknown = JSON.parse(resultText);
      return hasNull(result, OBJECTS) ? null : new AlikeResponse(model, text, resultText, result);
    } catch {
      return null;
    }
  };

  return (text) => {
    const again = alike(text);
    if (again !== null) return again;
    const message = parseMessage(text);
    if (message?.kind !== 'response' || message.text.length > FORM_CHARS_MAX) return message;
    const result = message.members.get('result');
    const behind = result && message.text.slice(result.end);
    if (behind?.trim() === '}') form = { model: message, before: message.text.slice(0, result!.start), behind };
    return message;
  };
}

/** A response like `model`, but for its result. Few readers need the parts that are made when they are asked for. */
class AlikeResponse implements ResponseMessage {
  readonly kind = 'response';
  readonly id: RequestId | null;
  readonly idText: string;
  readonly text: string;
  readonly resultText: string;
  readonly result: unknown;
  readonly #model: ResponseMessage;

  constructor(model: ResponseMessage, text: string, resultText: string, result: unknown) {
    this.id = model.id;
    this.idText = model.idText;
    this.text = text;
    this.resultText = resultText;
    this.result = result;
    this.#model = model;
  }

  get value(): JsonObject {
    return { ...this.#model.value, result: this.result };
  }

  get members(): Members {
    const { keyStart, start } = this.#model.members.get('result')!;
    return new Map(this.#model.members).set('result', { keyStart, start, end: start + this.resultText.length });
  }
}

const SPACE = 0x20;
/** Longer messages are not kept to compare others with them. */
const FORM_CHARS_MAX = 16 * 1024;

function toCall(raw: RawMessage): RequestMessage | NotificationMessage | null {
  const { text, value, members } = raw;
  const { id, method } = value;
  if (typeof method !== 'string' || members.has('result') || members.has('error')) return null;
  const params = value['params'] as JsonObject | undefined;
  if (id === undefined) return { kind: 'notification', text, value, members, method, params };
  return isRequestId(id) ? { kind: 'request', id, idText: idTextOf(raw), text, value, members, method, params } : null;
}

function toResponse(raw: RawMessage): ResponseMessage | null {
  const { id = null, result, error } = raw.value;
  if (id !== null && !isRequestId(id)) return null;
  const idText = id === null ? 'null' : idTextOf(raw);
  if (error === undefined)
    return result === undefined || id === null ? null : { kind: 'response', id, idText, result, ...raw };
  return result === undefined && isError(error) ? { kind: 'response', id, idText, error, ...raw } : null;
}

function idTextOf({ text, members }: RawMessage): string {
  const { start, end } = members.get('id')!;
  return text.slice(start, end);
}

/** Strings and finite numbers. JSON-RPC allows fractions too. */
const isRequestId = (id: unknown): id is RequestId => typeof id === 'string' || Number.isFinite(id);

/**
 * The id, but as a string if it is an integer above 2^53, because such numbers are rounded and two of them may become
 * equal.
 */
export const exactId = ({ id, idText }: Pick<RequestMessage, 'id' | 'idText'>): RequestId =>
  Number.isInteger(id) && !Number.isSafeInteger(id) && /^-?\d+$/.test(idText) ? idText : id;

function isError(error: unknown): error is JsonRpcError {
  return isObject(error) && typeof error['code'] === 'number' && typeof error['message'] === 'string';
}

export function resultTextOf({ resultText: known, text, members }: ResponseMessage): string {
  if (known !== undefined) return known;
  const { start, end } = members.get('result')!;
  return text.slice(start, end);
}

/** The reply with a result. Both parameters are JSON text. */
export function resultText(idText: string, result: string): string {
  const { before, after } = aroundResult(idText);
  return before + result + after;
}

/** The text of a reply before and after its result. */
export const aroundResult = (idText: string) => ({ before: `{"jsonrpc":"2.0","id":${idText},"result":`, after: '}' });

/** The reply with an error; `idText` is JSON text. */
export function errorText(idText: string, error: JsonRpcError): string {
  const { code, message, data } = error;
  return `{"jsonrpc":"2.0","id":${idText},"error":${JSON.stringify({ code, message, data })}}`;
}

const PARTS = {
  request: ['jsonrpc', 'id', 'method', 'params'],
  notification: ['jsonrpc', 'method', 'params'],
  response: ['jsonrpc', 'id', 'result', 'error'],
} as const;

const ENVELOPE = interpretedFields([...new Set(Object.values(PARTS).flat())]);

/** A message that a server could read differently from the gateway. */
interface Ambiguous {
  readonly kind: 'ambiguous';
  /** The id of a request as JSON text, else `null`. */
  readonly idText: string;
  readonly where: 'envelope' | 'params';
  readonly fault: AmbiguousKeyFault;
}

/**
 * Reads a client's message by the rules of parseMessage. The result is safe to pass on as text. The message is
 * ambiguous if the name of a member looks like a name of the envelope, or if `faultOf` finds such a name in the
 * parameters. All other unknown members of the envelope are removed from the text.
 */
export function readClientMessage(
  text: string,
  faultOf: (params: Readonly<Record<string, unknown>>) => AmbiguousKeyFault | null,
  parsed?: unknown,
): JsonRpcMessage | Ambiguous | null | undefined {
  const message = parseMessage(text, parsed);
  if (!message) return message;
  const idText = message.kind === 'request' ? message.idText : 'null';
  const names = findAmbiguousKey(message.members.keys(), ENVELOPE);
  if (names !== null) return { kind: 'ambiguous', idText, where: 'envelope', fault: ambiguousKeyFault('', names) };
  const params = message.kind === 'response' ? undefined : message.params;
  const fault = params === undefined ? null : faultOf(params);
  return fault === null ? envelopeAlone(message) : { kind: 'ambiguous', idText, where: 'params', fault };
}

function envelopeAlone(message: JsonRpcMessage): JsonRpcMessage {
  const parts: readonly string[] = PARTS[message.kind];
  for (const name of message.members.keys())
    if (!parts.includes(name)) {
      const value = Object.fromEntries(Object.entries(message.value).filter(([key]) => parts.includes(key)));
      return parseMessage(rebuilt(message, parts), value)!;
    }
  return message;
}

function rebuilt({ text, members }: RawMessage, parts: readonly string[]): string {
  const written: string[] = [];
  for (const name of parts) {
    const member = members.get(name);
    if (member) written.push(`"${name}":${text.slice(member.start, member.end)}`);
  }
  return `{${written.join(',')}}`;
}

const REQUEST_ID_CHARS_MAX = 128;

/** The `x-request-id` of one message of a batch, by its place, for its record and the log. */
export function requestIdAt(requestId: string, place: number): string {
  const suffix = `-${place}`;
  return requestId.slice(0, REQUEST_ID_CHARS_MAX - suffix.length) + suffix;
}
