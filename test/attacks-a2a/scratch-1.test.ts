import { expect, test } from 'vitest';
import { useCallsWorld, RPC, REST } from '../a2a/calls/support/calls-world.ts';
import { serveRaw, statusEvent, taskResult, writeEvent } from '../a2a/calls/support/raw-served.ts';

const calls = useCallsWorld();

const FILL = {
  name: 'test/fill',
  text: `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
INSERT INTO webhooks (id, account, run, primitive, service, task_id, name, form, receiver, sealed, created_at, expires_at)
SELECT 'fill-' || i, $1, '', 'agent', 's', 't-' || i, 'n', '1.0', 'http://x', '', 0, 9000000000000000 FROM n`,
};
const CLEAR = { name: 'test/clear', text: "DELETE FROM webhooks WHERE id LIKE 'fill-%'" };

test('webhook that cannot be kept', async () => {
  const { spine } = calls.world;
  await spine.app.database.query(FILL, [spine.account]);
  let state = 'WORKING';
  const { url } = await serveRaw(calls.world, ({ result, request }) => result(request.method === 'SendMessage' ? taskResult('t-hook', state) : taskResult('t-hook', state).task));
  const talk = calls.talk(url);
  const spent = await calls.spent(async () => {
    const reply = await talk.sent('work', { immediately: true, configuration: { taskPushNotificationConfig: { url: 'http://127.0.0.1:9/x' } } });
    console.log('reply', reply.text, await calls.locked());
    state = 'COMPLETED';
    console.log('get', JSON.stringify(await talk.get('t-hook')));
  });
  await spine.app.database.query(CLEAR);
  expect(spent).toBe(1000n);
});

test('artifact first, then break', async () => {
  const { url } = await serveRaw(calls.world, (exchange) => {
    if (exchange.request.method === 'SendStreamingMessage') {
      writeEvent(exchange, { artifactUpdate: { taskId: 't-art', contextId: 'c', artifact: { artifactId: 'a', parts: [{ text: 'x' }] } } });
      setTimeout(() => exchange.response.destroy(), 50);
      return;
    }
    exchange.result(taskResult('t-art', 'COMPLETED').task);
  });
  const talk = calls.talk(url);
  const spent = await calls.spent(async () => {
    const stream = await talk.stream('work');
    console.log(JSON.stringify(await stream.rest()), await calls.locked());
    console.log('get', JSON.stringify(await talk.get('t-art')));
  });
  expect(spent).toBe(1000n);
});

test('two offers, different caps', async () => {
  const usage = (n: number) => ({ metadata: { 'tollgate/usage': { prompt: n } } });
  let state = 'WORKING';
  const handler = (id: string) => ({ result, request }: any) => {
    const task = taskResult(id, state, state === 'COMPLETED' ? usage(10_000_000) : {});
    result(request.method === 'SendMessage' ? task : task.task);
  };
  const a = await serveRaw(calls.world, handler('t-cap-a'), { name: 'caps/agent', provider: 'Cheap', pricing: 'prompt = 1\nper_call_max = 0.002' });
  const b = await serveRaw(calls.world, handler('t-cap-b'), { name: 'caps/agent', provider: 'Dear', pricing: 'prompt = 1\nper_call_max = 0.01' });
  const talk = calls.talk(a.url);
  // until the cheap one serves
  let served = '';
  const spent = await calls.spent(async () => {
    const task = await talk.task('work', { immediately: true });
    served = task.id;
    console.log('served by', served, 'locked', await calls.locked());
    state = 'COMPLETED';
    await talk.get(served);
  });
  console.log('spent', spent);
  expect(spent).toBe(served === 't-cap-a' ? 2000n : 10000n);
});

test('run gift by the fallback', async () => {
  const seen: any[] = [];
  const handler = (id: string) => ({ result, request }: any) => { seen.push([id, request.params.message?.metadata?.['tollgate/run']]); result(taskResult(id, 'COMPLETED')); };
  const a = await serveRaw(calls.world, handler('n-a'), { name: 'nest/agent', provider: 'Modest', pricing: 'per_call = 0.001' });
  await serveRaw(calls.world, handler('n-b'), { name: 'nest/agent', provider: 'Greedy', pricing: 'per_call = 0.001\nnested_max = 5' });
  const talk = calls.talk(a.url);
  for (let i = 0; i < 6; i++) await talk.sent('work', { message: {} });
  console.log(JSON.stringify(seen));
});

test('max cost at a bridge', async () => {
  const { spine } = calls.world;
  const talk = calls.talk(`${spine.origin}/a2a/model/test/model`);
  const reply = await talk.call('SendMessage', { message: { messageId: 'mc-1', role: 'ROLE_USER', parts: [{ text: 'hi' }] } }, { 'x-max-cost': '0.000001' });
  console.log(reply.status, reply.text.slice(0, 400));
});

test('names', async () => {
  const evil = await serveRaw(calls.world, ({ result }) => result(taskResult('evil', 'COMPLETED')), { name: 'good/agent/message:send', pricing: 'per_call = 1' });
  const good = await serveRaw(calls.world, ({ result }) => result(taskResult('good', 'COMPLETED')), { name: 'good/agent' });
  const talk = calls.talk(good.url, REST);
  const reply = await talk.sent('hello');
  console.log(reply.text.slice(0, 300));
});
