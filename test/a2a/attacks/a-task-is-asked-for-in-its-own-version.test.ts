import { expect, test } from 'vitest';
import { LEGACY_RPC, MESSAGE_PRICE, RPC, useCallsWorld } from '../calls/support/calls-world.ts';
import { serveRaw, taskResult } from '../calls/support/raw-served.ts';

const calls = useCallsWorld();

test('an agent that keeps the tasks of each version for themselves is paid, whatever version its client asks in', async () => {
  let state = 'WORKING';
  const { url } = await serveRaw(calls.world, ({ result, error, request }) => {
    const { task } = taskResult('modern', state);
    if (request.version !== '1.0') return error(-32_001, 'There is no such task');
    result(request.method === 'SendMessage' ? { task } : task);
  });
  const spent = await calls.spent(async () => {
    await calls.talk(url).task('work', { immediately: true });
    expect((await calls.talk(url, LEGACY_RPC).get('modern')).state).toBe('working');
    state = 'INPUT_REQUIRED';
    expect((await calls.talk(url, LEGACY_RPC).get('modern')).state).toBe('input-required');
    state = 'COMPLETED';
    expect((await calls.talk(url, LEGACY_RPC).task('more', { message: { taskId: 'modern' } })).state).toBe('completed');
  });
  expect(spent).toBe(2n * MESSAGE_PRICE);
});

test('and so are those whose tasks are looked at by the gateway alone', async () => {
  let ended = false;
  const looked = Promise.withResolvers<void>();
  const { url } = await serveRaw(calls.world, ({ result, error, request }) => {
    if (request.version === '1.0') return error(-32_001, 'There is no such task');
    if (request.method !== 'message/send') looked.resolve();
    result({ kind: 'task', id: 'legacy', contextId: 'c', status: { state: ended ? 'completed' : 'working' } });
  });
  const spent = await calls.spent(async () => {
    await calls.talk(url, LEGACY_RPC).task('work', { immediately: true });
    ended = true;
    await looked.promise;
    await calls.talk(url, RPC).reaches('legacy', 'completed');
  });
  expect(spent).toBe(MESSAGE_PRICE);
});
