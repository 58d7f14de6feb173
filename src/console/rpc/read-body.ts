import {
  elementsOf,
  NotUtf8,
  readJsonText,
  type ReadText,
  type JsonLimits,
  RawJsonError,
  interpretedFields,
  type InterpretedFieldsAt,
  ambiguousKeyAt,
} from '#wire';
import { GatewayError } from '#errors';
import { type JsonRpcError, readClientMessage, type RequestMessage, messageFault } from '#json-rpc';
import { MAX_COST_META } from '#call';
import { CODE } from './errors-rpc.ts';
import { KEY, PAYMENT, RECEIPT } from './method.ts';

export const BATCH_MAX = 50;

/**
 * One entry, a batch of 1 to BATCH_MAX entries, or a refused body, which is answered by a single error without an id.
 */
export type Body =
  | { readonly kind: 'single'; readonly entry: BatchEntry }
  | { readonly kind: 'batch'; readonly entries: readonly BatchEntry[] }
  | { readonly kind: 'refused'; readonly error: JsonRpcError };

/** Reads an untrusted body. Never rejects because of its content. */
export async function readBody(bytes: Buffer, limits: JsonLimits): Promise<Body> {
  let read: ReadText;
  try {
    read = await readJsonText(bytes, limits);
  } catch (error) {
    if (error instanceof GatewayError)
      return refuse(error instanceof NotUtf8 ? CODE.parse : CODE.invalidRequest, error.message);
    throw error;
  }
  const { text, value } = read;
  if (!/^[\t\n\r ]*\[/.test(text)) {
    const entry = readEntry(text, value);
    return entry === undefined ? noJson(text) : { kind: 'single', entry };
  }
  return readBatch(text);
}

function readBatch(text: string): Body {
  const entries: BatchEntry[] = [];
  let end = text.indexOf('[') + 1;
  try {
    const elements = elementsOf(text, 0, BATCH_MAX + 1);
    if (elements.length > BATCH_MAX)
      return refuse(CODE.invalidRequest, `A batch has at most ${BATCH_MAX} entries: send the others in another one`);
    for (const element of elements) {
      const entry = readEntry(text.slice(element.start, element.end));
      if (entry === undefined) return noJson(text);
      entries.push(entry);
      end = element.end;
    }
  } catch (error) {
    if (error instanceof RawJsonError) return noJson(text);
    throw error;
  }
  if (!/^[\t\n\r ]*\][\t\n\r ]*$/.test(text.slice(end))) return noJson(text);
  return entries.length === 0 ? refuse(CODE.invalidRequest, 'The batch is empty') : { kind: 'batch', entries };
}

const refuse = (code: number, message: string): Body => ({ kind: 'refused', error: { code, message } });
const noJson = (text: string): Body => refuse(CODE.parse, messageFault(text).message);

export type BatchEntry =
  | { readonly kind: 'call'; readonly message: RequestMessage }
  /** A notification. It is not executed, because the client could not be told its cost. */
  | { readonly kind: 'silent' }
  | RefusedEntry;

interface RefusedEntry {
  readonly kind: 'refused';
  /** The id as the client wrote it; `null` if it cannot be read. */
  readonly idText: string;
  readonly error: JsonRpcError;
}

/** Reads one entry; undefined if the text is not JSON. */
export function readEntry(text: string, parsed?: unknown): BatchEntry | undefined {
  const message = readClientMessage(text, (params) => ambiguousKeyAt(params, INTERPRETED_FIELDS, 'params.'), parsed);
  if (message === undefined) return undefined;
  if (message === null) return faultOf(text, parsed);
  if (message.kind === 'ambiguous') {
    const { idText, where, fault } = message;
    return refuseEntry(
      idText,
      where === 'params' ? CODE.invalidParams : CODE.invalidRequest,
      fault.message,
      fault.param,
    );
  }
  if (message.kind === 'request') return { kind: 'call', message };
  if (message.kind === 'notification') return { kind: 'silent' };
  return refuseEntry('null', CODE.invalidRequest, 'A response cannot be posted here: send requests, with a method');
}

/** The members that this endpoint acts on. The route of the entry checks the others. */
const INTERPRETED_FIELDS: InterpretedFieldsAt = [
  [[], interpretedFields(['_meta'])],
  [['_meta'], interpretedFields([KEY, MAX_COST_META, RECEIPT, PAYMENT])],
];

function faultOf(text: string, parsed: unknown): BatchEntry {
  const { kind, message, param, idText } = messageFault(text, parsed);
  // An invalid notification gets no answer, like a valid one.
  if (kind === 'params')
    return idText === null ? { kind: 'silent' } : refuseEntry(idText, CODE.invalidParams, message, param ?? undefined);
  return refuseEntry(idText ?? 'null', CODE.invalidRequest, message);
}

function refuseEntry(idText: string, code: number, message: string, param?: string): RefusedEntry {
  return {
    kind: 'refused',
    idText,
    error: { code, message, ...(param === undefined ? {} : { data: { type: 'invalid_request', param } }) },
  };
}
