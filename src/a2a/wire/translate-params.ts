import { isObject } from '#wire';
import { drop, editMembers, onObject, type Edit, type Edits } from './edit-members.ts';
import type { Operation } from './methods.ts';
import { messageTo03, messageTo10 } from './translate-message.ts';
import { inlinePushTo03, inlinePushTo10, pushTo03, pushTo10 } from './translate-push.ts';
import type { A2aVersion } from './version.ts';

const not: Edit = (value) => (typeof value === 'boolean' ? !value : value);

const configurationTo10: Edit = onObject((configuration) =>
  editMembers(configuration, {
    blocking: ['returnImmediately', not],
    pushNotificationConfig: ['taskPushNotificationConfig', inlinePushTo10],
  }),
);

/**
 * A request of 1.0 waits by default. Servers of 0.3 differ in their default for `blocking`, so it is always written.
 */
const configurationTo03: Edit = onObject((configuration) => ({
  ...(typeof configuration['returnImmediately'] === 'boolean' ? {} : { blocking: true }),
  ...editMembers(configuration, {
    returnImmediately: ['blocking', (value) => (typeof value === 'boolean' ? !value : undefined)],
    taskPushNotificationConfig: ['pushNotificationConfig', inlinePushTo03],
  }),
}));

const to = (edits: Edits): Edit => onObject((params) => editMembers(params, edits));

const SEND_TO_10 = to({ message: messageTo10, configuration: configurationTo10, tenant: drop });
const SEND_TO_03: Edit = onObject((params) => {
  const sent = editMembers(params, { message: messageTo03, configuration: configurationTo03, tenant: drop });
  return isObject(sent['configuration']) ? sent : { ...sent, configuration: { blocking: true } };
});

const CONFIG_OF_TASK_TO_10 = to({ id: ['taskId'], pushNotificationConfigId: ['id'], metadata: drop, tenant: drop });
const CONFIG_OF_TASK_TO_03 = to({ taskId: ['id'], id: ['pushNotificationConfigId'], tenant: drop });

const TO_10: Readonly<Record<Operation, Edit>> = {
  send: SEND_TO_10,
  stream: SEND_TO_10,
  get: to({ metadata: drop, tenant: drop }),
  list: to({}),
  cancel: to({ tenant: drop }),
  subscribe: to({ metadata: drop, tenant: drop }),
  'push-set': pushTo10,
  'push-get': CONFIG_OF_TASK_TO_10,
  'push-list': CONFIG_OF_TASK_TO_10,
  'push-delete': CONFIG_OF_TASK_TO_10,
  card: to({ tenant: drop }),
};

const TO_03: Readonly<Record<Operation, Edit>> = {
  send: SEND_TO_03,
  stream: SEND_TO_03,
  get: to({ tenant: drop }),
  list: to({ tenant: drop }),
  cancel: to({ tenant: drop }),
  subscribe: to({ tenant: drop }),
  'push-set': pushTo03,
  'push-get': CONFIG_OF_TASK_TO_03,
  'push-list': to({ taskId: ['id'], pageSize: drop, pageToken: drop, tenant: drop }),
  'push-delete': CONFIG_OF_TASK_TO_03,
  card: to({ tenant: drop }),
};

/**
 * Translates the parameters of an operation to another version. Never throws: members of another shape stay unchanged,
 * so that the target can refuse them. `methodOf` tells whether the target has the operation. The README of this room
 * lists the losses.
 */
export function translateParams(operation: Operation, from: A2aVersion, target: A2aVersion, params: unknown): unknown {
  if (from === target) return params;
  return (target === '1.0' ? TO_10 : TO_03)[operation](params);
}
