import { once } from 'node:events';
import { constants, type ServerHttp2Stream } from 'node:http2';
import { afterEach, describe, expect, it } from 'vitest';
import { resetStream, watchEnd } from '../../../../src/gateway/network/tunnel/http2-streams.ts';
import { CONNECTION_HEADER } from '../../../../src/gateway/network/peers.ts';
import { closed, CONNECTION, createScene, open, reply } from './far-gateway.ts';

const scene = createScene();
afterEach(() => scene.end());

const { NGHTTP2_CANCEL, NGHTTP2_ENHANCE_YOUR_CALM, NGHTTP2_INTERNAL_ERROR, NGHTTP2_NO_ERROR, NGHTTP2_REFUSED_STREAM } =
  constants;
const CODES = [NGHTTP2_CANCEL, NGHTTP2_INTERNAL_ERROR, NGHTTP2_REFUSED_STREAM, NGHTTP2_ENHANCE_YOUR_CALM];
const CANCELS = process.env['TOLLGATE_DEEP'] === '1' ? 100_000 : 800;

describe('a reset', () => {
  it.each(CODES)('by the caller reaches the tunnel, with code %i', async (code) => {
    const arrived = Promise.withResolvers<ServerHttp2Stream>();
    const far = await scene.far((stream) => {
      stream.respond({ ':status': 200 });
      stream.write('begin');
      stream.resume();
      arrived.resolve(stream);
    });
    const stream = open(scene.peers(), far.listener.url);
    await once(stream, 'data');
    stream.close(code);
    const other = await arrived.promise;
    await closed(other);
    expect(other.rstCode).toBe(code);
  });

  it('by the caller before there is a reply reaches the tunnel', async () => {
    const arrived = Promise.withResolvers<ServerHttp2Stream>();
    const far = await scene.far((stream) => arrived.resolve(stream));
    const stream = open(scene.peers(), far.listener.url, {}, true);
    const other = await arrived.promise;
    stream.close(NGHTTP2_CANCEL);
    await closed(other);
    expect(other.rstCode).toBe(NGHTTP2_CANCEL);
  });

  it.each(CODES)('by the tunnel reaches the caller, with code %i, before and amid a reply', async (code) => {
    const far = await scene.far((stream, headers) => {
      if (headers[':path'] === '/before') return resetStream(stream, code);
      stream.respond({ ':status': 200 });
      stream.write('begin', () => resetStream(stream, code));
    });
    const peers = scene.peers();
    for (const endStream of [false, true]) {
      await expect(reply(open(peers, far.listener.url, { ':path': '/before' }, endStream))).rejects.toThrow(
        `reset with code ${code}`,
      );
      await expect(reply(open(peers, far.listener.url, {}, endStream))).rejects.toThrow(`reset with code ${code}`);
    }
  });

  it('is what becomes of a stream whose head cannot be passed on', async () => {
    const far = await scene.far((stream) => {
      stream.respond({ ':status': 200 });
      stream.end('fine');
    });
    const peers = scene.peers();
    const head = { ':method': 'CONNECT', ':authority': 'tunnel', [CONNECTION_HEADER]: CONNECTION };
    const stream = peers.session({ id: 'far', url: far.listener.url }).request(head);
    stream.on('error', () => {});
    await expect(reply(stream)).rejects.toThrow(`reset with code ${NGHTTP2_INTERNAL_ERROR}`);
    expect((await reply(open(peers, far.listener.url, {}, true))).body.toString()).toBe('fine');
  });

  it.each(['the gateway gives the tunnel up', 'the proxy dies', 'the proxy resets it without an error'])(
    'is what the caller sees when %s amid a reply, never an end',
    async (how) => {
      const arrived = Promise.withResolvers<ServerHttp2Stream>();
      const far = await scene.far((stream) => {
        stream.respond({ ':status': 200 });
        stream.write('begin');
        arrived.resolve(stream);
      });
      const stream = open(scene.peers(), far.listener.url, {}, true);
      const whole = watchEnd(stream);
      const session = stream.session!;
      await once(stream, 'data');
      if (how === 'the gateway gives the tunnel up') far.tunnel.destroy();
      else if (how === 'the proxy dies') (await arrived.promise).session!.destroy();
      else resetStream(await arrived.promise, NGHTTP2_NO_ERROR);
      await closed(stream);
      expect([stream.rstCode, whole(), session.closed]).toEqual([NGHTTP2_CANCEL, false, false]);
    },
  );

  it('is what the proxy sees when the caller dies amid a request, never an end', async () => {
    const arrived = Promise.withResolvers<readonly [ServerHttp2Stream, () => boolean]>();
    const far = await scene.far((stream) => arrived.resolve([stream, watchEnd(stream)]));
    const stream = open(scene.peers(), far.listener.url);
    stream.write('begin');
    const [other, whole] = await arrived.promise;
    await once(other, 'data');
    stream.session!.destroy();
    await closed(other);
    expect([other.rstCode, whole()]).toEqual([NGHTTP2_CANCEL, false]);
  });

  it('is no reason to end the connection, however many there are', async () => {
    const running = new Set<ServerHttp2Stream>();
    const far = await scene.far((stream) => {
      running.add(stream);
      stream.once('close', () => running.delete(stream));
      stream.respond({ ':status': 200 });
      stream.write('begin');
    });
    const peers = scene.peers();
    const first = open(peers, far.listener.url);
    const session = first.session!;
    for (let done = 0; done < CANCELS; done += 100) {
      const streams = Array.from({ length: 100 }, () => open(peers, far.listener.url));
      await Promise.all(
        streams.map(async (stream, index) => {
          if (index % 2) await once(stream, 'response');
          stream.close(NGHTTP2_CANCEL);
          await closed(stream);
        }),
      );
    }
    expect([session.closed, first.closed]).toEqual([false, false]);
    first.close(NGHTTP2_CANCEL);
    await closed(first);
    while (running.size > 0) await closed([...running][0]!);
  });
});
