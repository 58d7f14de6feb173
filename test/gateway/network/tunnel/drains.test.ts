import type { ServerHttp2Stream } from 'node:http2';
import { expect, test } from 'vitest';
import { UpstreamFailure } from '#wire';
import { solanaWallet } from '../../../support/wallets.ts';
import { restOf, startWorld, textOf, until } from './tunnel-world.ts';
import { atThisLoad } from '../../../support/at-this-load.ts';

/** Begins a reply and leaves its end to the test. */
const half = (streams: ServerHttp2Stream[]) => ({
  serve(stream: ServerHttp2Stream) {
    streams.push(stream);
    stream.respond({ ':status': 200 });
    stream.write('half ');
  },
});

test('a proxy that drains gets no new calls, and its running ones end', async () => {
  const world = await startWorld({ upstream: { waitMs: 0 } });
  const streams: ServerHttp2Stream[] = [];
  const peer = await world.peer(half(streams));
  const { provider } = peer.welcome;
  const reply = await world.send(provider).head;
  peer.say({ type: 'draining' });
  await until(() => world.registry.locate(provider) === null);
  await expect(world.send(provider).head).rejects.toMatchObject({ message: 'the provider is not connected' });
  streams[0]!.end('and whole');
  expect((await restOf(reply)).toString()).toBe('half and whole');
  expect(streams).toHaveLength(1);
});

test('a proxy that drains makes room for its successor, and keeps what runs', async () => {
  const world = await startWorld();
  const wallet = solanaWallet();
  const streams: ServerHttp2Stream[] = [];
  const old = await world.peer({ wallet, ...half(streams) });
  const reply = await world.send(wallet.providerId).head;
  old.say({ type: 'draining' });
  await until(() => world.registry.locate(wallet.providerId) === null);
  const young = await world.dial({
    wallet,
    serve: (stream) => (stream.respond({ ':status': 200 }), void stream.end('young')),
  });
  await young.register();
  expect((await textOf(world.send(wallet.providerId))).text).toBe('young');
  streams[0]!.end('and whole');
  expect((await restOf(reply)).toString()).toBe('half and whole');
  expect(world.told).not.toContain('replaced');
});

test('proxies that drain do not count as new ones: their provider may dial again', async () => {
  const world = await startWorld({ limits: { newConnectionsMax: 2 } });
  const wallet = solanaWallet();
  const streams: ServerHttp2Stream[] = [];
  for (const draining of [1, 2, 3]) {
    const peer = await world.peer({ wallet, ...half(streams) });
    await world.send(wallet.providerId).head;
    peer.say({ type: 'draining' });
    await until(() => world.told.filter((one) => one === 'draining').length === draining);
  }
  const last = await world.peer({ wallet });
  expect(last.welcome.provider).toBe(wallet.providerId);
  for (const stream of streams) stream.end();
});

test('a proxy that closes its control stream after it drained keeps what runs', async () => {
  const world = await startWorld();
  const streams: ServerHttp2Stream[] = [];
  const peer = await world.peer(half(streams));
  const reply = await world.send(peer.welcome.provider).head;
  peer.say({ type: 'draining' });
  peer.session.close();
  await until(() => world.told.includes('draining'));
  streams[0]!.end('and whole');
  expect((await restOf(reply)).toString()).toBe('half and whole');
});

test('a gateway that shuts down tells its proxies, lets running calls end, and closes each when it has none', async () => {
  const world = await startWorld({ upstream: { waitMs: 0 } });
  const streams: ServerHttp2Stream[] = [];
  const idle = await world.peer({}, 'idle/model');
  const busy = await world.peer(half(streams), 'busy/model');
  const reply = await world.send(busy.welcome.provider).head;
  const closing = world.tunnels.close(20_000);
  expect(await idle.heard()).toEqual({ type: 'draining' });
  expect(await busy.heard()).toEqual({ type: 'draining' });
  expect(await idle.closed).toMatchObject({ code: 1001, reason: 'the gateway shuts down' });
  expect(world.tunnels.session('x')).toBeNull();
  await expect(world.send(busy.welcome.provider).head).rejects.toThrow(UpstreamFailure);
  streams[0]!.end('and whole');
  expect((await restOf(reply)).toString()).toBe('half and whole');
  await closing;
  expect(await busy.closed).toMatchObject({ code: 1001 });
});

test('a gateway that shuts down waits no longer than it may', async () => {
  const world = await startWorld();
  const peer = await world.peer(half([]));
  const reply = await world.send(peer.welcome.provider).head;
  const begun = performance.now();
  await world.tunnels.close(100);
  expect(performance.now() - begun).toBeLessThan(atThisLoad(2_000));
  await expect(restOf(reply)).rejects.toThrow(UpstreamFailure);
  expect(world.tunnels.count()).toEqual({ connections: 0, streams: 0 });
});

test('a registration that is overtaken by the shutdown is no replacement: running calls end', async () => {
  const storing = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  let registrations = 0;
  const world = await startWorld({
    registry: (registry) => ({
      async register(connection, services) {
        if (++registrations === 2) {
          storing.resolve();
          await gate.promise;
        }
        return registry.register(connection, services);
      },
    }),
  });
  const streams: ServerHttp2Stream[] = [];
  const peer = await world.peer(half(streams));
  const reply = await world.send(peer.welcome.provider).head;
  const answer = peer.register();
  await storing.promise;
  const closing = world.tunnels.close(20_000);
  expect(await answer).toEqual({ type: 'draining' });
  gate.resolve();
  await until(() => world.registry.locate(peer.welcome.provider) === null);
  // Later than what the registry then says.
  await new Promise((resolve) => setTimeout(resolve, 50));
  streams[0]!.end('and whole');
  expect((await restOf(reply)).toString()).toBe('half and whole');
  await closing;
  expect(world.told).not.toContain('replaced');
});
