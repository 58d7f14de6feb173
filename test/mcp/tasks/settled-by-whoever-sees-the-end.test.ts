import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { toolToml } from '../calls/modern-post.ts';
import { askTask, beginTask, getTask } from './task-client.ts';
import { DONE, startTaskServer, type TaskServer } from './task-server.ts';

const BY_USE = 'per_call = 0.001\nper_second = 0.01\nper_call_max = 0.5';

let server: TaskServer;
let spine: Spine;
/** Milliseconds that the gateway's clock is ahead. */
let ahead = 0;
beforeAll(async () => {
  server = await startTaskServer();
  const toml =
    toolToml({ name: 'slow', url: server.url }) + toolToml({ name: 'metered', url: server.url, pricing: BY_USE });
  spine = await startSpine({ toml: UNHURRIED + toml, now: () => Date.now() + ahead });
});
afterAll(async () => {
  await spine.stop();
  await server.close();
});

const cost = (usd: string, id: string) => ({ 'tollgate/generation': { id, cost: usd, currency: 'USDC' } });
const spentOn = async (run: () => Promise<unknown>) => {
  const before = (await spine.balance()).available;
  await run();
  expect(await spine.faults()).toEqual([]);
  return before - (await spine.balance()).available;
};

test('a task keeps one lock from its creation, which tells the call and no cost', async () => {
  const before = await spine.balance();
  const { id, call, created } = await beginTask(spine, 'slow');
  expect(created).toMatchObject({
    resultType: 'task',
    status: 'working',
    ttlMs: 3_600_000,
    _meta: { 'tollgate/generation': { id: call } },
  });
  expect(created['_meta']!['tollgate/generation']).toEqual({ id: call });
  const { message } = await getTask(spine, 'slow', id);
  expect(message.result).toMatchObject({ resultType: 'complete', taskId: id, status: 'working' });
  expect(message.result['_meta']).toBeUndefined();
  expect(await spine.balance()).toEqual({ available: before.available - 1_000n, locked: 1_000n });
  expect(await spine.generation(call)).toMatchObject({ state: 'held' });
  await askTask(spine, '/mcp/slow', 'tasks/cancel', id);
  expect(await spine.balance()).toEqual({ ...before, locked: 0n });
  expect(await spine.generation(call)).toMatchObject({
    state: 'settled',
    cost_micro_usdc: 0,
    finish_reason: 'cancelled',
  });
});

test('the reply that has the result has its cost and its receipt, each time', async () => {
  let call = '';
  const spent = await spentOn(async () => {
    const begun = await beginTask(spine, 'slow');
    call = begun.call;
    server.says(server.ids.at(-1)!, DONE);
    const { message } = await getTask(spine, 'slow', begun.id, { headers: { 'x-receipt': '1' } });
    const { receipt } = await spine.generation(call);
    expect(message.result).toMatchObject({
      taskId: begun.id,
      status: 'completed',
      result: { ...DONE.result, _meta: { ...cost('0.001', call), 'tollgate/receipt': receipt } },
    });
    const again = await getTask(spine, 'slow', begun.id);
    expect(again.message.result['result']!['_meta']).toEqual(cost('0.001', call));
  });
  expect(spent).toBe(1_000n);
  expect(await spine.generation(call)).toMatchObject({
    state: 'settled',
    finish_reason: 'completed',
    cost_micro_usdc: 1_000,
  });
});

test.each([
  ['a result with isError', { status: 'completed', result: { content: [], isError: true } }, ['result', '_meta']],
  ['a result that is none', { status: 'completed', result: 5 }, ['_meta']],
  ['a failure', { status: 'failed', error: { code: -32_603, message: 'broke' } }, ['_meta']],
  ['a task that the server cancelled', { status: 'cancelled' }, ['_meta']],
])('%s is free, and says so', async (_name, end, path) => {
  const spent = await spentOn(async () => {
    const { id, call } = await beginTask(spine, 'slow');
    server.says(server.ids.at(-1)!, end);
    const { message } = await getTask(spine, 'slow', id);
    expect(path.reduce((tree, key) => tree[key]!, message.result)).toEqual(cost('0', call));
  });
  expect(spent).toBe(0n);
});

test('the end of a task that nobody asks for is seen by the gateway', async () => {
  let call = '';
  const spent = await spentOn(async () => {
    const begun = await beginTask(spine, 'slow');
    call = begun.call;
    server.says(server.ids.at(-1)!, DONE);
    ahead += 60_000;
    await spine.quiet();
    // Whoever comes later is told the same.
    expect((await getTask(spine, 'slow', begun.id)).message.result['result']!['_meta']).toEqual(cost('0.001', call));
  });
  expect(spent).toBe(1_000n);
  expect(await spine.generation(call)).toMatchObject({ state: 'settled' });
});

test('everybody who looks at once settles it once', async () => {
  const spent = await spentOn(async () => {
    const { id, call } = await beginTask(spine, 'slow');
    server.says(server.ids.at(-1)!, DONE);
    ahead += 60_000;
    const replies = await Promise.all(Array.from({ length: 20 }, () => getTask(spine, 'slow', id)));
    for (const { message } of replies) expect(message.result['result']!['_meta']).toEqual(cost('0.001', call));
  });
  expect(spent).toBe(1_000n);
});

test('a tool that is priced by its use is charged by what the result reports, never above its lock', async () => {
  const used = async (meta: object) => {
    const { id } = await beginTask(spine, 'metered');
    server.says(server.ids.at(-1)!, { ...DONE, result: { ...DONE.result, _meta: meta } });
    await getTask(spine, 'metered', id);
  };
  expect(await spentOn(() => used({ 'tollgate/usage': { second: 3 } }))).toBe(31_000n);
  expect(await spentOn(() => used({ 'tollgate/usage': { second: 3_000 } }))).toBe(500_000n);
  expect(await spentOn(() => used({}))).toBe(0n);
});

test('a task is given up when its time is over: it is free, and its result is not passed on any more', async () => {
  const spent = await spentOn(async () => {
    const { id } = await beginTask(spine, 'slow', { ttlMs: 1_000 });
    ahead += 120_000;
    await spine.quiet();
    server.says(server.ids.at(-1)!, DONE);
    const { message } = await getTask(spine, 'slow', id);
    expect(message.error).toMatchObject({ code: -32_602, message: expect.stringContaining('given up') });
  });
  expect(spent).toBe(0n);
});

test('a task whose server keeps it for longer than it said goes on', async () => {
  const spent = await spentOn(async () => {
    const { id } = await beginTask(spine, 'slow', { ttlMs: 1_000 });
    server.says(server.ids.at(-1)!, { ttlMs: 600_000 });
    await getTask(spine, 'slow', id);
    ahead += 120_000;
    server.says(server.ids.at(-1)!, DONE);
    expect((await getTask(spine, 'slow', id)).message.result).toMatchObject({ status: 'completed' });
  });
  expect(spent).toBe(1_000n);
});

test('a client is told of no more time than the gateway gives', async () => {
  const { id, created } = await beginTask(spine, 'slow', { ttlMs: null });
  expect(created['ttlMs']).toBe(86_400_000);
  expect((await getTask(spine, 'slow', id)).message.result['ttlMs']).toBe(86_400_000);
  await askTask(spine, '/mcp/slow', 'tasks/cancel', id);
  expect(await spine.faults()).toEqual([]);
});

test('a task whose server does not know it any more is over, and free', async () => {
  const spent = await spentOn(async () => {
    const { id } = await beginTask(spine, 'slow');
    server.says(server.ids.at(-1)!, null);
    const { message } = await getTask(spine, 'slow', id);
    expect(message.error).toEqual({ code: -32_602, message: 'no such task' });
  });
  expect(spent).toBe(0n);
});

test('an update reaches the server as it came, and what speaks to the gateway does not', async () => {
  const { id } = await beginTask(spine, 'slow');
  const own = server.ids.at(-1)!;
  const inputResponses = { 'a key': { action: 'accept', content: { tollgate: 1 } } };
  const { message } = await askTask(
    spine,
    '/mcp/slow',
    'tasks/update',
    id,
    { inputResponses },
    { meta: { 'tollgate/receipt': true } },
  );
  expect(message.result).toEqual({ resultType: 'complete' });
  const got = server.asked.findLast(({ method }) => method === 'tasks/update')!;
  expect(got.params).toMatchObject({ taskId: own, inputResponses });
  expect(got.text).not.toContain('tollgate/');
  expect(got.headers['mcp-name']).toBe(own);
  await askTask(spine, '/mcp/slow', 'tasks/cancel', id);
  expect(await spine.faults()).toEqual([]);
});
