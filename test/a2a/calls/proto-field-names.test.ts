import { expect, test } from 'vitest';
import {
  heldBy,
  refusalOf,
  LEGACY_REST,
  LEGACY_RPC,
  MESSAGE_PRICE,
  REST,
  RPC,
  useCallsWorld,
} from './support/calls-world.ts';

/*
 * Readers of ProtoJSON take the name of a field in the proto (`task_id`) for its name in JSON (`taskId`). What the
 * gateway reads under the one name goes to the agent under the other, so that both read the same.
 */

const calls = useCallsWorld();

const post = async (url: string, version: string, body: object) => {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${calls.world.spine.key}`,
      'content-type': 'application/json',
      'a2a-version': version,
    },
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
};
const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 'p-1', method, params });

test.each([
  { wire: RPC, method: 'SendMessage', path: '', role: 'ROLE_USER' },
  { wire: LEGACY_RPC, method: 'message/send', path: '', role: 'user' },
  { wire: REST, method: null, path: '/message:send', role: 'ROLE_USER' },
  { wire: LEGACY_REST, method: null, path: '/v1/message:send', role: 'ROLE_USER' },
])('a message by the names of the proto goes on with its task: $wire.name', async ({ wire, method, path, role }) => {
  const { url, agent } = await calls.serve({ version: 'both' });
  expect(
    await calls.spent(async () => {
      const { id, contextId } = heldBy(await calls.talk(url, wire).sent('ask')) as { id: string; contextId: string };
      const part =
        wire.version === '0.3' && method !== null
          ? { kind: 'text', text: 'a_b "task_id":' }
          : { text: 'a_b "task_id":' };
      const message = {
        message_id: 'by-proto',
        task_id: id,
        context_id: contextId,
        reference_task_ids: [],
        role,
        parts: [part],
      };
      const params = {
        message,
        configuration: {
          accepted_output_modes: ['text/plain'],
          history_length: 1,
          ...(wire.version === '0.3' ? { blocking: true } : {}),
        },
      };
      const { status, text } = await post(url + path, wire.version, method === null ? params : rpc(method, params));
      expect(status, text).toBe(200);
      expect(text).toMatch(/completed/i);
      expect(text).toContain(id);
      const [sent] = agent.received.filter(({ body }) => body.includes('by-proto'));
      expect(sent!.body).not.toMatch(
        /message_id|context_id|reference_task_ids|accepted_output_modes|history_length|"task_id":"/,
      );
      expect(sent!.body).toContain(`"taskId":"${id}"`);
      // The text that a part has is nobody's name.
      expect(sent!.body).toContain('a_b');
    }),
  ).toBe(2n * MESSAGE_PRICE);
});

test('a file by the names of the proto, over HTTP+JSON of 0.3, and a message that does not say whose it is', async () => {
  const { url, agent } = await calls.serve({ version: 'both' });
  const file = { mime_type: 'text/plain', file_with_uri: 'https://files.example/a.txt' };
  const { status, text } = await post(`${url}/v1/message:send`, '0.3', {
    message: { message_id: 'a file', content: [{ text: 'mirror' }, { file }] },
    configuration: { blocking: true },
  });
  expect(status, text).toBe(200);
  const { body } = agent.received.find((request) => request.body.includes('a file'))!;
  expect(body).toContain('"uri":"https://files.example/a.txt"');
  expect(body).toContain('"role":"user"');
});

test('a field that stands under both names is refused', async () => {
  const { url, agent } = await calls.serve({ version: 'both' });
  const before = agent.asked.length;
  const message = {
    messageId: 'both',
    role: 'ROLE_USER',
    parts: [{ text: 'task x' }],
    taskId: 'one',
    task_id: 'other',
  };
  for (const [path, body] of [
    ['', rpc('SendMessage', { message })],
    ['/message:send', { message }],
    ['', { message: { ...message, role: 'user' } }],
  ] as const) {
    const { text } = await post(url + path, '1.0', body);
    expect(text).toContain('message.task_id and message.taskId are the same field: send only taskId');
    if ('jsonrpc' in body) expect(JSON.parse(text)).toMatchObject({ id: 'p-1', error: { code: -32_602 } });
  }
  expect(refusalOf(await calls.talk(url, REST).raw('GET', '/tasks?pageSize=2&page_size=3', null))?.message).toContain(
    'page_size and pageSize are the same field: send only pageSize',
  );
  expect(agent.asked.length).toBe(before);
});

test.each([RPC, REST])('lists and histories are bounded by the names of the proto: $name', async (wire) => {
  const { url } = await calls.serve();
  const talk = calls.talk(url, wire);
  const { id, contextId } = await talk.task('task one', {
    message: { contextId: `listed-${wire.name.replaceAll(/\W/g, '-')}` },
  });
  await talk.task('task two', { message: { contextId } });
  const page = await (wire === RPC
    ? talk.call('ListTasks', { context_id: contextId, page_size: 1, include_artifacts: true })
    : talk.raw('GET', `/tasks?context_id=${contextId}&page_size=1&include_artifacts=true`, null));
  expect(page.result()).toMatchObject({ tasks: [{ contextId, artifacts: [{}] }], totalSize: 2, pageSize: 1 });
  const shown = await (wire === RPC
    ? talk.call('GetTask', { id, history_length: 0 })
    : talk.raw('GET', `/tasks/${id}?history_length=0`, null));
  expect((shown.result() as { history?: readonly unknown[] }).history ?? []).toEqual([]);
});

test('push notification configurations by the names of the proto', async () => {
  const { url } = await calls.serve({ version: 'both' });
  const { id } = await calls.talk(url).task('task done');
  const config = { task_id: id, id: 'c-1', url: 'https://client.example/hook' };
  expect((await post(url, '1.0', rpc('CreateTaskPushNotificationConfig', config))).text).toContain(
    '"url":"https://client.example/hook"',
  );
  // As 0.3 has it in its proto, and as its test kit sends it.
  const parent = `tasks/${id}`;
  const inner = { url: 'https://client.example/old', token: '', authentication: {} };
  const { status, text } = await post(`${url}/v1/tasks/${id}/pushNotificationConfigs`, '0.3', {
    parent,
    config_id: 'c-2',
    config: { name: `${parent}/pushNotificationConfigs/c-2`, push_notification_config: inner },
  });
  expect(status, text).toBe(200);
  expect(
    (await calls.talk(url).call('GetTaskPushNotificationConfig', { task_id: id, id: 'c-2' })).result(),
  ).toMatchObject({ url: inner.url });
});
