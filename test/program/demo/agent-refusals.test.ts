import { afterAll, beforeAll, expect, it } from 'vitest';
import { runDemoProvider, type DemoProvider } from '../../../src/program/demo/provider.ts';

let demo: DemoProvider;
beforeAll(async () => {
  demo = await runDemoProvider();
});
afterAll(() => demo.close());

const message = (more: object = {}) => ({
  message: { messageId: 'm', role: 'user', parts: [{ kind: 'text', text: '2d6' }], ...more },
});
const asked = (method: unknown, params: unknown = message(), id: unknown = 1) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
});

it.each([
  ['no JSON', '{', {}, -32700, null],
  ['a batch', [asked('message/send')], {}, -32600, null],
  ['a bare message', message(), {}, -32600, null],
  ['a notification', { jsonrpc: '2.0', method: 'message/send', params: message() }, {}, -32600, null],
  ['a method that there is not', asked('message/sent'), {}, -32601, 1],
  ['a name of every object', asked('toString'), {}, -32601, 1],
  ['params that are none', asked('message/send', []), {}, -32602, 1],
  ['a message that is none', asked('message/send', { message: 'x' }), {}, -32602, 1],
  ['a message without parts', asked('message/send', message({ parts: [] })), {}, -32602, 1],
  ['a message without an id', asked('message/send', message({ messageId: '' })), {}, -32602, 1],
  ['a context with too long an id', asked('message/send', message({ contextId: 'x'.repeat(257) })), {}, -32602, 1],
  ['a task that there is not', asked('message/send', message({ taskId: 'none' })), {}, -32001, 1],
  ['a task that there is not to look at', asked('GetTask', { id: 'none' }), {}, -32001, 1],
  ['push notifications', asked('CreateTaskPushNotificationConfig', { id: 'none' }), {}, -32003, 1],
  ['lists', asked('ListTasks', {}), {}, -32004, 1],
  ['a version that there is not', asked('SendMessage'), { 'a2a-version': '7.0' }, -32009, 1],
] as const)('refuses %s', async (_what, body, headers, code, id) => {
  const response = await fetch(demo.agentUrl, {
    method: 'POST',
    headers,
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  expect([response.status, await response.json()]).toMatchObject([
    200,
    { jsonrpc: '2.0', id, error: { code, message: expect.any(String) } },
  ]);
});

it('takes no message for a task that is over', async () => {
  const ask = async (params: object) =>
    (await (
      await fetch(demo.agentUrl, { method: 'POST', body: JSON.stringify(asked('message/send', params)) })
    ).json()) as {
      result: { id: string };
    };
  const { result } = await ask(message());
  expect(await ask(message({ taskId: result.id }))).toMatchObject({
    error: { code: -32004, message: 'The task is completed and takes no message now' },
  });
});

it('is for programs of this machine', async () => {
  const refused = await fetch(demo.agentUrl, {
    method: 'POST',
    headers: { origin: 'https://evil.example' },
    body: '{}',
  });
  expect(refused.status).toBe(403);
  expect((await fetch(demo.agentUrl)).status).toBe(405);
  expect((await fetch(`${demo.agentUrl}/elsewhere`)).status).toBe(404);
});
