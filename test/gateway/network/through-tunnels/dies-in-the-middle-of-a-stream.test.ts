import { expect, onTestFinished, test } from 'vitest';
import { offeredModel } from '../../../support/dial-in.ts';
import { startProvide } from '../../../support/provide-process.ts';
import { events } from '../../../support/spine.ts';
import { askTunnel, readStream, startTunnelSpine, until } from '../../../support/tunnel-spine.ts';
import { atThisLoad } from '../../../support/at-this-load.ts';

// A proxy's process is killed while it streams: its consumers learn it at once, and nobody pays.

test('a stream ends with one error frame, is not charged, and its provider stands as one that failed', async () => {
  const world = await startTunnelSpine();
  const { spine } = world;
  const upstream = await world.upstream();
  const process = await startProvide({
    router: spine.origin,
    services: offeredModel({ url: upstream.url, provider: 'Mortal' }),
  });
  onTestFinished(() => process.stop());

  const streams = await Promise.all(
    Array.from({ length: 5 }, () =>
      readStream(spine.post('/chat/completions', askTunnel('!tokens:40 !token-ms:100', { stream: true }))),
    ),
  );
  await Promise.all(streams.map((stream) => stream.tokens(2)));
  await process.kill9();
  const killedAt = performance.now();
  for (const { response, end } of streams) {
    const all = events(await end) as { error?: object; choices: { finish_reason: string | null }[] }[];
    expect(response.status).toBe(200);
    expect(all.length).toBeGreaterThan(2);
    expect(all.filter(({ error }) => error !== undefined)).toHaveLength(1);
    expect(all.at(-1)).toMatchObject({
      id: response.headers.get('x-generation-id'),
      choices: [{ finish_reason: 'error' }],
      error: {
        type: 'provider_unavailable',
        code: 500,
        message: expect.stringMatching(/^Provider Mortal failed: the provider broke off/),
      },
    });
    expect(all.slice(0, -1).every(({ choices }) => choices[0]!.finish_reason === null)).toBe(true);
  }
  expect(performance.now() - killedAt).toBeLessThan(atThisLoad(2_000));

  await spine.quiet();
  for (const { response } of streams) {
    const generation = await spine.generation(response.headers.get('x-generation-id'));
    expect(generation).toMatchObject({ state: 'released', cost_micro_usdc: 0 });
    expect(generation.entries.map(({ type }) => type).sort()).toEqual(['lock', 'refund']);
  }
  expect((await spine.balance()).available).toBe(100_000_000n);
  expect(await world.endpoints()).toMatchObject([
    { provider_id: process.id, health: 'away', requests: 5, uptime_last_1h: 0 },
  ]);
  const own = await world.ownPage('/services', process.wallet);
  expect(own).toMatchObject({
    connected: false,
    services: [{ status: 'away', last_hour: { requests: 5, failures: 5 } }],
  });
  // Its upstream learns that nobody is there to read.
  await Promise.all(upstream.log.map((call) => call.ended));
  expect(upstream.log.map(({ end }) => end)).toEqual(Array(5).fill('client_closed'));

  // What it did is not held against it once it is back.
  const again = await startProvide({
    router: spine.origin,
    wallet: process.wallet,
    services: offeredModel({ url: upstream.url, provider: 'Mortal' }),
  });
  onTestFinished(() => again.stop());
  await until(async () => (await world.endpoints())?.[0]?.health === 'untried');
  const reply = await spine.post('/chat/completions', askTunnel('hello'));
  expect(reply.status).toBe(200);
  await reply.text();
});
