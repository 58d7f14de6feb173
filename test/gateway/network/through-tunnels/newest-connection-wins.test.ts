import type { ServerHttp2Stream } from 'node:http2';
import { expect, onTestFinished, test } from 'vitest';
import { offeredModel } from '../../../support/dial-in.ts';
import { startProvide } from '../../../support/provide-process.ts';
import { events } from '../../../support/spine.ts';
import { documentOf, dialPeer } from '../../../support/tunnel-peer.ts';
import { askTunnel, readStream, startTunnelSpine, TUNNEL_MODEL } from '../../../support/tunnel-spine.ts';
import { solanaWallet } from '../../../support/wallets.ts';

// Two proxies come with one wallet: the newer one has the provider's place.

test('the older proxy ends with code 3 and its calls with one error frame; all new calls are served by the newer one', async () => {
  const world = await startTunnelSpine();
  const { spine } = world;
  const [before, after] = [await world.upstream(), await world.upstream()];
  const wallet = solanaWallet();
  const older = await startProvide({
    router: spine.origin,
    wallet,
    services: offeredModel({ url: before.url, provider: 'Twice' }),
  });
  onTestFinished(() => older.stop());
  const stream = await readStream(
    spine.post('/chat/completions', askTunnel('!tokens:600 !token-ms:100', { stream: true })),
  );
  await stream.tokens(2);

  const newer = await world.dialIn({ wallet, services: offeredModel({ url: after.url, provider: 'Twice' }) });
  const all = events(await stream.end) as { error?: object }[];
  expect(all.filter(({ error }) => error !== undefined)).toHaveLength(1);
  expect(all.at(-1)).toMatchObject({ error: { type: 'provider_unavailable' }, choices: [{ finish_reason: 'error' }] });
  expect(await spine.generation(stream.response.headers.get('x-generation-id'))).toMatchObject({
    state: 'released',
    cost_micro_usdc: 0,
  });
  expect(await older.exited()).toBe(3);
  expect(older.logs()).toContain('another proxy with the same credential took over');

  for (let turn = 0; turn < 5; turn++) {
    const response = await spine.post('/chat/completions', askTunnel('hello', { stream: turn % 2 === 0 }));
    expect(response.status).toBe(200);
    await response.text();
  }
  expect([before.log.length, after.log.length]).toEqual([1, 5]);
  expect(await world.endpoints()).toHaveLength(1);
  expect(await world.ownPage('/services', wallet)).toMatchObject({ connected: true, revision: 1 });
  expect(newer.lines.filter(({ msg }) => msg === 'no connection to the router')).toEqual([]);
});

test('what the older one goes on to say reaches no call', async () => {
  const world = await startTunnelSpine();
  const { spine } = world;
  const wallet = solanaWallet();
  const chunk = (text: string) =>
    `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content: text }, finish_reason: null }] })}\n\n`;
  const open: ServerHttp2Stream[] = [];
  const older = await dialPeer({
    url: spine.origin,
    wallet,
    serve(stream) {
      stream.resume();
      stream.respond({ ':status': 200, 'content-type': 'text/event-stream' });
      stream.write(chunk('early'));
      open.push(stream);
    },
  });
  onTestFinished(() => older.kill());
  expect((await older.register(documentOf(TUNNEL_MODEL, 'Twice'))).type).toBe('registered');
  const streams = await Promise.all(
    Array.from({ length: 10 }, () => readStream(spine.post('/chat/completions', askTunnel('hello', { stream: true })))),
  );
  await Promise.all(streams.map((stream) => stream.tokens(1)));

  // It neither listens nor stops.
  let word = 'in time';
  let late = 0;
  const babble = setInterval(() => {
    for (const stream of open) if (stream.writable) stream.write(chunk(word));
    if (word === 'too late') late += 1;
  }, 1);
  onTestFinished(() => clearInterval(babble));
  const told = older.heard().then((message) => {
    word = 'too late';
    return message;
  });
  const after = await world.upstream();
  const newer = await world.dialIn({ wallet, services: offeredModel({ url: after.url, provider: 'Twice' }) });
  expect(await told).toEqual({ type: 'replaced' });
  const fresh = await readStream(
    spine.post('/chat/completions', askTunnel('!tokens:20 !token-ms:10', { stream: true })),
  );
  for (const { end } of streams) {
    const text = await end;
    expect(text).toContain('in time');
    expect(text).not.toContain('too late');
    expect(events(text).at(-1)).toMatchObject({ error: { type: 'provider_unavailable' } });
  }
  const served = await fresh.end;
  expect(events(served).at(-1)).toBe('[DONE]');
  expect(served).not.toContain('too late');
  expect(late).toBeGreaterThan(0);
  await older.closed;
  expect(newer.lines.some(({ level }) => level === 'error')).toBe(false);
});
