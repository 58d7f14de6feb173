import { type Members, membersAlong, RawJsonError, syntaxFault, isObject, type JsonObject } from '#wire';

/** The reason why a text is not a valid JSON-RPC 2.0 message. */
interface MessageFault {
  /** The JSON-RPC error code: -32700, -32600 or -32602. */
  readonly kind: 'parse' | 'request' | 'params';
  readonly message: string;
  /** The member that is wrong. */
  readonly param: string | null;
  /** The id for the reply, as it is written; null where no id can be read. */
  readonly idText: string | null;
}

const FORM = 'send {"jsonrpc": "2.0", "id": …, "method": "…", "params": {…}}';

/**
 * Finds the fault of a text that parseMessage refused. parseMessage returns undefined for a text that is not JSON, and
 * null for JSON that is not a message. `parsed`: the value of the text, if it is known.
 */
export function messageFault(text: string, parsed?: unknown): MessageFault {
  let value = parsed;
  try {
    value ??= JSON.parse(text);
  } catch (error) {
    const fault = syntaxFault(text, error);
    return {
      kind: 'parse',
      message: fault === null ? `The body is empty: ${FORM}` : `The body is not valid JSON: ${fault}`,
      param: null,
      idText: null,
    };
  }
  if (!isObject(value))
    return { kind: 'request', message: `A request is an object: ${FORM}`, param: null, idText: null };
  let members: Members;
  try {
    members = membersAlong(text, ['params', '_meta']);
  } catch (error) {
    if (!(error instanceof RawJsonError)) throw error;
    return { kind: 'request', message: `The request is ambiguous: ${error.message}`, param: null, idText: null };
  }
  const place = members.get('id');
  // The id of a response belongs to a request of the gateway. An error with this id would look like the answer to one
  // of the sender's own requests.
  const answers = value['method'] === undefined && (members.has('result') || members.has('error'));
  const idText = place && !answers && isId(value['id']) ? text.slice(place.start, place.end) : null;
  return { ...faultOf(value, members), idText };
}

const isId = (id: unknown): boolean => typeof id === 'string' || Number.isFinite(id);

function faultOf({ jsonrpc, id, method, params, error }: JsonObject, members: Members): Omit<MessageFault, 'idText'> {
  const wrong = (param: string, message: string, kind: 'request' | 'params' = 'request') => ({
    kind,
    message: `${param} must be ${message}`,
    param,
  });
  if (jsonrpc !== '2.0') return wrong('jsonrpc', `"2.0": ${FORM}`);
  if (method === undefined && members.has('error') && !members.has('result')) {
    if (!isObject(error)) return wrong('error', 'an object with a code and a message');
  } else if (method === undefined && members.has('result')) {
    if (members.has('error'))
      return { kind: 'request', message: 'A response has either result or error, not both', param: 'error' };
  } else {
    if (typeof method !== 'string') return wrong('method', `a string: ${FORM}`);
    if (members.has('result') || members.has('error'))
      return {
        kind: 'request',
        message: 'A request has neither result nor error',
        param: members.has('result') ? 'result' : 'error',
      };
  }
  if (members.has('id') ? !isId(id) : method === undefined) return wrong('id', 'a string or a number');
  // By JSON-RPC, params is an object or an array. An array is a valid request, but no method here takes one.
  if (Array.isArray(params)) return wrong('params', 'an object: parameters are given by name', 'params');
  if (params !== undefined && params !== null && !isObject(params))
    return wrong('params', 'an object, or be left out: parameters are given by name');
  const meta = isObject(params) && Object.hasOwn(params, '_meta') ? params['_meta'] : null;
  if (meta !== null && !isObject(meta)) return wrong('params._meta', 'an object', 'params');
  return wrong('error', 'an object with a code, which is a number, and a message, which is a string');
}
