import { expect, test } from 'vitest';
import { refusalOf, REST, RPC, useCallsWorld } from './support/calls-world.ts';

const calls = useCallsWorld();

const post = async (url: string, body: string, version: string, key: string, path = '') => {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'a2a-version': version },
    body,
  });
  return { status: response.status, text: await response.text() };
};

// What agents in other languages take for the members of the protocol: Go any case, and some more. The names of the
// proto are known.
const LOOK_ALIKES = ['TaskId', 'TASKID', 'taskID', 'Task_Id', 'ta\u017fkId', 'tas\u212aId', 'ContextID', 'MessageId'];

test('a member whose name is nearly that of one which counts is refused: an agent could take it for that', async () => {
  const { url, agent } = await calls.serve({ version: 'both' });
  const { spine, stranger } = calls.world;
  const { id } = await calls.talk(url).task('ask');
  const before = agent.asked.length;
  for (const name of LOOK_ALIKES) {
    const message = { messageId: `m ${name}`, role: 'ROLE_USER', parts: [{ text: 'task steal' }], [name]: id };
    const legacy = { ...message, role: 'user', kind: 'message', parts: [{ kind: 'text', text: 'task steal' }] };
    for (const [version, method, said] of [
      ['1.0', 'SendMessage', message],
      ['0.3', 'message/send', legacy],
    ] as const) {
      const { text } = await post(
        url,
        JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { message: said } }),
        version,
        stranger.key,
      );
      expect(text, name).toMatch(/-32602/);
      expect(text).toMatch(/must be written/);
    }
    const rest = await post(url, JSON.stringify({ message }), '1.0', stranger.key, '/message:send');
    expect(rest.status, rest.text).toBe(400);
  }
  for (const params of [
    { id: 'mine', ID: id },
    { id: 'mine', Id: id },
    { message: {}, Message: { taskId: id } },
  ])
    for (const method of ['GetTask', 'CancelTask', 'SubscribeToTask', 'SendMessage'])
      expect(
        (await post(url, JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }), '1.0', spine.key)).text,
      ).toMatch(/must be written/);
  const config = { configuration: { TaskPushNotificationConfig: { url: 'https://client.example' } } };
  const message = { messageId: 'push', role: 'ROLE_USER', parts: [{ text: 'task x' }] };
  const pushed = await post(
    url,
    JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message, ...config } }),
    '1.0',
    spine.key,
  );
  expect(pushed.text).toMatch(/must be written taskPushNotificationConfig/);
  expect(agent.asked.length).toBe(before);
  await calls.talk(url).call('CancelTask', { id });
});

test('a key that stands twice is refused wherever it would count', async () => {
  const { url, agent } = await calls.serve({ version: 'both' });
  const { id } = await calls.talk(url).task('ask');
  const before = agent.asked.length;
  const message = (more: string) => `{"messageId":"twice","role":"ROLE_USER","parts":[{"text":"task x"}]${more}}`;
  const bodies = [
    `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":${message(`,"taskId":"${id}","taskId":""`)}}}`,
    `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":${message(`,"task\\u0049d":"${id}","taskId":"no"`)}}}`,
    `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":${message('')},"message":${message('')}}}`,
    `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":${message(',"metadata":{"a":1,"a":2}')}}}`,
    `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":${message('')},"configuration":{"taskPushNotificationConfig":null,"taskPushNotificationConfig":{"url":"https://x.example"}}}}`,
    `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":${message('').replace('"text":"task x"', '"url":"https://10.0.0.1/a","url":"https://a.example/a"')}}}`,
    `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":${message('').replace('"text":"task x"', '"data":{"a":[{"b":1,"b":2}]}')}}}`,
    `{"jsonrpc":"2.0","id":1,"method":"CancelTask","params":{"id":"${id}","id":"other"}}`,
    `{"jsonrpc":"2.0","id":1,"id":2,"method":"GetTask","params":{"id":"${id}"}}`,
    `{"jsonrpc":"2.0","id":1,"method":"GetTask","method":"CancelTask","params":{"id":"${id}"}}`,
  ];
  for (const body of bodies) {
    const { status, text } = await post(url, body, '1.0', calls.world.spine.key);
    expect(status, text).toBeLessThan(500);
    expect(text).toMatch(/-3260[02]/);
  }
  // HTTP+JSON is read here and written anew: the agent sees what counted.
  const rest = await post(
    url,
    `{"message":${message(`,"metadata":{"a":1,"a":2}`)}}`,
    '1.0',
    calls.world.spine.key,
    '/message:send',
  );
  expect(rest.status, rest.text).toBe(200);
  expect(agent.asked.length).toBe(before + 1);
  expect(agent.asked.at(-1)!.body).not.toMatch(/"a":1/);
  await calls.talk(url).call('CancelTask', { id });
});

const FILE = '"uri":"http://169.254.169.254/latest","uri":"https://files.example/a.png"';
const PART = '{"kind":"text","text":"task x"}';
const PUSH =
  '"url":"https://client.example","authentication":{"schemes":["Bearer"],"credentials":"a","credentials":"b"}';
const TWO_RUNS = '"metadata":{"tollgate/run":{"token":"a"},"tollgate/run":{"token":"b"}}';

test.each([
  ['the address of a file', `[${PART},{"kind":"file","file":{${FILE}}}]`, ''],
  ['an escaped address', `[{"kind":"file","file":{${FILE.replace('"uri"', '"\\u0075ri"')}}}]`, ''],
  ['a file', `[{"kind":"file","file":{"uri":"http://10.0.0.1/a"},"file":{"uri":"https://files.example/a"}}]`, ''],
  ['the url of a part', `[{"url":"http://10.0.0.1/a","url":"https://files.example/a"}]`, ''],
  ['a run token', `[${PART}]`, `,${TWO_RUNS}`],
  ['a secret for a webhook', `[${PART}]`, `,"configuration":{"pushNotificationConfig":{${PUSH}}}`],
])('%s that stands twice is refused, and no agent gets it', async (_what, parts, more) => {
  const { url, agent } = await calls.serve({ version: 'both' });
  const before = agent.asked.length;
  const params = `{"message":{"kind":"message","messageId":"${crypto.randomUUID()}","role":"user","parts":${parts}}${more}}`;
  const { status, text } = await post(
    url,
    `{"jsonrpc":"2.0","id":1,"method":"message/send","params":${params}}`,
    '0.3',
    calls.world.spine.key,
  );
  expect(status, text).toBe(200);
  const { error } = JSON.parse(text) as { error?: { code: number; message: string } };
  expect(error).toMatchObject({ code: -32_602, message: expect.stringMatching(/ambiguous: duplicate key/) as unknown });
  expect(agent.asked.length).toBe(before);
});

test('names that objects have of their own are names like others', async () => {
  const { url, agent } = await calls.serve({ version: 'both' });
  const odd =
    '{"__proto__":{"taskId":"x"},"constructor":{"prototype":{}},"toString":1,"hasOwnProperty":null,"valueOf":[]}';
  for (const [version, method] of [
    ['1.0', 'SendMessage'],
    ['0.3', 'message/send'],
  ] as const) {
    const part =
      version === '1.0' ? `{"text":"task x","xOdd":${odd}}` : `{"kind":"text","text":"task x","xOdd":${odd}}`;
    const message = `{"messageId":"odd ${version}","role":"${version === '1.0' ? 'ROLE_USER' : 'user'}","kind":"message","parts":[${part}],"metadata":${odd},"__proto__":{"taskId":"stolen"}}`;
    const { status, text } = await post(
      url,
      `{"jsonrpc":"2.0","id":1,"method":"${method}","params":{"message":${message.replace(version === '1.0' ? '"kind":"message",' : '', '')},"metadata":${odd}}}`,
      version,
      calls.world.spine.key,
    );
    expect(status, text).toBe(200);
    expect(text, text).toMatch(/completed/i);
  }
  for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
    expect(refusalOf(await calls.talk(url).call('GetTask', { id: name }))?.code).toBe(-32_001);
    expect(refusalOf(await calls.talk(`${calls.world.spine.origin}/a2a/${name}`).sent('x'))?.message).toMatch(
      /Agent not found/,
    );
    const method = await post(
      url,
      JSON.stringify({ jsonrpc: '2.0', id: 1, method: name, params: {} }),
      '1.0',
      calls.world.spine.key,
    );
    expect(method.text).toMatch(/-32601/);
    const sent = await calls.talk(url, RPC).sent('task y', { message: { messageId: name, contextId: name } });
    expect(refusalOf(sent)).toBeNull();
    expect(refusalOf(await calls.talk(url, REST).call('GetTask', { id: name }))?.status).toBe(404);
  }
  expect(({} as { taskId?: string }).taskId).toBeUndefined();
  expect(agent.asked.length).toBeGreaterThan(0);
});
