import type { ServerHttp2Stream } from 'node:http2';
import { expect, test } from 'vitest';
import { startWorld, textOf } from './tunnel-world.ts';

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const BUSY = DEEP ? 500 : 50;
const KIB = 1024;
/** What a stalled reply may hold here: its window, and its queue beyond the last read. */
const STALLED_MAX = 128 * KIB;

/** Writes until nothing more is taken, and goes on as it is. Counts what was taken. */
function pour(stream: ServerHttp2Stream, chunk: Buffer, total: number, taken: (bytes: number) => void): void {
  let left = total;
  // Node resets a reply whose request is not read, possibly before the end of the reply is sent.
  stream.resume();
  stream.respond({ ':status': 200 });
  const next = () => {
    if (left <= 0) return void stream.end();
    left -= chunk.byteLength;
    stream.write(chunk, (error) => {
      if (error) return;
      taken(chunk.byteLength);
      next();
    });
  };
  next();
}

test(`a reply that nobody reads is held back, and ${BUSY} others flow beside it`, async () => {
  const world = await startWorld();
  let taken = 0;
  const peer = await world.peer({
    serve(stream, headers) {
      if (headers['x-stalls'] === undefined) pour(stream, Buffer.alloc(1_000, 'b'), 200_000, () => {});
      else pour(stream, Buffer.alloc(4_000, 's'), 50_000_000, (bytes) => (taken += bytes));
    },
  });
  const stalled = world.send(peer.welcome.provider, { headers: { 'x-stalls': '1' } });
  const reply = await stalled.head;
  const busy = await Promise.all(Array.from({ length: BUSY }, () => textOf(world.send(peer.welcome.provider))));
  expect(busy.every(({ text }) => text.length === 200_000)).toBe(true);
  expect(taken).toBeGreaterThan(32 * KIB);
  // The proxy's own buffers hold some, too.
  expect(taken).toBeLessThan(STALLED_MAX + 64 * KIB);
  // It was only held back.
  let read = 0;
  while (read < 1_000_000) for (const chunk of (await reply.read())!) read += chunk.byteLength;
  expect(taken).toBeGreaterThan(800_000);
  stalled.abort(new Error('enough'));
});

test('what waits for its reader does not keep what came with it in memory', async () => {
  const world = await startWorld({ upstream: { idleTimeoutMs: 80 } });
  const peer = await world.peer({
    together: true,
    serve(stream, headers) {
      const small = headers['x-stalls'] !== undefined;
      stream.respond({ ':status': 200 });
      const drip = setInterval(() => stream.write(small ? Buffer.alloc(50, 's') : Buffer.alloc(8_000, 'b')), 1);
      stream.once('close', () => clearInterval(drip));
    },
  });
  const stalled = await Promise.all(
    Array.from({ length: 4 }, () => world.send(peer.welcome.provider, { headers: { 'x-stalls': '1' } }).head),
  );
  const busy = world.send(peer.welcome.provider);
  const reply = await busy.head;
  let read = 0;
  while (read < 500_000) for (const chunk of (await reply.read())!) read += chunk.byteLength;
  await new Promise((resolve) => setTimeout(resolve, 30));
  for (const one of stalled) {
    const chunks = (await one.read())!;
    const held = new Set(chunks.map(({ buffer }) => buffer));
    const own = chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0);
    expect(own).toBeGreaterThan(500);
    // What was copied has memory of its own, so the next turn does not copy it again.
    expect(chunks[0]!.buffer.byteLength).toBe(chunks[0]!.byteLength);
    // The last turn's chunks aside.
    expect([...held].reduce((sum, buffer) => sum + buffer.byteLength, 0)).toBeLessThan(own + 200 * KIB);
  }
  busy.abort(new Error('enough'));
});

test('a large request is held back by a proxy that does not read it, and 50 others go beside it', async () => {
  const world = await startWorld();
  let arrived = 0;
  const peer = await world.peer({
    async serve(stream, headers) {
      if (headers['x-stalls'] !== undefined) return;
      for await (const chunk of stream) arrived += (chunk as Buffer).byteLength;
      stream.respond({ ':status': 200 });
      stream.end('taken');
    },
  });
  const stalled = world.send(peer.welcome.provider, { headers: { 'x-stalls': '1' }, body: new Uint8Array(8_000_000) });
  stalled.head.catch(() => {});
  const busy = await Promise.all(
    Array.from({ length: 50 }, () => textOf(world.send(peer.welcome.provider, { body: 'x'.repeat(100_000) }))),
  );
  expect(busy.every(({ text }) => text === 'taken')).toBe(true);
  expect(arrived).toBe(50 * 100_000);
  stalled.abort(new Error('enough'));
});
