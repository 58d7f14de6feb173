import { expect, onTestFinished, test } from 'vitest';
import { UpstreamFailure } from '#wire';
import { startFaultProxy } from '../../../support/fault-proxy.ts';
import { dialPeer, documentOf, type TunnelPeerOptions } from '../../../support/tunnel-peer.ts';
import { solanaWallet } from '../../../support/wallets.ts';
import { unlessStalled } from '../../../support/unless-stalled.ts';
import { restOf, startWorld, textOf, type World } from './tunnel-world.ts';

/** A registered peer behind a line that can be cut silently. */
async function dialThroughFaults(world: World, options: Omit<TunnelPeerOptions, 'url'> = {}) {
  const line = await startFaultProxy({ port: world.port });
  onTestFinished(() => line.stop());
  const peer = await dialPeer({ url: `http://127.0.0.1:${line.port}`, wallet: solanaWallet(), ...options });
  onTestFinished(() => peer.kill());
  await peer.register(documentOf());
  return { line, peer };
}

test('a proxy whose line is dead is given up, and its calls fail', () =>
  unlessStalled(75, async () => {
    const world = await startWorld({ silenceMs: 300 });
    const { line, peer } = await dialThroughFaults(world, {
      serve(stream) {
        stream.respond({ ':status': 200 });
        stream.write('half');
      },
    });
    const reply = await world.send(peer.welcome.provider).head;
    await reply.read();
    const begun = performance.now();
    line.up.blackhole = true;
    line.down.blackhole = true;
    await expect(restOf(reply)).rejects.toThrow(UpstreamFailure);
    expect(performance.now() - begun).toBeGreaterThan(200);
    expect(world.told.at(-1)).toBe('left the proxy was silent for 0.3 s');
    expect(world.registry.locate(peer.welcome.provider)).toBeNull();
  }));

test('a proxy that has nothing to say is asked, and stays', () =>
  unlessStalled(50, async () => {
    const world = await startWorld({ silenceMs: 200 });
    const peer = await world.peer({ serve: (stream) => (stream.respond({ ':status': 200 }), void stream.end('here')) });
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect((await textOf(world.send(peer.welcome.provider))).text).toBe('here');
    expect(world.told).toEqual(['connected', 'registered 1']);
  }));
