import { errorText, type JsonRpcError, resultText } from '#json-rpc';
import { HTTP_ERRORS } from '#http';
import { type Members, membersOf, RawJsonError, splice, withMembers } from '#wire';
import { CODE, fromHttpError, KEPT_STATUSES, type RpcFault } from './errors-rpc.ts';
import { toldOf, type InnerReply } from './inner-request.ts';

/**
 * The outcome of one entry: its result or its error, as JSON text. Status and headers are for an HTTP reply with this
 * entry alone.
 */
export interface Outcome {
  readonly kind: 'result' | 'error';
  readonly text: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** The JSON-RPC reply. `idText`: the id of the request as the client wrote it. */
export function replyText(idText: string, { kind, text }: Outcome): string {
  return kind === 'result' ? resultText(idText, text) : `{"jsonrpc":"2.0","id":${idText},"error":${text}}`;
}

export const resultOf = (value: unknown): Outcome => ({
  kind: 'result',
  text: JSON.stringify(value),
  status: 200,
  headers: {},
});

export function errorOf({ error, status, headers }: RpcFault): Outcome {
  const { code, message, data } = error;
  return { kind: 'error', text: JSON.stringify({ code, message, data }), status, headers: toldOf(headers) };
}

/**
 * Converts the reply of an HTTP route. JSON and text become the result. Other bytes become base64, because they may
 * have been paid for.
 */
export function outcomeOfHttp({ status, headers, text, bytes }: InnerReply): Outcome {
  // A payment that may not be settled yet is an error, although its status is a success.
  if (status < 200 || status > 299 || isPending(status, text)) return errorOf(fromHttpError(status, headers, text));
  const type = headers['content-type'] ?? '';
  const base = { status: 200, headers: toldOf(headers) };
  if (isJson(type)) return { kind: 'result', text: withCost(text, headers), ...base };
  if (type.startsWith('text/') || type === '') return { kind: 'result', text: JSON.stringify(text), ...base };
  const file = JSON.stringify({ content_type: type, base64: bytes.toString('base64') });
  return { kind: 'result', text: withCost(file, headers), ...base };
}

const isPending = (status: number, text: string) =>
  status === HTTP_ERRORS.payment_pending.status && text.includes('"payment_pending"');

const isJson = (type: string) => /^application\/(?:[\w.-]+\+)?json\b/i.test(type);

/**
 * Converts the reply of a route that speaks JSON-RPC itself. Its result or its error is passed on unchanged, including
 * its facts about cost.
 */
export function outcomeOfWire({ status, headers, text }: InnerReply): Outcome {
  const members = membersIn(text);
  const passed = toldOf(headers);
  const result = members?.get('result');
  if (result) return { kind: 'result', text: text.slice(result.start, result.end), status: 200, headers: passed };
  const error = members?.has('jsonrpc') ? members.get('error') : undefined;
  if (error)
    return {
      kind: 'error',
      text: text.slice(error.start, error.end),
      status: KEPT_STATUSES.has(status) ? status : 200,
      headers: passed,
    };
  if (status >= 400) return errorOf(fromHttpError(status, headers, text));
  return errorOf({ error: { code: CODE.internal, message: 'The endpoint gave no answer' }, status: 200, headers: {} });
}

function membersIn(text: string): Members | null {
  try {
    return membersOf(text);
  } catch (error) {
    if (error instanceof RawJsonError) return null;
    throw error;
  }
}

/** Adds the cost facts from the route's headers to `_meta` of a result that is an object. */
function withCost(text: string, headers: Readonly<Record<string, string>>): string {
  const { 'x-generation-id': id, 'x-cost-usd': cost, 'x-receipt': receipt, 'payment-response': payment } = headers;
  const entries: (readonly [string, string])[] = [];
  if (id !== undefined)
    entries.push([
      'tollgate/generation',
      JSON.stringify({ id, ...(cost === undefined ? {} : { cost, currency: 'USDC' }) }),
    ]);
  if (receipt !== undefined) entries.push(['tollgate/receipt', JSON.stringify(receipt)]);
  if (payment !== undefined) entries.push(['x402/payment-response', Buffer.from(payment, 'base64').toString()]);
  const members = entries.length > 0 ? membersIn(text) : null;
  if (members === null) return text;
  const meta = members.get('_meta');
  if (meta && text[meta.start] === '{') return splice(text, [withMembers(text, meta, Object.fromEntries(entries))]);
  const object = `{${entries.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`;
  return splice(text, [withMembers(text, { start: 0, end: text.length }, { _meta: object })]);
}

/** An error reply for a request without a readable id. */
export const namelessError = (code: number, message: string, data?: JsonRpcError['data']): string =>
  errorText('null', { code, message, ...(data === undefined ? {} : { data }) });
