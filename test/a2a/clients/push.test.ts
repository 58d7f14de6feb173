import { afterEach, describe, expect, test } from 'vitest';
import { startWebhook, tells, type Webhook } from '../contract/webhook.ts';
import { PAIRS, useClientWorld } from './client-world.ts';
import { sendForTask } from './sdk-client.ts';

const { meet } = useClientWorld();

let hook: Webhook | undefined;
afterEach(() => hook?.close());

const configOf = (taskId: string, url: string, id = '') => ({
  tenant: '',
  id,
  taskId,
  url,
  token: 'hook-token',
  authentication: undefined,
});

describe.each(PAIRS)('$name', ({ kind, speaks }) => {
  test('makes, reads, lists and deletes a configuration', async () => {
    const { client, agent } = await meet(kind, speaks);
    hook = await startWebhook();
    const { id: taskId } = await sendForTask(client, 'wait', { immediately: true });
    const { id } = await client.createTaskPushNotificationConfig(configOf(taskId, hook.url));
    expect(await client.getTaskPushNotificationConfig({ tenant: '', taskId, id })).toMatchObject({ id, url: hook.url });
    const listed = () => client.listTaskPushNotificationConfig({ tenant: '', taskId, pageSize: 0, pageToken: '' });
    expect((await listed()).configs.map((config) => config.id)).toEqual([id]);
    await client.deleteTaskPushNotificationConfig({ tenant: '', taskId, id });
    expect((await listed()).configs).toEqual([]);
    agent.finish(taskId);
  });

  test('is told the end of a task at its webhook, in its own version', async () => {
    const { client, agent } = await meet(kind, speaks);
    hook = await startWebhook();
    const { id: taskId } = await sendForTask(client, 'wait', { immediately: true });
    await client.createTaskPushNotificationConfig(configOf(taskId, hook.url));
    agent.finish(taskId);
    const version = kind.startsWith('0.3') ? '0.3' : '1.0';
    const told = await hook.receives((request) => tells(request, version, taskId, 'completed'));
    expect(told.headers['x-a2a-notification-token']).toBe('hook-token');
  });
});
