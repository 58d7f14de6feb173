import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import { peerKeys } from '../../../../src/gateway/network/peers.ts';
import { createScene, open, reply, SECRET, type FarGateway, type OnStream } from './far-gateway.ts';

const scene = createScene();
afterEach(() => scene.end());

const answer: OnStream = (stream) => {
  stream.respond({ ':status': 200 });
  stream.end('served');
};

/** A stranger's socket, whose end is waited for. */
function stranger(far: FarGateway): Socket {
  const socket = connect(far.port, '127.0.0.1');
  scene.later(async () => void socket.destroy());
  socket.on('error', () => {});
  return socket.resume();
}

const serves = async (far: FarGateway) =>
  String((await reply(open(scene.peers(), far.listener.url, {}, true))).body) === 'served';

describe('the listener for gateways', () => {
  it.each([
    ['another secret', Buffer.from('another secret')],
    ['an empty secret', Buffer.alloc(0)],
    ['a part of the secret', SECRET.subarray(1)],
  ])('refuses %s', async (_what, secret) => {
    let streams = 0;
    const far = await scene.far(() => (streams += 1));
    const failed = Promise.withResolvers<string>();
    const strangers = scene.peers({ secret, onError: (_node, error) => failed.resolve(error.message) });
    await expect(reply(open(strangers, far.listener.url, {}, true))).rejects.toThrow('reset with code');
    expect(await failed.promise).toMatch(/bad record mac/);
    expect(streams).toBe(0);
  });

  it('refuses TLS without a key, with another name of the key, and HTTP/2 without TLS', async () => {
    const far = await scene.far(answer);
    const tls = (options: object) =>
      new Promise<string>((resolve) => {
        const socket = connectTls(
          { port: far.port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'], ...options },
          () => {
            socket.destroy();
            resolve('connected');
          },
        );
        socket.on('error', (error) => resolve(error.message));
      });
    expect(await tls({})).toMatch(/handshake failure|protocol version|no ciphers/i);
    expect(await tls({ maxVersion: 'TLSv1.2', ciphers: 'ALL' })).toMatch(/handshake failure/i);
    const psk = { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-PSK-CHACHA20-POLY1305', checkServerIdentity: () => undefined };
    expect(await tls({ ...psk, pskCallback: () => ({ identity: 'another', psk: peerKeys(SECRET)[0]!.key }) })).toMatch(
      /unknown psk identity/i,
    );
    const plain = connectHttp2(`http://127.0.0.1:${far.port}`);
    plain.on('error', () => {});
    plain.request({ ':path': '/' }).on('error', () => {});
    await once(plain, 'close');
    expect(await serves(far)).toBe(true);
  });

  it('is unharmed by garbage', async () => {
    const far = await scene.far(answer);
    const garbage = [
      Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'),
      Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
      // The head of a TLS record that announces more than a record may hold.
      Buffer.from([22, 3, 1, 255, 255, 1]),
      ...Array.from({ length: 50 }, (_, index) => randomBytes(1 + index * 40)),
      ...Array.from({ length: 50 }, (_, index) =>
        Buffer.concat([Buffer.from([22, 3, 1, 0, 100 + index, 1]), randomBytes(99 + index)]),
      ),
    ];
    for (const bytes of garbage) {
      const socket = stranger(far);
      socket.end(bytes);
      await once(socket, 'close');
    }
    expect(await serves(far)).toBe(true);
  });

  it('closes connections that prove nothing in time, also half open ones', async () => {
    const far = await scene.far(answer, { handshakeMs: 800 });
    const silent = stranger(far);
    const begun = stranger(far);
    begun.write(Buffer.from([22, 3, 1, 0, 200, 1]));
    const halfOpen = connect({ port: far.port, host: '127.0.0.1', allowHalfOpen: true }).resume();
    halfOpen.on('error', () => {});
    scene.later(async () => void halfOpen.destroy());
    halfOpen.end();
    await Promise.all([once(silent, 'close'), once(begun, 'close'), once(halfOpen, 'end')]);
    expect(await serves(far)).toBe(true);
  });

  it('keeps a bounded number of them, and lets gateways in beside them', async () => {
    const far = await scene.far(answer, { handshakeMs: 600_000 });
    const strangers = Array.from({ length: 300 }, () => stranger(far));
    let left = strangers.length;
    const enough = Promise.withResolvers<void>();
    for (const socket of strangers)
      socket.once('close', () => {
        left -= 1;
        if (left === 64) enough.resolve();
      });
    await enough.promise;
    expect(await serves(far)).toBe(true);
  });
});
