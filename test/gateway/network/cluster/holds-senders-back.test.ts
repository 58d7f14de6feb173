import { once } from 'node:events';
import type { Http2Stream, ServerHttp2Stream } from 'node:http2';
import { afterEach, describe, expect, it } from 'vitest';
import { createScene, open, reply } from './far-gateway.ts';

const scene = createScene();
afterEach(() => scene.end());

const PIECE = Buffer.alloc(16 * 1024, 'x');
/** Windows and buffers of two hops and four processes in one. Without backpressure it would be all that is offered. */
const HELD_MAX = 1024 * 1024;
const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const OFFERED = (DEEP ? 64 : 16) * 1024 * 1024;
const STALLED = DEEP ? 500 : 100;
const BUSY = 30;

/** Writes until nobody takes any more, or all is written; resolves with the bytes that were taken. */
function firehose(stream: Http2Stream, count: { taken: number }): void {
  const more = () => {
    while (count.taken < OFFERED) {
      count.taken += PIECE.byteLength;
      if (!stream.write(PIECE)) return void stream.once('drain', more);
    }
    stream.end();
  };
  more();
}

/** Waits until counts have not moved for a while. */
async function settled(counts: readonly { taken: number }[]): Promise<void> {
  const total = () => counts.reduce((sum, { taken }) => sum + taken, 0);
  for (let last = -1; last !== total();) {
    last = total();
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
}

describe('between two gateways', () => {
  it('a reader that stalls holds its sender back, and the calls beside it flow', async () => {
    const counts: { taken: number }[] = [];
    const far = await scene.far((stream, headers) => {
      stream.respond({ ':status': 200 });
      if (headers[':path'] === '/busy') return stream.end(PIECE);
      const count = { taken: 0 };
      counts.push(count);
      firehose(stream, count);
    });
    const peers = scene.peers();
    const stalled = Array.from({ length: STALLED }, () => open(peers, far.listener.url, {}, true));
    await Promise.all(stalled.map((stream) => once(stream, 'response')));
    await settled(counts);
    expect(counts).toHaveLength(STALLED);
    expect(Math.max(...counts.map(({ taken }) => taken))).toBeLessThan(HELD_MAX);

    const replies = await Promise.all(
      Array.from({ length: BUSY }, () => reply(open(peers, far.listener.url, { ':path': '/busy' }, true))),
    );
    for (const { body } of replies) expect(body.byteLength).toBe(PIECE.byteLength);

    // The one that begins to read gets all of it.
    const [first] = stalled;
    let read = 0;
    for await (const chunk of first!) read += (chunk as Buffer).byteLength;
    expect(read).toBe(OFFERED);
    expect(Math.max(...counts.slice(1).map(({ taken }) => taken))).toBeLessThan(HELD_MAX);
    for (const stream of stalled.slice(1)) stream.close();
  });

  it('a tunnel that takes nothing holds the sender of a request back, and the calls beside it flow', async () => {
    const held: ServerHttp2Stream[] = [];
    const far = await scene.far((stream, headers) => {
      if (headers[':path'] !== '/busy') return void held.push(stream);
      stream.respond({ ':status': 200 });
      stream.pipe(stream);
    });
    const peers = scene.peers();
    const count = { taken: 0 };
    const stalled = open(peers, far.listener.url);
    firehose(stalled, count);
    await settled([count]);
    expect(count.taken).toBeLessThan(HELD_MAX);

    for (let call = 0; call < BUSY; call += 1) {
      const busy = open(peers, far.listener.url, { ':path': '/busy' });
      busy.end(PIECE);
      expect((await reply(busy)).body.equals(PIECE)).toBe(true);
    }

    let read = 0;
    for await (const chunk of held[0]!) read += (chunk as Buffer).byteLength;
    expect(read).toBe(OFFERED);
    held[0]!.respond({ ':status': 200 }, { endStream: true });
    expect((await reply(stalled)).status).toBe(200);
  });
});
