import { expect, onTestFinished, test } from 'vitest';
import { offeredModel } from '../../../support/dial-in.ts';
import { startProvide } from '../../../support/provide-process.ts';
import { events } from '../../../support/spine.ts';
import { askTunnel, readStream, startTunnelSpine, TUNNEL_MODEL, until } from '../../../support/tunnel-spine.ts';

// A proxy's process gets SIGTERM while calls run through it.

test('what runs is finished and paid, new calls go elsewhere, nothing is lost, and it ends with code 0', async () => {
  const world = await startTunnelSpine('[tunnel]\nwait_ms = 0');
  const { spine } = world;
  const upstream = await world.upstream();
  const leaving = await startProvide({
    router: spine.origin,
    services: offeredModel({ url: upstream.url, provider: 'Leaving' }),
  });
  onTestFinished(() => leaving.stop());
  const other = await world.supply('Other', { prompt: 9, completion: 9 });
  const PREFERRED = { provider: { order: ['Leaving'] } };

  const elsewhere = Promise.withResolvers<void>();
  upstream.instruct(...Array.from({ length: 3 }, () => ({ stallAt: 1_000, stallUntil: elsewhere.promise })), {
    stallAt: 0,
    stallUntil: elsewhere.promise,
  });
  const running = await Promise.all(
    Array.from({ length: 3 }, () =>
      readStream(spine.post('/chat/completions', askTunnel('!tokens:30', { ...PREFERRED, stream: true }))),
    ),
  );
  const whole = spine.post('/chat/completions', askTunnel('!tokens:9', PREFERRED));
  await Promise.all(running.map((stream) => stream.tokens(1)));
  await until(() => upstream.log.length === 4);
  // Calls come all the time.
  let asking = true;
  const meanwhile: { readonly status: number; readonly provider: string | null }[] = [];
  const load = (async () => {
    for (let turn = 0; asking; turn++) {
      const response = await spine.post(
        '/chat/completions',
        askTunnel('!tokens:2', { ...PREFERRED, stream: turn % 2 === 0 }),
      );
      await response.text();
      meanwhile.push({ status: response.status, provider: response.headers.get('x-provider') });
    }
  })();
  await until(() => meanwhile.length >= 3);
  leaving.term();
  await until(() => meanwhile.some(({ provider }) => provider === 'Other'));
  const begun = upstream.log.length;
  const pinned = await spine.post('/chat/completions', askTunnel('hello', { model: `${leaving.id}:${TUNNEL_MODEL}` }));
  expect(pinned.status).toBe(503);

  elsewhere.resolve();
  for (const { response, end } of running) {
    const all = events(await end);
    expect(all.at(-1)).toBe('[DONE]');
    const { promptTokens } = upstream.log[0]!;
    expect(await spine.generation(response.headers.get('x-generation-id'))).toMatchObject({
      state: 'settled',
      provider: leaving.id,
      cost_micro_usdc: promptTokens + 2 * 30,
    });
  }
  expect((await whole).status).toBe(200);
  expect((await whole).headers.get('x-provider')).toBe('Leaving');
  await (await whole).text();
  expect(await leaving.exited()).toBe(0);
  asking = false;
  await load;
  expect(meanwhile.every(({ status }) => status === 200)).toBe(true);
  expect(meanwhile.at(-1)!.provider).toBe('Other');
  expect(upstream.log).toHaveLength(begun);
  expect(upstream.log.every(({ end }) => end === 'finished')).toBe(true);
  expect(other.upstream.log.length).toBeGreaterThan(0);
  const stands = await world.endpoints();
  expect(Object.fromEntries(stands!.map(({ provider_name: name, health }) => [name, health]))).toEqual({
    Leaving: 'away',
    Other: 'healthy',
  });
});
