import { once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { startFaultProxy } from '../../../support/fault-proxy.ts';
import { findFreePort } from '../../../support/free-port.ts';
import { unlessStalled } from '../../../support/unless-stalled.ts';
import { closed, createScene, open, reply, type OnStream } from './far-gateway.ts';

const scene = createScene();
afterEach(() => scene.end());

const begin: OnStream = (stream) => {
  stream.respond({ ':status': 200 });
  stream.write('begin');
};
const answer: OnStream = (stream) => {
  stream.respond({ ':status': 200 });
  stream.end('served');
};

describe('another gateway', () => {
  it('that died ends its calls, and is connected to anew when it is back', async () => {
    const far = await scene.far(begin);
    const between = await startFaultProxy({ port: far.port });
    scene.later(() => between.stop());
    const url = `https://127.0.0.1:${between.port}`;
    const peers = scene.peers();
    const stream = open(peers, url);
    await once(stream, 'data');
    between.refuse = true;
    between.reset();
    await closed(stream);
    expect(stream.rstCode).not.toBe(0);
    await expect(reply(open(peers, url, {}, true))).rejects.toThrow('reset with code');

    between.heal();
    const again = open(peers, url);
    expect(String(await once(again, 'data'))).toBe('begin');
    again.close();
  });

  it('is reached by one connection', async () => {
    const far = await scene.far(answer);
    const between = await startFaultProxy({ port: far.port });
    scene.later(() => between.stop());
    const peers = scene.peers();
    await Promise.all(
      Array.from({ length: 50 }, () => reply(open(peers, `https://127.0.0.1:${between.port}`, {}, true))),
    );
    expect(between.connections).toBe(1);
  });

  it('that is not there fails a call at once', async () => {
    const port = await findFreePort();
    const failed = Promise.withResolvers<string>();
    const peers = scene.peers({
      onError: (node, error) => failed.resolve(`${node.id}: ${(error as NodeJS.ErrnoException).code}`),
    });
    await expect(reply(open(peers, `https://127.0.0.1:${port}`, {}, true))).rejects.toThrow('reset with code');
    expect(await failed.promise).toBe('far: ECONNREFUSED');
  });

  it('that is not there is told of once, until it has been there', async () => {
    const far = await scene.far(answer);
    const between = await startFaultProxy({ port: far.port });
    scene.later(() => between.stop());
    const told: string[] = [];
    const peers = scene.peers({ onError: (node) => told.push(node.url) });
    const url = `https://127.0.0.1:${between.port}`;
    for (const times of [1, 2]) {
      between.refuse = true;
      for (let call = 0; call < 3; call += 1)
        await expect(reply(open(peers, url, {}, true))).rejects.toThrow('reset with code');
      expect(told).toEqual(Array(times).fill(url));
      between.heal();
      expect(String((await reply(open(peers, url, {}, true))).body)).toBe('served');
      const kept = peers.session({ id: 'far', url });
      between.halfClose('down');
      await closed(kept);
    }
  });

  it('that accepts and says nothing fails a call after the time for connecting', async () => {
    const far = await scene.far(answer);
    const between = await startFaultProxy({ port: far.port });
    scene.later(() => between.stop());
    between.down.blackhole = true;
    const failed = Promise.withResolvers<string>();
    const peers = scene.peers({ connectMs: 100, onError: (_node, error) => failed.resolve(error.message) });
    await expect(reply(open(peers, `https://127.0.0.1:${between.port}`, {}, true))).rejects.toThrow('reset with code');
    expect(await failed.promise).toBe('no connection within 100 ms');
  });

  it('that stops answering is given up by both sides, and one that answers is not', () =>
    unlessStalled(50, async () => {
      const arrived = Promise.withResolvers<Parameters<OnStream>[0]>();
      const far = await scene.far(
        (stream, headers) => {
          begin(stream, headers, []);
          if (headers['x-lost']) arrived.resolve(stream);
        },
        { silenceMs: 200 },
      );
      const between = await startFaultProxy({ port: far.port });
      scene.later(() => between.stop());
      const failed = Promise.withResolvers<string>();
      const peers = scene.peers({ silenceMs: 200, onError: (_node, error) => failed.resolve(error.message) });
      const beside = open(peers, far.listener.url);
      const stream = open(peers, `https://127.0.0.1:${between.port}`, { 'x-lost': '1' });
      await Promise.all([once(stream, 'data'), once(beside, 'data')]);
      between.up.blackhole = true;
      between.down.blackhole = true;
      await Promise.all([closed(stream), arrived.promise.then(closed)]);
      expect(await failed.promise).toBe('the other gateway did not answer for 200 ms');
      expect(beside.closed).toBe(false);
      beside.close();
    }));

  it('is not connected to any more after the end', async () => {
    const far = await scene.far(begin);
    const peers = scene.peers();
    const stream = open(peers, far.listener.url);
    await once(stream, 'data');
    await peers.close();
    await closed(stream);
    expect(() => open(peers, far.listener.url)).toThrow('closing');
  });
});
