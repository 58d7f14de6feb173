import { expect, test } from 'vitest';
import { useCallsWorld, RPC, REST } from '../a2a/calls/support/calls-world.ts';
import { serveRaw, statusEvent, taskResult, writeEvent } from '../a2a/calls/support/raw-served.ts';

const calls = useCallsWorld('[billing]\ndrain_ms = 300\n');

test('leave a chat with a slow agent', async () => {
  const { spine } = calls.world;
  let done = false;
  const { service } = await serveRaw(calls.world, ({ result, response }) => {
    setTimeout(() => { done = true; if (!response.destroyed) result(taskResult('t-slow', 'COMPLETED')); }, 1200);
  });
  const spent = await calls.spent(async () => {
    const leave = new AbortController();
    setTimeout(() => leave.abort(), 100);
    await spine.post('/chat/completions', { model: `a2a/${service}`, messages: [{ role: 'user', content: 'x' }] }, {}, leave.signal).catch(() => {});
    await new Promise((r) => setTimeout(r, 1600));
  });
  console.log('spent', spent, done);
});

const FILL = {
  name: 'test/fill',
  text: `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
INSERT INTO tasks (primitive, task_id, service, account, run, offer_id, provider, context_id, state, notes, snapshot, created_at, updated_at, expires_at, calls, ended_at, ending, open, next_look_at, look_ms, claimed_until)
SELECT 'agent', 'fill-' || i, $2, $1, NULL, 'o', 'p', 'ctx-' || i, 'completed', '{}', NULL, i, i, 9000000000000000, 0, 9000000000000000, '{"outcome":"free","reason":"x","usage":[]}', 0, 0, 0, 0 FROM n`,
};

test('100k tasks', async () => {
  const { spine } = calls.world;
  const { service, url } = await serveRaw(calls.world, ({ result }) => result(taskResult(`t-${crypto.randomUUID()}`, 'COMPLETED')));
  const talk = calls.talk(url);
  const time = async (n: number) => { const t = performance.now(); for (let i = 0; i < n; i++) await talk.sent('x', { message: { contextId: `mine-${i}` } }); return (performance.now() - t) / n; };
  await time(5);
  console.log('before', await time(20));
  await spine.app.database.query(FILL, [spine.account, service]);
  console.log('after', await time(20));
  const t = performance.now(); await talk.call('ListTasks', { pageSize: 1 }); console.log('list', performance.now() - t);
});

test('discover size', async () => {
  const { spine } = calls.world;
  const r = await (await spine.post('/rpc', { jsonrpc: '2.0', id: 1, method: 'rpc.discover' })).text();
  console.log('discover', r.length);
  const t = performance.now();
  const all = await fetch(`${spine.origin}/api/v1/rpc`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(Array.from({ length: 50 }, (_, i) => ({ jsonrpc: '2.0', id: i, method: 'rpc.discover' }))) });
  console.log('batch', all.status, (await all.text()).length, performance.now() - t);
});

test('list of huge tasks', async () => {
  const { spine } = calls.world;
  const big = 'x'.repeat(8 * 1024 * 1024);
  const ids = new Set<string>();
  const { url } = await serveRaw(calls.world, ({ result, request }) => {
    if (request.method === 'SendMessage') { const id = `big-${ids.size}`; ids.add(id); return result(taskResult(id, 'COMPLETED')); }
    const { id } = request.params as any;
    result(taskResult(id, 'COMPLETED', { artifacts: [{ artifactId: 'a', parts: [{ text: big }] }] }).task);
  });
  const talk = calls.talk(url);
  for (let i = 0; i < 40; i++) await talk.sent('x');
  let peak = 0;
  const timer = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss)), 20);
  const before = process.memoryUsage().rss;
  const t = performance.now();
  const list = await talk.call('ListTasks', { pageSize: 100 });
  clearInterval(timer);
  console.log('list', list.text.length, performance.now() - t, 'peak MB', (peak - before) / 1e6);
}, 60000);
