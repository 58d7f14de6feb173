/** The supported versions of A2A, as `Major.Minor`. */
const A2A_VERSIONS = ['0.3', '1.0'] as const;
export type A2aVersion = (typeof A2A_VERSIONS)[number];

/** The header with the version, in lower case as in Node. The query parameter has the same name in any case. */
export const VERSION_HEADER = 'a2a-version';

export type VersionReading =
  | { readonly version: A2aVersion; readonly fault?: never }
  | { readonly version?: never; readonly fault: string };

/**
 * The version of a request: from the header, else the query parameter (A2A 1.0 section 3.6.1), else 0.3 (section
 * 3.6.2). A patch number is ignored, as the specification requires. Any other version is a fault, which is answered
 * with VersionNotSupported.
 */
export function readVersion(header: unknown, query?: unknown): VersionReading {
  const text = textOf(header) || textOf(query);
  if (text === '') return { version: '0.3' };
  const version = versionOf(text);
  return version === null
    ? { fault: `A2A version ${quote(text)} is not supported here: use ${A2A_VERSIONS.join(' or ')}` }
    : { version };
}

/** The version in a text such as `1.0` or `0.3.0`; null for any other text. */
export function versionOf(text: unknown): A2aVersion | null {
  const match = typeof text === 'string' ? /^(\d{1,4}\.\d{1,4})(?:\.\d{1,9})?$/.exec(text.trim())?.[1] : undefined;
  return A2A_VERSIONS.find((version) => version === match) ?? null;
}

/** Reads a repeated value as one value if all its copies are equal. */
function textOf(value: unknown): string {
  if (value === undefined) return '';
  if (typeof value === 'string' && !value.includes(',')) return value.trim();
  const values = (Array.isArray(value) ? value : [value]).filter((one) => one !== undefined && one !== null);
  const texts = new Set(
    values.flatMap((one) => (typeof one === 'string' ? one.split(',') : ['?'])).map((one) => one.trim()),
  );
  texts.delete('');
  return [...texts].join(', ');
}

const quote = (text: string): string => JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);

/** The query parameter with the version, its name in any case; undefined if it is absent. `query` is decoded. */
export function versionQuery({ query }: { readonly query: unknown }): unknown {
  if (typeof query !== 'object' || query === null) return undefined;
  for (const [name, value] of Object.entries(query)) if (name.toLowerCase() === VERSION_HEADER) return value;
  return undefined;
}

export const OPERATIONS = [
  'send',
  'stream',
  'get',
  'list',
  'cancel',
  'subscribe',
  'push-set',
  'push-get',
  'push-list',
  'push-delete',
  'card',
] as const;
export type A2aOperation = (typeof OPERATIONS)[number];

/**
 * The names of the methods on JSON-RPC (0.3 section 3.5.6, 1.0 section 5.3). Methods that a version does not have are
 * missing from its table. No name is in both tables, so a name implies its version.
 */
export const METHODS = {
  '0.3': {
    send: 'message/send',
    stream: 'message/stream',
    get: 'tasks/get',
    cancel: 'tasks/cancel',
    subscribe: 'tasks/resubscribe',
    'push-set': 'tasks/pushNotificationConfig/set',
    'push-get': 'tasks/pushNotificationConfig/get',
    'push-list': 'tasks/pushNotificationConfig/list',
    'push-delete': 'tasks/pushNotificationConfig/delete',
    card: 'agent/getAuthenticatedExtendedCard',
  },
  '1.0': {
    send: 'SendMessage',
    stream: 'SendStreamingMessage',
    get: 'GetTask',
    list: 'ListTasks',
    cancel: 'CancelTask',
    subscribe: 'SubscribeToTask',
    'push-set': 'CreateTaskPushNotificationConfig',
    'push-get': 'GetTaskPushNotificationConfig',
    'push-list': 'ListTaskPushNotificationConfigs',
    'push-delete': 'DeleteTaskPushNotificationConfig',
    card: 'GetExtendedAgentCard',
  },
} as const satisfies Record<A2aVersion, Partial<Record<A2aOperation, string>>>;

const BY_NAME: ReadonlyMap<string, { readonly version: A2aVersion; readonly operation: A2aOperation }> = new Map(
  (['0.3', '1.0'] as const).flatMap((version) =>
    Object.entries(METHODS[version]).map(
      ([operation, name]) => [name, { version, operation: operation as A2aOperation }] as const,
    ),
  ),
);

/** The operation of a method in this version; null if the version has no such method. */
export function operationOf(version: A2aVersion, method: string): A2aOperation | null {
  const operation = BY_NAME.get(method);
  return operation?.version === version ? operation.operation : null;
}

/**
 * The version and the operation of a method of any version, for clients that send no version. null for an unknown name.
 */
export function findMethod(method: string): { readonly version: A2aVersion; readonly operation: A2aOperation } | null {
  return BY_NAME.get(method) ?? null;
}

/** The method of an operation; null if the version has no such method (0.3 cannot list tasks). */
export function methodOf(version: A2aVersion, operation: A2aOperation): string | null {
  const names: Partial<Record<A2aOperation, string>> = METHODS[version];
  return names[operation] ?? null;
}

export const isStreaming = (operation: A2aOperation): boolean => operation === 'stream' || operation === 'subscribe';

/** The payment extension: a client without a balance can pay for one task. */
export const X402_EXTENSION = 'https://github.com/google-agentic-commerce/a2a-x402/blob/main/spec/v0.2';

/**
 * The common prefix of the URIs of all versions of the payment extension. An agent's entries with it are removed,
 * because the agent would be paid without the gateway.
 */
export const X402_FAMILY = 'https://github.com/google-agentic-commerce/a2a-x402/';

/** Names in message metadata of the x402 extension for A2A (v0.2, section 7). */
export const X402 = {
  status: 'x402.payment.status',
  required: 'x402.payment.required',
  payload: 'x402.payment.payload',
  receipts: 'x402.payment.receipts',
  error: 'x402.payment.error',
} as const;
