import { expect, test } from 'vitest';
import { useCallsWorld, RPC, refusalOf } from '../a2a/calls/support/calls-world.ts';
import { serveRaw, taskResult } from '../a2a/calls/support/raw-served.ts';
const calls = useCallsWorld();
test('contexts', async () => {
  const { spine, stranger } = calls.world;
  const seen: string[] = [];
  const { url, service } = await serveRaw(calls.world, ({ result, request }) => {
    const { message } = request.params as any;
    seen.push(message.contextId ?? 'none');
    const contextId = message.contextId ?? `ctx-${seen.length}`;
    result({ task: { id: crypto.randomUUID(), contextId, status: { state: 'TASK_STATE_COMPLETED' } } });
  });
  const own = await calls.talk(url).task('one');
  expect((await calls.talk(url).task('two', { message: { contextId: own.contextId } })).contextId).toBe(own.contextId);
  const theirs = calls.talk(url, RPC, stranger.key);
  console.log(refusalOf(await theirs.sent('steal', { message: { contextId: own.contextId } })));
  const chat = (key: string, more: object) => spine.post('/chat/completions', { model: `a2a/${service}`, messages: [{ role: 'user', content: 'x' }], ...more }, { authorization: `Bearer ${key}` });
  const r = await chat(stranger.key, { tollgate: { context_id: own.contextId } });
  console.log(r.status, await r.text());
  for (const key of [spine.key, spine.key, stranger.key]) await (await chat(key, { session_id: '1' })).text();
  console.log(seen);
});
