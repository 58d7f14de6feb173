import {
  interpretedFields,
  type InterpretedFieldsAt,
  type JsonRpcError,
  ambiguousKeyAt,
  readClientMessage,
  type RequestMessage,
} from '#wire';
import { MAX_COST_META, messageFault } from '#gateway';
import { CODE } from './errors-rpc.ts';
import { KEY, PAYMENT, RECEIPT } from './method.ts';

/** One element of a batch, or the body itself. */
export type Entry =
  | { readonly kind: 'call'; readonly message: RequestMessage }
  /** A notification. It is not executed, because the client could not be told its cost. */
  | { readonly kind: 'silent' }
  | Refused;

export interface Refused {
  readonly kind: 'refused';
  /** The id as the client wrote it; `null` if it cannot be read. */
  readonly idText: string;
  readonly error: JsonRpcError;
}

/** Reads one entry; undefined if the text is not JSON. */
export function readEntry(text: string): Entry | undefined {
  const message = readClientMessage(text, (params) => ambiguousKeyAt(params, INTERPRETED_FIELDS, 'params.'));
  if (message === undefined) return undefined;
  if (message === null) return faultOf(text);
  if (message.kind === 'ambiguous') {
    const { idText, where, fault } = message;
    return refuse(idText, where === 'params' ? CODE.invalidParams : CODE.invalidRequest, fault.message, fault.param);
  }
  if (message.kind === 'request') return { kind: 'call', message };
  if (message.kind === 'notification') return { kind: 'silent' };
  return refuse('null', CODE.invalidRequest, 'A response cannot be posted here: send requests, with a method');
}

/** The members that this endpoint acts on. The route of the entry checks the others. */
const INTERPRETED_FIELDS: InterpretedFieldsAt = [
  [[], interpretedFields(['_meta'])],
  [['_meta'], interpretedFields([KEY, MAX_COST_META, RECEIPT, PAYMENT])],
];

/** The entry for JSON text that is not a valid request. */
function faultOf(text: string): Entry {
  const { kind, message, param, idText } = messageFault(text);
  // An invalid notification gets no answer, like a valid one.
  if (kind === 'params')
    return idText === null ? { kind: 'silent' } : refuse(idText, CODE.invalidParams, message, param ?? undefined);
  return refuse(idText ?? 'null', CODE.invalidRequest, message);
}

function refuse(idText: string, code: number, message: string, param?: string): Refused {
  return {
    kind: 'refused',
    idText,
    error: { code, message, ...(param === undefined ? {} : { data: { type: 'invalid_request', param } }) },
  };
}
