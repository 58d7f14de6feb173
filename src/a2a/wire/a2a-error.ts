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

export interface A2aErrorRow {
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
