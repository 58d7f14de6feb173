import { randomBytes } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { createPeerListener } from '../../../../src/gateway/network/peer-listener.ts';
import { createPeers } from '../../../../src/gateway/network/peers.ts';
import type { Location } from '../../../../src/gateway/network/registry/presence.ts';
import { createTunnelUpstream } from '../../../../src/gateway/network/upstream/tunnel-upstream.ts';
import { startWorld, textOf, type World } from './tunnel-world.ts';

/** An upstream of another gateway that reaches the tunnels of `world` over the network. */
async function upstreamElsewhere(world: World, locate: (listener: string) => Location | null) {
  const secret = randomBytes(32);
  const listener = createPeerListener({ secret, host: '127.0.0.1', port: 0 });
  await listener.listen();
  listener.share({ tunnels: world.tunnels });
  const peers = createPeers({ secret });
  const upstream = createTunnelUpstream({
    consumerTag: (provider, account) => `${provider} ${account}`,
    tunnels: { session: () => null },
    peers,
    registry: { locate: () => locate(listener.url), waitFor: async () => locate(listener.url) },
    waitMs: 300,
    headTimeoutMs: 5_000,
    idleTimeoutMs: 5_000,
    connectionsMax: 1_024,
  });
  onTestFinished(async () => {
    await upstream.close();
    await peers.close();
    await listener.close(0);
  });
  return upstream;
}

const REQUEST = { method: 'POST', path: '/chat/completions', headers: {}, body: '{"a":1}' } as const;

test('a call for a provider that is connected to another gateway goes through that one', async () => {
  const world = await startWorld();
  const paths: unknown[] = [];
  const peer = await world.peer({
    serve(stream, headers) {
      paths.push(headers[':path'], headers['x-tollgate-connection']);
      stream.respond({ ':status': 200 });
      stream.end('from afar');
    },
  });
  const { provider } = peer.welcome;
  const here = world.registry.locate(provider)!;
  const upstream = await upstreamElsewhere(world, (url) => ({
    kind: 'elsewhere',
    node: { id: 'there', url },
    connection: here.connection,
  }));
  const { text } = await textOf(
    upstream.send({ kind: 'tunnel', provider, basePath: '/model/x' }, REQUEST, 'tollgate:local:alice'),
  );
  expect(text).toBe('from afar');
  expect(paths).toEqual(['/model/x/chat/completions', undefined]);
});

test('a connection that the other gateway does not hold any more has not begun: its successor gets the call', async () => {
  const world = await startWorld();
  const peer = await world.peer({ serve: (stream) => (stream.respond({ ':status': 200 }), void stream.end('found')) });
  const { provider } = peer.welcome;
  const here = world.registry.locate(provider)!;
  let asked = 0;
  const upstream = await upstreamElsewhere(world, (url) => ({
    kind: 'elsewhere',
    node: { id: 'there', url },
    connection: asked++ < 2 ? 'ended' : here.connection,
  }));
  expect(
    (await textOf(upstream.send({ kind: 'tunnel', provider, basePath: '/model/x' }, REQUEST, 'tollgate:local:alice')))
      .text,
  ).toBe('found');
});

test('a gateway that cannot be reached is a failure that another offer may mend', async () => {
  const world = await startWorld();
  const upstream = await upstreamElsewhere(world, () => ({
    kind: 'elsewhere',
    node: { id: 'gone', url: 'https://127.0.0.1:1' },
    connection: 'x',
  }));
  await expect(
    upstream.send({ kind: 'tunnel', provider: 'p', basePath: '/model/x' }, REQUEST, 'tollgate:local:alice').head,
  ).rejects.toMatchObject({
    retryable: true,
    attributedTo: 'provider',
  });
});
