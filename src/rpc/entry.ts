import {
  actedOn,
  type ActedOnAt,
  isObject,
  type JsonRpcError,
  lookAlikeAt,
  MAX_COST_META,
  type Members,
  membersAlong,
  RawJsonError,
  readClientMessage,
  type RequestMessage,
} from '#gateway';
import { CODE } from './errors-rpc.ts';
import { KEY, PAYMENT, RECEIPT } from './method.ts';

/** One element of a batch, or the body itself. */
export type Entry =
  | { readonly kind: 'call'; readonly message: RequestMessage }
  /** A notification: it is not executed, since nobody could be told what it cost. */
  | { readonly kind: 'silent' }
  | Refused;

export interface Refused {
  readonly kind: 'refused';
  /** As it is written; `null` where there is none that can be read. */
  readonly idText: string;
  readonly error: JsonRpcError;
}

/** Reads one entry; undefined where the text is no JSON. */
export function readEntry(text: string): Entry | undefined {
  const message = readClientMessage(text, (params) => lookAlikeAt(params, ACTED_ON, 'params.'));
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

/** What is read here; the door that an entry is for looks at the rest. */
const ACTED_ON: ActedOnAt = [
  [[], actedOn(['_meta'])],
  [['_meta'], actedOn([KEY, MAX_COST_META, RECEIPT, PAYMENT])],
];

const FORM = 'send {"jsonrpc": "2.0", "id": …, "method": "…", "params": {…}}';

/** Why JSON text is no request. */
function faultOf(text: string): Entry {
  const value: unknown = JSON.parse(text);
  if (!isObject(value)) return refuse('null', CODE.invalidRequest, `A request is an object: ${FORM}`);
  let members: Members;
  try {
    members = membersAlong(text, PARAMS_META);
  } catch (error) {
    if (error instanceof RawJsonError) return refuse('null', CODE.invalidRequest, `The request is ambiguous: ${error.message}`);
    throw error;
  }
  const { id, method, params } = value;
  const place = members.get('id');
  const readable = typeof id === 'string' || Number.isFinite(id);
  const idText = place && readable ? text.slice(place.start, place.end) : 'null';
  if (value['jsonrpc'] !== '2.0') return refuse(idText, CODE.invalidRequest, `jsonrpc must be "2.0": ${FORM}`);
  if (typeof method !== 'string') return refuse(idText, CODE.invalidRequest, `method must be a string: ${FORM}`);
  if (members.has('result') || members.has('error')) return refuse(idText, CODE.invalidRequest, 'A request has neither result nor error');
  if (place && !readable) return refuse('null', CODE.invalidRequest, 'id must be a string or a number; without one, nothing is executed');
  if (!place) return { kind: 'silent' };
  if (!isObject(params)) return refuse(idText, CODE.invalidParams, 'params must be an object: parameters are given by name', 'params');
  return refuse(idText, CODE.invalidParams, 'params._meta must be an object', 'params._meta');
}

const PARAMS_META = ['params', '_meta'];

function refuse(idText: string, code: number, message: string, param?: string): Refused {
  return { kind: 'refused', idText, error: { code, message, ...(param === undefined ? {} : { data: { type: 'invalid_request', param } }) } };
}
