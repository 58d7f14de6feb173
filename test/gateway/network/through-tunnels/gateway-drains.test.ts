import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { READY } from '../../../support/dial-in.ts';
import { findFreePort } from '../../../support/free-port.ts';
import { events, startSpine, UNHURRIED } from '../../../support/spine.ts';
import { askTunnel, readStream, startTunnelSpine, until } from '../../../support/tunnel-spine.ts';
import { atThisLoad } from '../../../support/at-this-load.ts';

// The gateway shuts down while calls run through tunnels; then another takes its place.

async function folder(): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'tollgate-drain-'));
  onTestFinished(() => rm(dataDir, { recursive: true }));
  return dataDir;
}

test('running streams are finished and paid, and the proxy is ready again at the gateway that takes over', async () => {
  const dataDir = await folder();
  const port = await findFreePort();
  const world = await startTunnelSpine('', { dataDir, port });
  const { spine } = world;
  const { proxy, upstream, pinned } = await world.supply('Steady', { random: () => 0.2 });
  const told = Promise.withResolvers<void>();
  upstream.instruct(...Array.from({ length: 4 }, () => ({ stallAt: 1_000, stallUntil: told.promise })));
  const streams = await Promise.all(
    Array.from({ length: 4 }, () =>
      readStream(spine.post('/chat/completions', askTunnel('!tokens:25', { stream: true }))),
    ),
  );
  await Promise.all(streams.map((stream) => stream.tokens(1)));
  const closing = spine.app.close();
  await proxy.logged('the router is shutting down; running calls continue, and the proxy reconnects');
  told.resolve();
  for (const { end } of streams) expect(events(await end).at(-1)).toBe('[DONE]');
  await closing;
  expect(upstream.log.map(({ end }) => end)).toEqual(Array(4).fill('finished'));

  const next = await startSpine({ dataDir, port, toml: UNHURRIED, provider: spine.provider, credit: '0' });
  onTestFinished(() => next.stop());
  await proxy.logged(READY, 2);
  for (const { response } of streams)
    expect(await next.generation(response.headers.get('x-generation-id'), spine.key)).toMatchObject({
      state: 'settled',
      provider: proxy.id,
      cost_micro_usdc: upstream.log[0]!.promptTokens + 2 * 25,
    });
  const response = await next.post('/chat/completions', askTunnel('hello', { model: pinned }), {
    authorization: `Bearer ${spine.key}`,
  });
  expect(response.status, await response.text()).toBe(200);
  expect(await next.faults()).toEqual([]);
  expect(await proxy.close()).toBe(0);
});

test('a stream past the drain limit is cut and not charged, and the gateway does not wait for it', async () => {
  const dataDir = await folder();
  const world = await startTunnelSpine('drain_on_shutdown_ms = 300', { dataDir });
  const { spine } = world;
  const { upstream } = await world.supply('Endless');
  const stream = await readStream(
    spine.post('/chat/completions', askTunnel('!tokens:1000 !token-ms:50', { stream: true, max_tokens: 2000 })),
  );
  await stream.tokens(1);
  const begun = performance.now();
  await spine.app.close();
  expect(performance.now() - begun).toBeLessThan(atThisLoad(3_000));
  await expect(
    stream.end.then(
      (text) => text.includes('[DONE]'),
      () => false,
    ),
  ).resolves.toBe(false);
  await until(() => upstream.log[0]!.end === 'client_closed');

  const next = await startSpine({ dataDir, toml: UNHURRIED, provider: spine.provider, credit: '0' });
  onTestFinished(() => next.stop());
  expect(await next.faults()).toEqual([]);
  expect(await next.balance()).toEqual({ available: 100_000_000n, locked: 0n });
});
