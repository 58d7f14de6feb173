import { expect, test } from 'vitest';
import { MESSAGE_PRICE, useCallsWorld } from '../calls/support/calls-world.ts';
import { giftOf } from '../calls/support/nested.ts';
import { serveRaw, taskResult } from '../calls/support/raw-served.ts';
import type { RawExchange } from '../../support/a2a-agent/index.ts';

const calls = useCallsWorld();

test('a task that ends late costs at most the cap of its own provider, whatever another one could have cost', async () => {
  let state = 'WORKING';
  const metered =
    (id: string) =>
    ({ result, request }: RawExchange) => {
      const usage = { metadata: { 'tollgate/usage': { prompt: 20_000 }, notes: 'x'.repeat(20_000) } };
      const { task } = taskResult(id, state, state === 'COMPLETED' ? usage : {});
      result(request.method === 'SendMessage' ? { task } : task);
    };
  const offer = (provider: string, cap: string) => ({
    name: 'metered/agent',
    provider,
    pricing: `prompt = 1\nper_call_max = ${cap}`,
  });
  const { url } = await serveRaw(calls.world, metered('cheap'), offer('Cheap', '0.002'));
  await serveRaw(calls.world, metered('dear'), offer('Dear', '0.01'));
  const talk = calls.talk(url);
  let id = '';
  const spent = await calls.spent(async () => {
    ({ id } = await talk.task('work', { immediately: true }));
    expect(await calls.locked()).toBe(10_000n);
    state = 'COMPLETED';
    await talk.get(id);
  });
  expect(spent).toBe(id === 'cheap' ? 2_000n : 10_000n);
});

test('what one agent may spend of its own, another of the same name may not', async () => {
  const gifts: string[] = [];
  const noting =
    (name: string) =>
    ({ result, ...exchange }: RawExchange) => {
      gifts.push(`${name} ${giftOf(exchange).metadata?.budget_usd ?? 'nothing'}`);
      result(taskResult(crypto.randomUUID(), 'COMPLETED'));
    };
  const modest = await serveRaw(calls.world, noting('modest'), { name: 'shared/spender', provider: 'Modest' });
  const greedy = await serveRaw(calls.world, noting('greedy'), {
    name: 'shared/spender',
    provider: 'Greedy',
    pricing: 'per_call = 0.001\nnested_max = 5',
  });
  const by = (provider: string) => `${calls.world.spine.origin}/a2a/${provider}:shared/spender`;
  await calls.spent(async () => {
    // What it may spend counts as its price does: nobody is sent there by chance.
    for (let i = 0; i < 5; i += 1) await calls.talk(modest.url).task('work');
    await calls.talk(by(greedy.proxy.id)).task('work');
  });
  expect(gifts).toEqual([...Array<string>(5).fill('modest nothing'), 'greedy 5']);
  expect(MESSAGE_PRICE).toBe(1_000n);
});
