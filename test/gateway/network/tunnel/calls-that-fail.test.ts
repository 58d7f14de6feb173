import { constants, type ServerHttp2Stream } from 'node:http2';
import { describe, expect, test } from 'vitest';
import { UpstreamFailure } from '#wire';
import { PROXY_FAILURE_HEADER, PROXY_FAILURES } from '../../../../src/gateway/network/tunnel-wire.ts';
import { solanaWallet } from '../../../support/wallets.ts';
import { restOf, startWorld, textOf } from './tunnel-world.ts';

const { NGHTTP2_REFUSED_STREAM, NGHTTP2_INTERNAL_ERROR, NGHTTP2_NO_ERROR } = constants;
const failed = (promise: Promise<unknown>): Promise<UpstreamFailure> =>
  promise.then(
    () => Promise.reject(new Error('it did not fail')),
    (error: unknown) => {
      expect(error).toBeInstanceOf(UpstreamFailure);
      return error as UpstreamFailure;
    },
  );

describe('a proxy that goes away', () => {
  test('before the head: another may be tried', async () => {
    const world = await startWorld();
    const peer = await world.peer({ serve: () => peer.kill() });
    const failure = await failed(world.send(peer.welcome.provider).head);
    expect(failure).toMatchObject({
      retryable: true,
      attributedTo: 'provider',
      unsent: false,
      message: expect.stringMatching(/broke off before/),
    });
    await peer.closed;
    expect(world.told.at(-1)).toMatch(/^left/);
  });

  test('in the middle of its answer: what had come is read, then it fails', async () => {
    const world = await startWorld();
    const peer = await world.peer({
      serve(stream) {
        stream.respond({ ':status': 200 });
        stream.write('half');
      },
    });
    const reply = await world.send(peer.welcome.provider).head;
    expect(Buffer.concat((await reply.read())!).toString()).toBe('half');
    peer.kill();
    expect((await failed(restOf(reply))).message).toMatch(/middle of its answer/);
  });
});

describe('a stream that is reset', () => {
  test.each([
    ['with an error', NGHTTP2_INTERNAL_ERROR],
    // Node's own end of such a stream looks like that of a whole reply.
    ['without an error', NGHTTP2_NO_ERROR],
  ])('%s in the middle of its answer is no whole reply', async (_how, code) => {
    const world = await startWorld();
    const peer = await world.peer({
      serve(stream) {
        stream.respond({ ':status': 200 });
        stream.write('half', () => {
          stream._final = (done) => done();
          stream.close(code);
        });
      },
    });
    const reply = await world.send(peer.welcome.provider).head;
    expect((await failed(restOf(reply))).message).toMatch(/middle of its answer/);
    expect(peer.socket.readyState).toBe(peer.socket.OPEN);
  });

  test('before the head: another may be tried', async () => {
    const world = await startWorld();
    const peer = await world.peer({ serve: (stream) => stream.close(NGHTTP2_INTERNAL_ERROR) });
    expect(await failed(world.send(peer.welcome.provider).head)).toMatchObject({ retryable: true, unsent: false });
  });

  test('as refused has not begun: it is sent again while that may help', async () => {
    const world = await startWorld();
    let refused = 0;
    const peer = await world.peer({
      serve(stream) {
        if (refused++ < 2) return stream.close(NGHTTP2_REFUSED_STREAM);
        stream.respond({ ':status': 200 });
        stream.end('third time');
      },
    });
    expect((await textOf(world.send(peer.welcome.provider))).text).toBe('third time');
    refused = -1_000;
    expect(await failed(world.send(peer.welcome.provider, {}, false).head)).toMatchObject({
      retryable: true,
      unsent: true,
    });
  });
});

describe("the proxy's own words", () => {
  test.each([...PROXY_FAILURES.filter((kind) => kind !== 'draining'), 'of a later version', 'constructor'])(
    '%s: a failure of the provider, and no reply',
    async (kind) => {
      const world = await startWorld();
      const peer = await world.peer({
        serve(stream) {
          stream.respond({ ':status': 502, [PROXY_FAILURE_HEADER]: kind });
          stream.end('{"error":{}}');
        },
      });
      const failure = await failed(world.send(peer.welcome.provider).head);
      const unsent = kind === 'upstream_unreachable' || kind === 'unknown_service';
      expect(failure).toMatchObject({ retryable: true, attributedTo: 'provider', status: null, unsent });
      expect(failure.message).toMatch(/^the provider/);
    },
  );

  test('draining: sent again, to the connection that comes next', async () => {
    const world = await startWorld({ upstream: { waitMs: 10_000 } });
    const wallet = solanaWallet();
    const asked = Promise.withResolvers<void>();
    const old = await world.peer({
      wallet,
      serve(stream) {
        stream.respond({ ':status': 503, [PROXY_FAILURE_HEADER]: 'draining' });
        stream.end('{}');
        asked.resolve();
      },
    });
    const call = textOf(world.send(wallet.providerId));
    await asked.promise;
    old.say({ type: 'draining' });
    await (
      await world.dial({
        wallet,
        serve: (stream: ServerHttp2Stream) => (stream.respond({ ':status': 200 }), void stream.end('here')),
      })
    ).register();
    expect((await call).text).toBe('here');
  });
});

describe('a provider that is not connected', () => {
  test('is waited for: its return begins the call', async () => {
    const world = await startWorld({ upstream: { waitMs: 10_000 } });
    const wallet = solanaWallet();
    const call = textOf(world.send(wallet.providerId));
    await world.peer({ wallet, serve: (stream) => (stream.respond({ ':status': 200 }), void stream.end('back')) });
    expect((await call).text).toBe('back');
  });

  test('is waited for no longer than may be, and not at all while another offer is left', async () => {
    const world = await startWorld({ upstream: { waitMs: 300 } });
    const begun = performance.now();
    expect(await failed(world.send('nobody').head)).toMatchObject({
      retryable: true,
      unsent: true,
      message: 'the provider is not connected',
    });
    expect(performance.now() - begun).toBeGreaterThan(290);
    const patient = await startWorld({ upstream: { waitMs: 600_000 } });
    expect(await failed(patient.send('nobody', {}, false).head)).toMatchObject({ unsent: true });
  });

  test('is waited for no more once the call is given up', async () => {
    const world = await startWorld({ upstream: { waitMs: 10_000 } });
    const wallet = solanaWallet();
    let calls = 0;
    const exchange = world.send(wallet.providerId);
    const reason = new Error('the client is gone');
    exchange.abort(reason);
    await expect(exchange.head).rejects.toBe(reason);
    const peer = await world.peer({
      wallet,
      serve: (stream) => (calls++, stream.respond({ ':status': 200 }), void stream.end('x')),
    });
    await textOf(world.send(peer.welcome.provider));
    expect(calls).toBe(1);
  });
});
