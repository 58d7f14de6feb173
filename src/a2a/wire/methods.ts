import type { A2aVersion } from './version.ts';

/** Operations of an agent, for all versions and bindings. */
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
export type Operation = (typeof OPERATIONS)[number];

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
} as const satisfies Record<A2aVersion, Partial<Record<Operation, string>>>;

const BY_NAME: ReadonlyMap<string, { readonly version: A2aVersion; readonly operation: Operation }> = new Map(
  (['0.3', '1.0'] as const).flatMap((version) =>
    Object.entries(METHODS[version]).map(
      ([operation, name]) => [name, { version, operation: operation as Operation }] as const,
    ),
  ),
);

/** The operation of a method in this version; null if the version has no such method. */
export function operationOf(version: A2aVersion, method: string): Operation | null {
  const found = BY_NAME.get(method);
  return found?.version === version ? found.operation : null;
}

/**
 * The version and the operation of a method of any version, for clients that send no version. null for an unknown name.
 */
export function findMethod(method: string): { readonly version: A2aVersion; readonly operation: Operation } | null {
  return BY_NAME.get(method) ?? null;
}

/** The method of an operation; null if the version has no such method (0.3 cannot list tasks). */
export function methodOf(version: A2aVersion, operation: Operation): string | null {
  const names: Partial<Record<Operation, string>> = METHODS[version];
  return names[operation] ?? null;
}

/** Whether a successful answer is a stream of events. */
export const isStreaming = (operation: Operation): boolean => operation === 'stream' || operation === 'subscribe';
