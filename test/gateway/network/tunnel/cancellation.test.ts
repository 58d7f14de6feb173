import { expect, test } from 'vitest';
import { restOf, startWorld, until } from './tunnel-world.ts';

const CANCEL = 8;

test('a call that is given up before its head is cancelled at the proxy', async () => {
  const world = await startWorld();
  const begun = Promise.withResolvers<void>();
  const reset = Promise.withResolvers<number | undefined>();
  const peer = await world.peer({
    serve(stream) {
      stream.once('close', () => reset.resolve(stream.rstCode));
      begun.resolve();
    },
  });
  const exchange = world.send(peer.welcome.provider);
  await begun.promise;
  const reason = new Error('the client is gone');
  exchange.abort(reason);
  await expect(exchange.head).rejects.toBe(reason);
  expect(await reset.promise).toBe(CANCEL);
  await until(() => world.tunnels.count().streams === 0);
});

test('a call that is given up in the middle of its reply is cancelled at the proxy, and the others go on', async () => {
  const world = await startWorld();
  const reset = Promise.withResolvers<number | undefined>();
  const peer = await world.peer({
    serve(stream) {
      stream.respond({ ':status': 200 });
      stream.write('first');
      if (peer.streams.size === 1) stream.once('close', () => reset.resolve(stream.rstCode));
      else setTimeout(() => stream.end('last'), 50);
    },
  });
  const [given, kept] = [world.send(peer.welcome.provider), world.send(peer.welcome.provider)];
  const reply = await given.head;
  const other = await kept.head;
  await reply.read();
  const reason = new Error('the client is gone');
  given.abort(reason);
  await expect((async () => reply.read())()).rejects.toBe(reason);
  expect(await reset.promise).toBe(CANCEL);
  expect((await restOf(other)).toString()).toBe('firstlast');
});

test('a request that is given up while its body is sent never looks whole to the proxy', async () => {
  const world = await startWorld();
  const ends: string[] = [];
  const over = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const peer = await world.peer({
    serve(stream) {
      // The head is read and nothing of the body.
      begun.resolve();
      stream.once('end', () => ends.push(stream.closed ? 'cut' : 'whole'));
      stream.once('close', over.resolve);
    },
  });
  const exchange = world.send(peer.welcome.provider, { body: new Uint8Array(3_000_000) });
  exchange.head.catch(() => {});
  await begun.promise;
  exchange.abort(new Error('the client is gone'));
  const [stream] = peer.streams;
  stream?.resume();
  await over.promise;
  expect(ends).not.toContain('whole');
});

test('giving up a call that is over does nothing', async () => {
  const world = await startWorld();
  const peer = await world.peer({ serve: (stream) => (stream.respond({ ':status': 200 }), void stream.end('all')) });
  const exchange = world.send(peer.welcome.provider);
  const reply = await exchange.head;
  await until(() => world.tunnels.count().streams === 0);
  exchange.abort(new Error('too late'));
  expect((await restOf(reply)).toString()).toBe('all');
});
