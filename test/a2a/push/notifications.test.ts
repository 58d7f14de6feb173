import { describe, expect, test } from 'vitest';
import { WEBHOOK_BODY_BYTES_MAX } from '#webhooks';
import { notificationOf } from '../../../src/a2a/protocol/notifications.ts';
import type { A2aVersion } from '../../../src/a2a/wire/protocol.ts';
import { listenForNews } from '../../gateway/webhooks/webhook-world.ts';
import { keyOf } from '../../gateway/tasks/tasks-world.ts';
import { caller, pushWorld } from './push-world.ts';

const task03 = (state: string, more: object = {}) => ({
  kind: 'task',
  id: 'task-1',
  contextId: 'c',
  status: { state },
  ...more,
});
const task10 = (state: string, more: object = {}) => ({
  id: 'task-1',
  contextId: 'c',
  status: { state: `TASK_STATE_${state}` },
  ...more,
});
const status03 = {
  kind: 'status-update',
  taskId: 'task-1',
  contextId: 'c',
  status: { state: 'completed' },
  final: true,
};
const status10 = { taskId: 'task-1', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } };
const artifact10 = { taskId: 'task-1', contextId: 'c', artifact: { artifactId: 'a', parts: [{ text: 'x' }] } };

const told = (version: A2aVersion, value: unknown, form: string) => {
  const content = notificationOf(version, value)?.contentOf(form) ?? null;
  return content && { contentType: content.contentType, body: JSON.parse(content.body) as unknown };
};

describe('what a receiver of 1.0 gets is a StreamResponse', () => {
  test.each<[string, A2aVersion, unknown, unknown]>([
    ['a wrapped task', '1.0', { task: task10('WORKING') }, { task: task10('WORKING') }],
    ['a bare task, as it was asked for', '1.0', task10('WORKING'), { task: task10('WORKING') }],
    ['a status update', '1.0', { statusUpdate: status10 }, { statusUpdate: status10 }],
    ['an artifact update', '1.0', { artifactUpdate: artifact10 }, { artifactUpdate: artifact10 }],
    ['a task of 0.3', '0.3', task03('working'), { task: task10('WORKING') }],
    [
      'a task of 0.3 that forgot its kind',
      '0.3',
      { ...task03('working'), kind: undefined },
      { task: task10('WORKING') },
    ],
    ['a status update of 0.3', '0.3', status03, { statusUpdate: status10 }],
  ])('%s', (_what, version, value, body) => {
    expect(told(version, value, '1.0')).toEqual({ contentType: 'application/a2a+json', body });
  });
});

describe('what a receiver of 0.3 gets is a Task', () => {
  test.each<[string, A2aVersion, unknown, unknown]>([
    ['a task', '0.3', task03('working'), task03('working')],
    ['a status update', '0.3', status03, task03('completed')],
    ['a task of 1.0', '1.0', { task: task10('WORKING') }, task03('working')],
    ['a status update of 1.0', '1.0', { statusUpdate: status10 }, task03('completed')],
  ])('%s', (_what, version, value, body) => {
    expect(told(version, value, '0.3')).toEqual({ contentType: 'application/json', body });
  });

  test('and nothing of an artifact, which is no task', () => {
    expect(told('1.0', { artifactUpdate: artifact10 }, '0.3')).toBeNull();
  });
});

test('messages and what is no event are told to nobody', () => {
  for (const value of [
    { message: { messageId: 'm', role: 'ROLE_AGENT', parts: [] } },
    {},
    null,
    [],
    'x',
    7,
    { task: 1 },
    { __proto__: null },
  ]) {
    expect(notificationOf('1.0', value)).toBeNull();
    expect(notificationOf('0.3', value)).toBeNull();
  }
});

test('a task that is too large is told without what was made and said', () => {
  const large = {
    artifacts: [{ artifactId: 'a', parts: [{ kind: 'text', text: 'x'.repeat(WEBHOOK_BODY_BYTES_MAX) }] }],
    history: [],
  };
  const timestamp = '2026-11-20T10:00:00Z';
  const value = { ...task03('completed', large), status: { state: 'completed', timestamp, message: { text: 'y' } } };
  expect(told('0.3', value, '0.3')!.body).toEqual({
    kind: 'task',
    id: 'task-1',
    contextId: 'c',
    status: { state: 'completed', timestamp },
  });
  expect(told('0.3', value, '1.0')!.body).toEqual({
    task: { id: 'task-1', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED', timestamp } },
  });
  const artifact = {
    ...artifact10,
    artifact: { artifactId: 'a', parts: [{ text: 'x'.repeat(WEBHOOK_BODY_BYTES_MAX) }] },
  };
  expect(told('1.0', { artifactUpdate: artifact }, '1.0')).toBeNull();
});

test('the same is told once by whatever path it was seen, each in the version of its client, with its secrets, in order', async () => {
  const { answer, begin, push, webhooks } = await pushWorld();
  await begin();
  const [modern, legacy, other] = [await listenForNews(), await listenForNews(), await listenForNews()];
  await answer('1.0', 'push-set', {
    taskId: 'task-1',
    url: modern.url,
    token: 't10',
    authentication: { scheme: 'Bearer', credentials: 'c10' },
  });
  await answer('0.3', 'push-set', {
    taskId: 'task-1',
    pushNotificationConfig: { url: legacy.url, token: 't03', authentication: { schemes: ['Basic'] } },
  });
  await begin('task-2');
  await answer('1.0', 'push-set', { taskId: 'task-2', url: other.url });

  const key = keyOf('task-1');
  for (const state of ['submitted', 'working', 'working', 'input-required', 'completed', 'completed'])
    push.notify(key, { version: '0.3' }, task03(state));
  await Promise.all([modern.until(4), legacy.until(4)]);
  await webhooks.run();

  const states = ['submitted', 'working', 'input-required', 'completed'];
  expect(legacy.got.map(({ body }) => (JSON.parse(body) as ReturnType<typeof task03>).status.state)).toEqual(states);
  expect(modern.got.map(({ body }) => JSON.parse(body) as unknown)).toEqual(
    states.map((state) => ({ task: task10(state.toUpperCase().replace('-', '_')) })),
  );
  for (const { headers } of modern.got) {
    expect(headers).toMatchObject({
      'a2a-version': '1.0',
      'x-a2a-notification-token': 't10',
      authorization: 'Bearer c10',
      'content-type': 'application/a2a+json',
    });
  }
  for (const { headers } of legacy.got) {
    expect(headers).toMatchObject({
      'a2a-version': '0.3',
      'x-a2a-notification-token': 't03',
      'content-type': 'application/json',
    });
    expect(headers).not.toHaveProperty('authorization');
  }
  expect(other.got).toEqual([]);
});

test('parts of an artifact that say the same are all told', async () => {
  const { answer, begin, push, webhooks } = await pushWorld();
  await begin();
  const receiver = await listenForNews();
  await answer('1.0', 'push-set', { taskId: 'task-1', url: receiver.url });
  for (let n = 0; n < 3; n += 1)
    push.notify(keyOf('task-1'), { version: '1.0' }, { artifactUpdate: { ...artifact10, append: true } });
  await receiver.until(3);
  await webhooks.run();
  expect(receiver.got).toHaveLength(3);
});

test('a configuration that came with a message is kept as one that was set', async () => {
  const { answer, begin, push } = await pushWorld();
  await begin();
  const ask = { caller: caller('alice'), version: '1.0' } as Parameters<typeof push.keep>[0];
  const config = { id: null, taskId: null, url: 'https://client.example/', token: 't', authentication: null };
  await push.keep(ask, 'acme/agent', 'task-1', config);
  expect(await answer('1.0', 'push-list', { taskId: 'task-1' })).toMatchObject({
    configs: [{ url: config.url, taskId: 'task-1' }],
  });
  // A repeat of the message has the same again, and another message may have another token for the same receiver.
  await push.keep(ask, 'acme/agent', 'task-1', config);
  await push.keep(ask, 'acme/agent', 'task-1', { ...config, token: 'another' });
  expect(await answer('1.0', 'push-list', { taskId: 'task-1' })).toMatchObject({ configs: [{}, {}] });
  await expect(push.keep(ask, 'acme/agent', 'task-1', { ...config, url: 'ftp://a' })).rejects.toThrow(
    'configuration.taskPushNotificationConfig.url',
  );
});

test('of what failed nothing secret is told to the log', async () => {
  const { answer, begin, push, webhooks, lost, errors } = await pushWorld();
  await begin();
  const receiver = await listenForNews((_got, response) => void response.writeHead(400).end('secret-answer'));
  const auth = { scheme: 'Bearer', credentials: 'secret-credentials' };
  await answer('1.0', 'push-set', {
    taskId: 'task-1',
    url: `${receiver.url}/secret-path?key=secret-query`,
    token: 'secret-token',
    authentication: auth,
  });
  push.notify(keyOf('task-1'), { version: '0.3' }, task03('working', { metadata: { a: 'secret-content' } }));
  await receiver.until(1);
  await webhooks.run();
  expect(lost).toHaveLength(1);
  expect(JSON.stringify([lost, errors])).not.toContain('secret');
});
