import { dataInBody, eachError, type ErrorCode } from '#errors';
import { errorText, type JsonRpcError } from '#json-rpc';
import { toGatewayError } from '#http';
import type { A2aVersion } from './protocol.ts';

/**
 * Errors of the protocol: those of JSON-RPC, and those of A2A by their names without `Error`. `code`: the code on
 * JSON-RPC. `status` and `canonical`: the status and canonical code of the HTTP+JSON binding (1.0.1 section 5.4; 0.3
 * section 8.2 has the first seven and no canonical codes). `reason`: for the `google.rpc.ErrorInfo` of 1.0.
 */
export const A2A_ERRORS = {
  ParseError: { code: -32700, status: 400, canonical: 'INVALID_ARGUMENT', reason: 'PARSE_ERROR' },
  InvalidRequest: { code: -32600, status: 400, canonical: 'INVALID_ARGUMENT', reason: 'INVALID_REQUEST' },
  MethodNotFound: { code: -32601, status: 404, canonical: 'NOT_FOUND', reason: 'METHOD_NOT_FOUND' },
  InvalidParams: { code: -32602, status: 400, canonical: 'INVALID_ARGUMENT', reason: 'INVALID_PARAMS' },
  InternalError: { code: -32603, status: 500, canonical: 'INTERNAL', reason: 'INTERNAL_ERROR' },
  TaskNotFound: { code: -32001, status: 404, canonical: 'NOT_FOUND', reason: 'TASK_NOT_FOUND' },
  TaskNotCancelable: { code: -32002, status: 400, canonical: 'FAILED_PRECONDITION', reason: 'TASK_NOT_CANCELABLE' },
  PushNotificationNotSupported: {
    code: -32003,
    status: 400,
    canonical: 'FAILED_PRECONDITION',
    reason: 'PUSH_NOTIFICATION_NOT_SUPPORTED',
  },
  UnsupportedOperation: {
    code: -32004,
    status: 400,
    canonical: 'FAILED_PRECONDITION',
    reason: 'UNSUPPORTED_OPERATION',
  },
  ContentTypeNotSupported: {
    code: -32005,
    status: 400,
    canonical: 'INVALID_ARGUMENT',
    reason: 'CONTENT_TYPE_NOT_SUPPORTED',
  },
  InvalidAgentResponse: { code: -32006, status: 500, canonical: 'INTERNAL', reason: 'INVALID_AGENT_RESPONSE' },
  ExtendedAgentCardNotConfigured: {
    code: -32007,
    status: 400,
    canonical: 'FAILED_PRECONDITION',
    reason: 'EXTENDED_AGENT_CARD_NOT_CONFIGURED',
  },
  ExtensionSupportRequired: {
    code: -32008,
    status: 400,
    canonical: 'FAILED_PRECONDITION',
    reason: 'EXTENSION_SUPPORT_REQUIRED',
  },
  VersionNotSupported: { code: -32009, status: 400, canonical: 'FAILED_PRECONDITION', reason: 'VERSION_NOT_SUPPORTED' },
} as const satisfies Record<string, A2aErrorRow>;

interface A2aErrorRow {
  readonly code: number;
  readonly status: number;
  readonly canonical: string;
  readonly reason: string;
}

export type A2aErrorName = keyof typeof A2A_ERRORS;

interface A2aErrorOptions {
  /** The path of the wrong member, such as `message.parts[0].text`. */
  readonly param?: string | undefined;
  /** More helpful texts by name, such as the id of the task. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

/** An error that A2A names and the gateway's error codes do not include. `message` is shown to the client. */
export class A2aError extends Error {
  override readonly name = 'A2aError';
  readonly type: A2aErrorName;
  readonly param: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  constructor(type: A2aErrorName, message: string, { param, metadata = {} }: A2aErrorOptions = {}) {
    super(message);
    this.type = type;
    this.param = param;
    this.metadata = metadata;
  }
}

const BY_CODE: ReadonlyMap<number, A2aErrorName> = new Map(
  Object.entries(A2A_ERRORS).map(([name, { code }]) => [code, name as A2aErrorName]),
);

/** The name of an error by its code on JSON-RPC; null for a code that neither JSON-RPC nor A2A defines. */
export const errorNameOf = (code: number): A2aErrorName | null => BY_CODE.get(code) ?? null;

/** Errors of the gateway for which A2A has a name of its own. */
const NAMED: Partial<Record<ErrorCode, A2aErrorName>> = { not_found: 'TaskNotFound', expired: 'TaskNotFound' };

/**
 * The gateway's errors in both bindings. `rpcStatus`: the HTTP status on JSON-RPC. HTTP+JSON uses `status`, `canonical`
 * and `reason`.
 */
export const A2A_GATEWAY_ERRORS = eachError(
  ({ jsonRpc, canonical, rpcStatus = 200, status, protocolStatus = status }, code) => {
    const name = NAMED[code] ?? errorNameOf(jsonRpc);
    const error = name === null ? { code: jsonRpc, reason: code.toUpperCase() } : A2A_ERRORS[name];
    return { code: error.code, rpcStatus, status: protocolStatus, canonical, reason: error.reason };
  },
);

export type A2aBinding = 'jsonrpc' | 'rest';

/**
 * The media type of replies over HTTP+JSON: 1.0.1 section 11.1; 0.3 section 3.2.3. `accept`: the request's header. A
 * client that takes plain JSON alone gets it, because some clients do not read an error of another type.
 */
export function restMediaType(version: A2aVersion, accept: string | undefined): string {
  if (version === '0.3') return 'application/json';
  return accept !== undefined && PLAIN_JSON.test(accept) && !/a2a\+json|\*/i.test(accept)
    ? 'application/json'
    : 'application/a2a+json';
}

const PLAIN_JSON = /(?:^|[\s,])application\/json(?=$|[\s;,])/i;

interface A2aErrorTarget {
  readonly version: A2aVersion;
  readonly binding: A2aBinding;
  /** The id of the request as JSON text, on JSON-RPC; `null` if it is not known. */
  readonly idText?: string;
  /** The request was a bare message. Its error has the form of JSON-RPC and the status of HTTP+JSON. Default: false. */
  readonly bare?: boolean;
}

export interface A2aErrorReply {
  readonly status: number;
  /** The headers without `content-type`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** Turns a thrown value into an error of A2A: an A2aError, a GatewayError, or (anything else) an internal error. */
export function toA2aError(
  thrown: unknown,
  { version, binding, idText = 'null', bare = false }: A2aErrorTarget,
): A2aErrorReply {
  const fault = faultOf(thrown, version);
  const headers: Record<string, string> = { ...fault.headers };
  if (fault.retryAfterS !== undefined) headers['retry-after'] = String(fault.retryAfterS);
  const error = toJsonRpcError(fault, version);
  if (binding === 'jsonrpc')
    return { status: bare ? fault.row.status : fault.row.rpcStatus, headers, text: errorText(idText, error) };
  return { status: fault.row.status, headers, text: JSON.stringify(restBody(fault, version)) };
}

/**
 * The error value for an event in a started stream: the member `error` of JSON-RPC, or (REST) the data of an event
 * named `error`.
 */
export function errorValue(thrown: unknown, { version, binding }: A2aErrorTarget): object {
  const fault = faultOf(thrown, version);
  return binding === 'jsonrpc' ? toJsonRpcError(fault, version) : restBody(fault, version);
}

interface A2aFault {
  readonly row: A2aErrorRow & { readonly rpcStatus: number };
  /** The gateway's error code, as in the other protocols; null for errors of the protocol. */
  readonly type: ErrorCode | null;
  readonly message: string;
  readonly param: string | undefined;
  readonly retryAfterS: number | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  readonly more: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
}

function faultOf(thrown: unknown, version: A2aVersion): A2aFault {
  if (thrown instanceof A2aError) {
    const { type, message, param, metadata } = thrown;
    return {
      row: { ...rowOf(type, version), rpcStatus: 200 },
      type: null,
      message,
      param,
      retryAfterS: undefined,
      metadata,
      more: {},
      headers: {},
    };
  }
  const error = toGatewayError(thrown ?? new Error('nothing was thrown'));
  const { code, message, param, retryAfterS, headers = {} } = error;
  const seconds = retryAfterS === undefined ? undefined : Math.max(1, Math.ceil(retryAfterS));
  return {
    row: A2A_GATEWAY_ERRORS[code],
    type: code,
    message,
    param,
    retryAfterS: seconds,
    metadata: {},
    more: dataInBody(error),
    headers,
  };
}

/**
 * The row of an error in a version. 0.3 has no error for required extensions. The error for an unsupported version has
 * the same code in both versions.
 */
const rowOf = (type: A2aError['type'], version: A2aVersion): A2aErrorRow =>
  version === '0.3' && type === 'ExtensionSupportRequired' ? A2A_ERRORS.UnsupportedOperation : A2A_ERRORS[type];

function toJsonRpcError(fault: A2aFault, version: A2aVersion): JsonRpcError {
  const data = version === '1.0' ? detailsOf(fault) : plainData(fault);
  return { code: fault.row.code, message: fault.message, ...(data === undefined ? {} : { data }) };
}

/** On HTTP+JSON, 0.3 uses the JSON-RPC error unchanged; 1.0 follows AIP-193 (section 11.6). */
function restBody(fault: A2aFault, version: A2aVersion): object {
  if (version === '0.3') return toJsonRpcError(fault, version);
  const { status, canonical } = fault.row;
  return { error: { code: status, status: canonical, message: fault.message, details: detailsOf(fault) } };
}

const ERROR_INFO = 'type.googleapis.com/google.rpc.ErrorInfo';
const STRUCT = 'type.googleapis.com/google.protobuf.Struct';

/** 1.0 section 9.5: an array of `google.protobuf.Any`, with an ErrorInfo first. */
function detailsOf({ row, type, message, param, retryAfterS, metadata, more }: A2aFault): object[] {
  const isOurs = row.code <= -32010 && row.code >= -32019;
  const context = { ...metadata, ...(type === null ? {} : { type }), ...(param === undefined ? {} : { param }) };
  return [
    {
      '@type': ERROR_INFO,
      reason: row.reason,
      domain: isOurs ? 'tollgate' : 'a2a-protocol.org',
      ...(Object.keys(context).length === 0 ? {} : { metadata: context }),
    },
    ...(param === undefined
      ? []
      : [
          {
            '@type': 'type.googleapis.com/google.rpc.BadRequest',
            fieldViolations: [{ field: param, description: message }],
          },
        ]),
    ...(retryAfterS === undefined
      ? []
      : [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${retryAfterS}s` }]),
    ...(Object.keys(more).length === 0 ? [] : [{ '@type': STRUCT, value: more }]),
  ];
}

function plainData({ type, param, retryAfterS, metadata, more }: A2aFault): object | undefined {
  const data = {
    ...(type === null ? {} : { type }),
    ...(param === undefined ? {} : { param }),
    ...(retryAfterS === undefined ? {} : { retry_after_s: retryAfterS }),
    ...more,
  };
  // An object with the task's id alone says nothing new, and clients of Go cannot read an object here.
  return Object.keys(data).length === 0 ? undefined : { ...metadata, ...data };
}

/**
 * Translates an agent's JSON-RPC error to another version. Code and message stay. In 1.0 `data` is an array of details,
 * with an ErrorInfo for the codes of A2A. In 0.3 `data` may be any value; it goes into that array as a Struct.
 */
export function translateError(from: A2aVersion, target: A2aVersion, error: JsonRpcError): JsonRpcError {
  const { code, message, data } = error;
  if (from === target || target === '0.3' || Array.isArray(data)) return error;
  const name = errorNameOf(code);
  const details = [
    ...(name === null || code <= -32100
      ? []
      : [{ '@type': ERROR_INFO, reason: A2A_ERRORS[name].reason, domain: 'a2a-protocol.org' }]),
    ...(data === undefined || data === null ? [] : [{ '@type': STRUCT, value: data }]),
  ];
  return details.length === 0 ? { code, message } : { code, message, data: details };
}
