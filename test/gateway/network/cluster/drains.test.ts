import { once } from 'node:events';
import type { ServerHttp2Stream } from 'node:http2';
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { findFreePort } from '../../../support/free-port.ts';
import { closed, createScene, open, reply } from './far-gateway.ts';

const scene = createScene();
afterEach(() => scene.end());

async function running() {
  const arrived = Promise.withResolvers<ServerHttp2Stream>();
  const begin = (stream: ServerHttp2Stream) => {
    stream.respond({ ':status': 200 });
    stream.write('begin');
    arrived.resolve(stream);
  };
  const far = await scene.far(begin, { port: await findFreePort() });
  const peers = scene.peers();
  const stream = open(peers, far.listener.url, {}, true);
  const whole = reply(stream);
  whole.catch(() => {});
  return { far, peers, stream, whole, sender: await arrived.promise };
}

describe('a listener for gateways that closes', () => {
  it('takes no new calls, and lets those that run finish', async () => {
    const { far, peers, stream, whole, sender } = await running();
    const session = stream.session!;
    const closing = far.listener.close(20_000);
    await once(session, 'goaway');
    await expect(reply(open(peers, far.listener.url, {}, true))).rejects.toThrow('reset with code');
    sender.end(' and end');
    expect(String((await whole).body)).toBe('begin and end');
    await closing;
  });

  it('is connected to anew when another one is in its place, while the calls of the old one still run', async () => {
    const { far, peers, stream, whole, sender } = await running();
    const goaway = once(stream.session!, 'goaway');
    const closing = far.listener.close(20_000);
    await goaway;
    const next = await scene.far((other) => other.respond({ ':status': 200 }, { endStream: true }), { port: far.port });
    expect((await reply(open(peers, next.listener.url, {}, true))).status).toBe(200);
    sender.end(' and end');
    expect(String((await whole).body)).toBe('begin and end');
    await closing;
  });

  it('cuts what has not finished in time', async () => {
    const { far, stream, sender } = await running();
    await far.listener.close(50);
    await Promise.all([closed(stream), closed(sender)]);
    expect(stream.rstCode).not.toBe(0);
  });

  it('does not wait for connections that have proven nothing', async () => {
    const far = await scene.far(() => {}, { handshakeMs: 600_000 });
    const socket = connect(far.port, '127.0.0.1').resume();
    await once(socket, 'connect');
    await Promise.all([far.listener.close(20_000), once(socket, 'close')]);
  });

  it('can be closed before it listens, and twice', async () => {
    const { far } = await running();
    await Promise.all([far.listener.close(0), far.listener.close(0)]);
    await far.listener.close(0);
  });
});
