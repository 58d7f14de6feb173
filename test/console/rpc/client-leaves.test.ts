import { expect, test } from 'vitest';
import { ask, UNHURRIED } from '../../support/spine.ts';
import { AGENT, AGENT_COST, message, request, useRpcWorld } from './rpc-world.ts';

// Whoever leaves stops what runs for it, as at the route itself, and what has not begun.

const world = useRpcWorld(`${UNHURRIED}\n[billing]\ndrain_ms = 3000\n[upstream]\ncooldown_ms = 0\n`);
const turn = () => new Promise((resolve) => setImmediate(resolve));

test('chat stops, and the entries that wait for their turn are not begun', async () => {
  const { provider } = world.spine;
  provider.log.length = 0;
  const leaving = new AbortController();
  const entries = Array.from({ length: 20 }, (_, id) =>
    request(id, 'chat/completions', ask('hello !head-delay:forever')),
  );
  const charged = await world.charged(async () => {
    const response = world.post(entries, {}, leaving.signal).catch(() => null);
    while (provider.log.length < 8) await turn();
    leaving.abort();
    expect(await response).toBeNull();
    await world.spine.quiet();
  });
  // The measured prompts of those that the provider has got.
  expect(charged).toBe(64n);
  expect(provider.log).toHaveLength(8);
  // Each sees the end of its connection later than the books.
  await provider.settled(8);
  expect(new Set(provider.log.map(({ end }) => end))).toEqual(new Set(['client_closed']));
});

test('a single request stops as well', async () => {
  const { provider } = world.spine;
  provider.log.length = 0;
  const leaving = new AbortController();
  const response = world
    .post(request(1, 'chat/completions', ask('hello !head-delay:forever')), {}, leaving.signal)
    .catch(() => null);
  while (provider.log.length === 0) await turn();
  leaving.abort();
  expect(await response).toBeNull();
  await world.spine.quiet();
  await provider.settled(1);
  expect(provider.log[0]!.end).toBe('client_closed');
  expect(world.spine.logs.filter((line) => line.includes('"level":"error"'))).toEqual([]);
});

test('an answer that comes while the client leaves is paid, once', async () => {
  const { provider } = world.spine;
  provider.log.length = 0;
  const leaving = new AbortController();
  const charged = await world.charged(async () => {
    const response = world
      .post([request(1, 'chat/completions', ask('hello !tokens:4 !head-delay:100'))], {}, leaving.signal)
      .catch(() => null);
    while (provider.log.length === 0) await turn();
    leaving.abort();
    await response;
  });
  expect(charged).toBe(BigInt(provider.log[0]!.promptTokens + 2 * 4));
});

test('an agent goes on with what it was asked', async () => {
  const leaving = new AbortController();
  const charged = await world.charged(async () => {
    const response = world
      .post([request(1, 'message/send', { agent: AGENT, message: message('wait') })], {}, leaving.signal)
      .catch(() => null);
    const taskId = await world.agent.waits();
    leaving.abort();
    expect(await response).toBeNull();
    world.agent.finish(taskId);
    await world.spine.quiet();
    expect(await world.call('tasks/get', { id: taskId })).toMatchObject({ result: { status: { state: 'completed' } } });
  });
  expect(charged).toBe(AGENT_COST);
});

test('what has a key runs to its end, for who comes back', async () => {
  const { provider } = world.spine;
  provider.log.length = 0;
  const entry = request(1, 'chat/completions', {
    ...ask('hello !tokens:4 !head-delay:100'),
    _meta: { 'tollgate/idempotency-key': 'left' },
  });
  const leaving = new AbortController();
  const response = world.post(entry, {}, leaving.signal).catch(() => null);
  while (provider.log.length === 0) await turn();
  leaving.abort();
  await response;
  await world.spine.quiet();
  let reply = await world.call('chat/completions', entry.params);
  while (reply.error?.data?.['type'] === 'idempotency_conflict')
    reply = await world.call('chat/completions', entry.params);
  expect(reply).toMatchObject({ result: { object: 'chat.completion' } });
  expect(provider.log).toHaveLength(1);
});
