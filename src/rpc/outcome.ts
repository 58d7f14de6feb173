import { errorText, isObject, type Members, membersOf, RawJsonError, resultText, splice, withMembers } from '#gateway';
import { CODE, fromHttpError, KEPT_STATUSES, type RpcFault } from './errors-rpc.ts';
import { toldOf } from './headers.ts';
import type { InnerReply } from './inner-request.ts';

/** What became of one entry: its result or its error, as JSON text, and what HTTP says of it where it is the whole reply. */
export interface Outcome {
  readonly kind: 'result' | 'error';
  readonly text: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** The reply to a request whose id is written so. */
export function replyText(idText: string, { kind, text }: Outcome): string {
  return kind === 'result' ? resultText(idText, text) : `{"jsonrpc":"2.0","id":${idText},"error":${text}}`;
}

export const resultOf = (value: unknown): Outcome => ({ kind: 'result', text: JSON.stringify(value), status: 200, headers: {} });

export function errorOf({ error, status, headers }: RpcFault): Outcome {
  const { code, message, data } = error;
  return { kind: 'error', text: JSON.stringify({ code, message, data }), status, headers: toldOf(headers) };
}

/** The reply of an HTTP door: its JSON, or its text, is the result; what is neither is the result in base64, since it may have been paid for. */
export function outcomeOfHttp({ status, headers, bytes }: InnerReply): Outcome {
  if (status < 200 || status > 299) return errorOf(fromHttpError(status, headers, bytes.toString()));
  const type = headers['content-type'] ?? '';
  const text = isJson(type)
    ? bytes.toString()
    : JSON.stringify(type.startsWith('text/') || type === '' ? bytes.toString() : { content_type: type, base64: bytes.toString('base64') });
  return { kind: 'result', text: withCost(text, headers), status: 200, headers: toldOf(headers) };
}

const isJson = (type: string) => /^application\/(?:[\w.-]+\+)?json\b/i.test(type);

/** The reply of a door that speaks JSON-RPC itself: its result and its error go on as they are written. */
export function outcomeOfWire(reply: InnerReply): Outcome {
  const { status, headers } = reply;
  const text = reply.bytes.toString();
  const members = read(text);
  const status_ = KEPT_STATUSES.has(status) ? status : 200;
  const result = members?.get('result');
  if (result) return { kind: 'result', text: withCost(text.slice(result.start, result.end), headers), status: 200, headers: toldOf(headers) };
  const error = members?.get('error');
  if (members?.has('jsonrpc') && error) return { kind: 'error', text: text.slice(error.start, error.end), status: status_, headers: toldOf(headers) };
  if (status >= 400) return errorOf(fromHttpError(status, headers, text));
  return errorOf({ error: { code: CODE.internal, message: 'The endpoint gave no answer' }, status: 200, headers: {} });
}

function read(text: string): Members | null {
  try {
    return membersOf(text);
  } catch (error) {
    if (error instanceof RawJsonError) return null;
    throw error;
  }
}

/** Headers of a billed reply, and the member of `_meta` that says the same. */
const TOLD = [
  ['x-generation-id', 'tollgate/generation'],
  ['x-cost-usd', 'tollgate/cost_usd'],
  ['x-receipt', 'tollgate/receipt'],
] as const;

/** A result that is an object, with what its door said of the money; what it says itself is kept. */
function withCost(text: string, headers: Readonly<Record<string, string>>): string {
  const told = TOLD.filter(([name]) => headers[name] !== undefined).map(([name, key]) => [key, JSON.stringify(headers[name])] as const);
  if (told.length === 0) return text;
  const start = text.search(/[^\t\n\r ]/);
  const members = text[start] === '{' ? read(text) : null;
  if (members === null) return text;
  const meta = members.get('_meta');
  if (meta && text[meta.start] !== '{') return text;
  if (!meta) {
    const made = `{${told.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`;
    return splice(text, [withMembers(text, { start, end: text.trimEnd().length }, { _meta: made })]);
  }
  const own: unknown = JSON.parse(text.slice(meta.start, meta.end));
  const missing = told.filter(([key]) => !(isObject(own) && Object.hasOwn(own, key)));
  return missing.length === 0 ? text : splice(text, [withMembers(text, meta, Object.fromEntries(missing))]);
}

/** An error that is the answer to no readable id. */
export const namelessError = (code: number, message: string): string => errorText('null', { code, message });
