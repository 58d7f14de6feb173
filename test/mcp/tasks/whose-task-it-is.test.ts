import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { modernPost, toolToml, type A2aHandler } from '../calls/modern-post.ts';
import { askTask, beginTask, getTask } from './task-client.ts';
import { DONE, startTaskServer, type TaskServer } from './task-server.ts';

let servers: TaskServer[];
let spine: Spine;
let other: A2aHandler;
let bound: A2aHandler;
beforeAll(async () => {
  servers = await Promise.all([startTaskServer(), startTaskServer()]);
  const [one, two] = servers as [TaskServer, TaskServer];
  const toml =
    toolToml({ name: 'one', url: one.url }) +
    toolToml({ name: 'two', url: two.url }) +
    toolToml({ name: 'both', url: one.url, provider: 'First' }) +
    toolToml({ name: 'both', url: two.url, provider: 'Second' });
  spine = await startSpine({ toml: UNHURRIED + toml });
  other = { origin: spine.origin, key: (await spine.tenant('other', '1')).key };
  bound = { origin: spine.origin, key: (await spine.tenant('bound', '1', { allowedServices: ['two'] })).key };
});
afterAll(async () => {
  await spine.stop();
  await Promise.all(servers.map((server) => server.close()));
});

const server0 = () => servers[0]!;
const NOT_FOUND = { code: -32_602, message: 'Task not found' };
const OF_TASKS = ['tasks/get', 'tasks/update', 'tasks/cancel'];
const finish = async (path: string, ids: readonly string[], door: A2aHandler = spine) => {
  for (const id of ids) await askTask(door, path, 'tasks/cancel', id);
  expect(await spine.faults()).toEqual([]);
};

test("another account's task is not found, by whatever request, and its server is not asked", async () => {
  const { id } = await beginTask(spine, 'one');
  const own = servers[0]!.ids.at(-1)!;
  for (const path of ['/mcp/one', '/mcp'])
    for (const method of OF_TASKS) expect((await askTask(other, path, method, id)).message.error).toEqual(NOT_FOUND);
  expect(servers[0]!.askedOf(own)).toBe(0);
  await finish('/mcp/one', [id]);
});

test.each(['the id that its server has', 'no id of a task', 'a text with NUL', 'a very long text'])(
  '%s names no task',
  async (what) => {
    const { id } = await beginTask(spine, 'one');
    const named = {
      'the id that its server has': servers[0]!.ids.at(-1)!,
      'no id of a task': 'x',
      'a text with NUL': 'a\0b',
      'a very long text': 'x'.repeat(5_000),
    }[what]!;
    const { message } = await modernPost(
      spine,
      '/mcp/one',
      'tasks/get',
      { taskId: named },
      { headers: nameHeader(named), meta: DECLARED },
    );
    expect(message.error?.code).toBe(-32_602);
    await finish('/mcp/one', [id]);
  },
);

const DECLARED = {
  'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } },
};
const nameHeader = (name: string) => ({ 'mcp-name': `=?base64?${Buffer.from(name).toString('base64')}?=` });

test('a task is found at the address of its service and at that of all, and at no other', async () => {
  const { id } = await beginTask(spine, 'one');
  expect((await getTask(spine, 'one', id)).message.result).toMatchObject({ taskId: id });
  expect((await askTask(spine, '/mcp', 'tasks/get', id)).message.result).toMatchObject({ taskId: id });
  expect((await askTask(spine, '/mcp?services=one', 'tasks/get', id)).message.result).toMatchObject({ taskId: id });
  expect((await askTask(spine, '/mcp?services=two', 'tasks/get', id)).message.error).toEqual(NOT_FOUND);
  expect((await getTask(spine, 'two', id)).message.error).toEqual(NOT_FOUND);
  await finish('/mcp', [id]);
});

test('a task that begins at the address of all services is asked for there, and its result has the URIs of that', async () => {
  const { message } = await modernPost(
    spine,
    '/mcp',
    'tools/call',
    { name: 'one__job', arguments: {} },
    { meta: DECLARED },
  );
  const id = message.result['taskId'] as unknown as string;
  server0().says(server0().ids.at(-1)!, {
    status: 'completed',
    result: { content: [{ type: 'resource_link', name: 'a', uri: 'file:///a' }] },
  });
  const shown = (await askTask(spine, '/mcp', 'tasks/get', id)).message.result;
  expect(shown).toMatchObject({
    taskId: id,
    result: { content: [{ uri: 'one+file:///a' }], _meta: { 'tollgate/generation': { cost: '0.001' } } },
  });
  expect(await spine.faults()).toEqual([]);
});

test('a key that may not use the service does not reach a task of it', async () => {
  const { id } = await beginTask(bound, 'two');
  expect((await getTask(bound, 'two', id)).message.result).toMatchObject({ taskId: id });
  expect((await askTask(bound, '/mcp', 'tasks/get', id)).message.result).toMatchObject({ taskId: id });
  await finish('/mcp/two', [id], bound);
});

test('servers that choose the same id have each their own task', async () => {
  const begun = await Promise.all([
    beginTask(spine, 'one', { taskId: 'task-1' }),
    beginTask(spine, 'two', { taskId: 'task-1' }),
  ]);
  const [one, two] = begun.map(({ id }) => id) as [string, string];
  expect(one).not.toBe(two);
  servers[0]!.says('task-1', DONE);
  expect((await askTask(spine, '/mcp', 'tasks/get', one)).message.result).toMatchObject({
    taskId: one,
    status: 'completed',
  });
  expect((await askTask(spine, '/mcp', 'tasks/get', two)).message.result).toMatchObject({
    taskId: two,
    status: 'working',
  });
  await finish('/mcp', [two]);
});

test('so have two providers of one service', async () => {
  const offers = await Promise.all(['First', 'Second'].map(async (name) => idOf(name)));
  const [one, two] = await Promise.all(
    offers.map((provider) => beginTask(spine, `${provider}:both`, { taskId: 'task-2' })),
  );
  servers[1]!.says('task-2', DONE);
  expect((await getTask(spine, 'both', one!.id)).message.result).toMatchObject({ status: 'working' });
  expect((await getTask(spine, 'both', two!.id)).message.result).toMatchObject({ status: 'completed' });
  expect((await getTask(spine, `${offers[1]}:both`, two!.id)).message.result).toMatchObject({ status: 'completed' });
  await finish('/mcp/both', [one!.id]);
});

async function idOf(name: string): Promise<string> {
  const { data } = (await (await spine.get('/providers')).json()) as { data: readonly { id: string; name: string }[] };
  return data.find((provider) => provider.name === name)!.id;
}

test.each(['plain', 'with space', ' edges ', 'ключ/🗝️?#%', '=?base64?YQ==?=', '../../x', '"quoted\\"', 'line\nbreak'])(
  'an id such as %j reaches its server in the header and in the body',
  async (taskId) => {
    const { id } = await beginTask(spine, 'one', { taskId });
    expect((await getTask(spine, 'one', id)).message.result).toMatchObject({ taskId: id, status: 'working' });
    const got = servers[0]!.asked.findLast(({ method }) => method === 'tasks/get')!;
    expect(got.params['taskId']).toBe(taskId);
    const name = String(got.headers['mcp-name']);
    const encoded = /^=\?base64\?(.*)\?=$/.exec(name);
    expect(encoded ? Buffer.from(encoded[1]!, 'base64').toString() : name).toBe(taskId);
    await finish('/mcp/one', [id]);
  },
);

test('a header that names another task is refused', async () => {
  const { id } = await beginTask(spine, 'one');
  expect((await getTask(spine, 'one', id, { headers: { 'mcp-name': 'x' } })).message.error?.code).toBe(-32_020);
  await finish('/mcp/one', [id]);
});

test('a client that does not declare the extension is told what it lacks', async () => {
  for (const method of OF_TASKS) {
    const { status, message } = await modernPost(
      spine,
      '/mcp/one',
      method,
      { taskId: 'x' },
      { headers: { 'mcp-name': 'x' } },
    );
    expect(status).toBe(400);
    expect(message.error).toMatchObject({
      code: -32_021,
      data: { requiredCapabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } },
    });
  }
});

test('who has no credential has no tasks', async () => {
  const { status } = await getTask(spine, 'one', 'x', { key: null });
  expect(status).toBe(401);
});
