import { afterEach, expect, test } from 'vitest';
import { UNHURRIED } from '../../support/spine.ts';
import { toolToml } from '../calls/modern-post.ts';
import { askTask, beginTask, callDeclared, getTask } from './task-client.ts';
import { DONE, startTaskServer } from './task-server.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

let ahead = 0;
const server = ofFile(startTaskServer, (one) => one.close());
const spine = spineOfFile(() => {
  const toml = `${UNHURRIED}[upstream]\ncooldown_ms = 0\nreply_bytes_max = 1048576\n[tasks]\nttl_ms = 600000\n${toolToml({ name: 'liar', url: server.url })}`;
  return { toml, now: () => Date.now() + ahead };
});
afterEach(() => {
  server.instead = () => undefined;
});

const spentOn = async (run: () => Promise<unknown>) => {
  const before = (await spine.balance()).available;
  await run();
  expect(await spine.faults()).toEqual([]);
  return before - (await spine.balance()).available;
};

test.each([
  ['no id', { taskId: null }],
  ['an empty id', { taskId: '' }],
  ['an id that is too long', { taskId: 'x'.repeat(300) }],
  ['an id with NUL', { taskId: 'a\0' }],
  ['a number as its id', { taskId: 5 }],
  ['an unknown status', { status: 'asleep' }],
  ['no status', { status: null }],
])('a task with %s is no task: the call fails and is free', async (_name, task) => {
  expect(
    await spentOn(async () => {
      const { status, message } = await callDeclared(spine, 'liar', task);
      expect(status).toBe(502);
      expect(message.error?.data).toMatchObject({ type: 'provider_unavailable' });
    }),
  ).toBe(0n);
});

test.each(['done', 5])(
  'a result of the type %j, which nobody knows, is no result: the call is free',
  async (resultType) => {
    server.instead = ({ method }) =>
      method === 'tools/call' ? JSON.stringify({ resultType, content: [{ type: 'text', text: 'x' }] }) : undefined;
    const spent = await spentOn(async () => {
      const { message } = await callDeclared(spine, 'liar', {});
      expect(message.error?.message).toContain('nobody knows its resultType');
    });
    expect(spent).toBe(0n);
  },
);

test('a second task of the same id is refused, whoever calls', async () => {
  const stranger = { origin: spine.origin, key: (await spine.tenant('stranger', '1')).key };
  const spent = await spentOn(async () => {
    const { id } = await beginTask(spine, 'liar', { taskId: 'same' });
    for (const door of [spine, stranger])
      expect((await callDeclared(door, 'liar', { taskId: 'same' })).status).toBe(502);
    server.says('same', DONE);
    await getTask(spine, 'liar', id);
  });
  expect(spent).toBe(1_000n);
});

test('the answer of another task is not passed on, and changes nothing', async () => {
  const spent = await spentOn(async () => {
    const { id } = await beginTask(spine, 'liar');
    const own = server.ids.at(-1)!;
    server.instead = ({ method }) =>
      method === 'tasks/get'
        ? JSON.stringify({ resultType: 'complete', ...DONE, taskId: 'another', secret: 1 })
        : undefined;
    const { status, text } = await getTask(spine, 'liar', id);
    expect(status).toBe(502);
    expect(text).not.toContain('secret');
    expect((await spine.balance()).locked).toBe(1_000n);
    server.instead = () => undefined;
    server.says(own, DONE);
    await getTask(spine, 'liar', id);
  });
  expect(spent).toBe(1_000n);
});

test('a task that never ends is given up at the time that the gateway gives', async () => {
  expect(
    await spentOn(async () => {
      await beginTask(spine, 'liar', { ttlMs: null });
      ahead += 590_000;
      expect((await spine.balance()).locked).toBe(1_000n);
      ahead += 20_000;
    }),
  ).toBe(0n);
});

test('what a server says after another end is not passed on', async () => {
  expect(
    await spentOn(async () => {
      const { id } = await beginTask(spine, 'liar');
      const own = server.ids.at(-1)!;
      await askTask(spine, '/mcp/liar', 'tasks/cancel', id);
      server.says(own, DONE);
      const { message } = await getTask(spine, 'liar', id);
      expect(message.error).toMatchObject({ code: -32_602, message: expect.stringContaining('ended as cancelled') });
    }),
  ).toBe(0n);
});

test('a result that is larger than the gateway takes is charged, and its client is told so', async () => {
  expect(
    await spentOn(async () => {
      const { id } = await beginTask(spine, 'liar');
      server.says(server.ids.at(-1)!, {
        status: 'completed',
        result: { content: [{ type: 'text', text: 'x'.repeat(2_000_000) }] },
      });
      const { message } = await getTask(spine, 'liar', id);
      expect(message.result).toMatchObject({
        taskId: id,
        status: 'completed',
        result: { isError: true, _meta: { 'tollgate/generation': { cost: '0.001' } } },
      });
    }),
  ).toBe(1_000n);
});

test('what a server writes of money is replaced, and a key that stands twice hides nothing', async () => {
  expect(
    await spentOn(async () => {
      const { id, call } = await beginTask(spine, 'liar');
      const own = server.ids.at(-1)!;
      const forged =
        '{"content":[],"structuredContent":{"n":12345678901234567890},"_meta":{"tollgate/generation":{"cost":"0"},"tollgate/receipt":"forged"}}';
      server.instead = ({ method }) =>
        method === 'tasks/get'
          ? `{"resultType":"complete","taskId":"x","taskId":${JSON.stringify(own)},"status":"completed","result":${forged}}`
          : undefined;
      const { message, text } = await getTask(spine, 'liar', id);
      expect(message.result).toMatchObject({ taskId: id });
      expect(text).toContain('{"n":12345678901234567890}');
      expect(message.result['result']!['_meta']).toEqual({
        'tollgate/generation': { id: call, cost: '0.001', currency: 'USDC' },
      });
    }),
  ).toBe(1_000n);
});

test.each([
  ['no JSON', (): string => 'nonsense'],
  ['no task', (): string => '{"resultType":"complete"}'],
  ['a list', (): string => '[]'],
])('%s in the place of a task is a failure that leaves the task as it is', async (_name, instead) => {
  expect(
    await spentOn(async () => {
      const { id } = await beginTask(spine, 'liar');
      const own = server.ids.at(-1)!;
      server.instead = ({ method }) => (method === 'tasks/get' ? instead() : undefined);
      expect((await getTask(spine, 'liar', id)).status).toBe(502);
      server.instead = () => undefined;
      server.says(own, DONE);
      expect((await getTask(spine, 'liar', id)).message.result).toMatchObject({ status: 'completed' });
    }),
  ).toBe(1_000n);
});

test('a task for a client that takes none is no answer that is charged', async () => {
  expect(
    await spentOn(async () => {
      const { message } = await callDeclared(
        spine,
        'liar',
        {},
        { meta: { 'io.modelcontextprotocol/clientCapabilities': {} } },
      );
      expect(message.error?.data).toMatchObject({ type: 'provider_unavailable' });
    }),
  ).toBe(0n);
});

test('a server that answers no cancellation does not hold its client up', async () => {
  expect(
    await spentOn(async () => {
      const { id } = await beginTask(spine, 'liar');
      const own = server.ids.at(-1)!;
      // The look after the cancellation is never answered.
      server.instead = ({ method }) => (method === 'tasks/get' ? () => {} : undefined);
      expect((await askTask(spine, '/mcp/liar', 'tasks/cancel', id)).message.result).toEqual({
        resultType: 'complete',
      });
      server.instead = () => undefined;
      server.says(own, { status: 'cancelled' });
      await getTask(spine, 'liar', id);
    }),
  ).toBe(0n);
});
