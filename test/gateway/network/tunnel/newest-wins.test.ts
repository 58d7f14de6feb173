import type { ServerHttp2Stream } from 'node:http2';
import { expect, test } from 'vitest';
import { UpstreamFailure } from '#wire';
import { solanaWallet } from '../../../support/wallets.ts';
import { restOf, startWorld, textOf, until } from './tunnel-world.ts';

test('a newer connection of a provider takes over, the older one is told and ends', async () => {
  const world = await startWorld();
  const wallet = solanaWallet();
  const answer = (text: string) => ({
    serve: (stream: ServerHttp2Stream) => (stream.respond({ ':status': 200 }), void stream.end(text)),
  });
  const old = await world.peer({ wallet, ...answer('old') });
  expect((await textOf(world.send(wallet.providerId))).text).toBe('old');
  const young = await world.dial({ wallet, ...answer('young') });
  await young.register();
  expect(await old.heard()).toEqual({ type: 'replaced' });
  expect(await old.closed).toMatchObject({ code: 1000, reason: expect.stringMatching(/newer connection/) });
  expect((await textOf(world.send(wallet.providerId))).text).toBe('young');
  expect(world.told.filter((word) => word === 'replaced')).toHaveLength(1);
  expect(world.tunnels.count().connections).toBe(1);
});

test('nothing that the older one says afterwards reaches a call: its calls have failed', async () => {
  const world = await startWorld();
  const wallet = solanaWallet();
  const streams: ServerHttp2Stream[] = [];
  const old = await world.peer({
    wallet,
    serve(stream) {
      streams.push(stream);
      stream.respond({ ':status': 200 });
      stream.write('early');
    },
  });
  const reply = await world.send(wallet.providerId).head;
  expect(Buffer.concat((await reply.read())!).toString()).toBe('early');
  // The older one goes on for as long as it can.
  const babble = setInterval(() => {
    for (const stream of streams) if (stream.writable) stream.write('late');
  }, 0);
  const read: string[] = [];
  let replacedAt = Infinity;
  const rest = (async () => {
    for (;;) {
      const chunks = await reply.read();
      if (chunks === null) throw new Error('the reply ended as if it were whole');
      if (replacedAt < Infinity) read.push(Buffer.concat(chunks).toString());
    }
  })();
  rest.catch(() => {});
  const young = await world.dial({ wallet });
  const watch = setInterval(() => {
    if (world.told.includes('replaced')) replacedAt = performance.now();
  }, 0);
  await young.register();
  await expect(rest).rejects.toThrow(UpstreamFailure);
  clearInterval(babble);
  clearInterval(watch);
  await old.closed;
  expect(read.join('')).toBe('');
});

test('a reply that had arrived whole is read to its end although its connection was replaced meanwhile', async () => {
  const world = await startWorld();
  const wallet = solanaWallet();
  const text = 'x'.repeat(50_000);
  const old = await world.peer({
    wallet,
    serve: (stream) => (stream.respond({ ':status': 200 }), void stream.end(text)),
  });
  const reply = await world.send(wallet.providerId).head;
  await until(() => world.tunnels.count().streams === 0);
  await (await world.dial({ wallet })).register();
  await old.closed;
  expect((await restOf(reply)).toString()).toBe(text);
});
