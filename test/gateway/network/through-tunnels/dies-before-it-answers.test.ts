import { expect, test } from 'vitest';
import { events } from '../../../support/spine.ts';
import {
  askTunnel,
  readStream,
  startTunnelSpine,
  until,
  type Supplied,
  type TunnelSpine,
} from '../../../support/tunnel-spine.ts';

// A provider that vanishes before its consumer has seen a byte of the reply: another one serves, and it is still
// one call.

async function startTwo(): Promise<{ world: TunnelSpine; first: Supplied; second: Supplied }> {
  const world = await startTunnelSpine();
  return {
    world,
    first: await world.supply('First', { prompt: 3, completion: 3 }),
    second: await world.supply('Second', { prompt: 1, completion: 2 }),
  };
}
const FIRST = { provider: { order: ['First'] } };

for (const stream of [false, true])
  test(`${stream ? 'a stream' : 'a call'} of which nothing was answered goes to the next provider, with the same id and one lock`, async () => {
    const { world, first, second } = await startTwo();
    const { spine } = world;
    first.upstream.hold(new Promise(() => {}));
    const asked = spine.post('/chat/completions', askTunnel('!tokens:5', { ...FIRST, stream }));
    await until(() => first.upstream.log.length === 1);
    first.proxy.kill();
    const response = await asked;
    const text = await response.text();
    expect(response.status, text).toBe(200);
    if (stream) expect(events(text).at(-1)).toBe('[DONE]');
    const { promptTokens } = second.upstream.log[0]!;
    const id = response.headers.get('x-generation-id');
    expect(await spine.generation(id)).toMatchObject({
      state: 'settled',
      provider: second.proxy.id,
      cost_micro_usdc: promptTokens + 2 * 5,
    });
    expect(await spine.locks()).toEqual([id]);
    expect([first.upstream.log.length, second.upstream.log.length]).toEqual([1, 1]);
    const stands = await world.endpoints();
    expect(stands?.find(({ provider_name: name }) => name === 'First')).toMatchObject({
      health: 'away',
      uptime_last_1h: 0,
    });
    expect(stands?.find(({ provider_name: name }) => name === 'Second')).toMatchObject({
      health: 'healthy',
      uptime_last_1h: 1,
    });
  });

test('a reply that is not streamed and has half arrived is had from the next provider', async () => {
  const { world, first, second } = await startTwo();
  const { spine } = world;
  const asked = spine.post('/chat/completions', askTunnel('!tokens:5', FIRST));
  first.upstream.instruct({ stallAt: 120 });
  await until(() => (first.upstream.log[0]?.bytes ?? 0) >= 120);
  first.proxy.kill();
  const response = await asked;
  expect(response.status).toBe(200);
  await response.json();
  expect(second.upstream.log).toHaveLength(1);
  expect(await spine.generation(response.headers.get('x-generation-id'))).toMatchObject({
    state: 'settled',
    provider: second.proxy.id,
  });
});

test('a stream of which only the head has arrived goes to the next provider', async () => {
  const { world, first, second } = await startTwo();
  const { spine } = world;
  first.upstream.instruct({ stallAt: 5 });
  const asked = readStream(spine.post('/chat/completions', askTunnel('!tokens:5', { ...FIRST, stream: true })));
  await until(() => (first.upstream.log[0]?.bytes ?? 0) >= 5);
  first.proxy.kill();
  const reading = await asked;
  expect(events(await reading.end).at(-1)).toBe('[DONE]');
  expect(await spine.generation(reading.response.headers.get('x-generation-id'))).toMatchObject({
    state: 'settled',
    provider: second.proxy.id,
  });
});

test('of a hundred calls at once those of the provider that goes are served by the other, as far as the retries reach', async () => {
  const { world, first, second } = await startTwo();
  const { spine } = world;
  let release = (): void => {};
  first.upstream.hold(new Promise<void>((resolve) => (release = resolve)));
  const asked = Array.from({ length: 100 }, (_, index) =>
    spine.post('/chat/completions', askTunnel('!tokens:2', index % 2 === 0 ? {} : { stream: true })),
  );
  const responses = Promise.all(asked.map(async (each) => [(await each).status, await (await each).text()] as const));
  await until(() => first.upstream.log.length + second.upstream.log.length === 100);
  const lost = first.upstream.log.length;
  first.proxy.kill();
  release();
  const statuses = (await responses).map(([status]) => status);
  // Retries are bounded to a fifth of the calls and ten; what is beyond that fails and costs nothing.
  expect(statuses.filter((status) => status === 200).length).toBe(100 - Math.max(0, lost - 30));
  expect(new Set(await spine.locks()).size).toBe(100);
});
