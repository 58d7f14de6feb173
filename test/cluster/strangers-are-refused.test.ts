import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { createIdentity } from '#auth';
import { createPeers } from '#network';
import { CONNECTION_HEADER } from '../../src/gateway/network/peers.ts';
import { adHoc } from '../support/ad-hoc.ts';
import { CLUSTER_TOML, reachable, startCluster, type Cluster } from '../support/cluster.ts';
import { dialIn, offeredModel, type DialledIn } from '../support/dial-in.ts';
import { IDENTITY_SEED, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// The port for gateways reaches every tunnel without asking who pays. It opens to whoever knows the secret, and to
// nobody else.

let cluster: Cluster<Spine>;
let proxy: DialledIn;
let near: Spine;
let far: Spine;
/** The address of the first gateway for the others, as they know it. */
let peerUrl: string;
/** Id of the proxy's connection. */
let connection: string;
beforeAll(async () => {
  cluster = await startCluster({ postgresUrl: inject('postgresUrl'), size: 2 });
  [near, far] = cluster.gateways as [Spine, Spine];
  proxy = await dialIn({ router: near.origin, services: offeredModel({ url: cluster.provider.url }) });
  await reachable([far.origin], 'tunnel/model');
  const [row] = await near.app.database.query(
    adHoc(
      'SELECT n.url, c.connection FROM provider_connections c JOIN nodes n ON n.id = c.node WHERE c.left_at IS NULL',
    ),
  );
  peerUrl = row!['url'] as string;
  connection = row!['connection'] as string;
});
afterAll(async () => {
  await proxy?.close();
  await cluster?.stop();
});

const question = { model: 'tunnel/model', messages: [{ role: 'user', content: '!tokens:2' }], max_tokens: 10 };

/** The status of a stream to a tunnel of the first gateway, or what it failed with. */
async function ask(secret: Buffer, headers: Record<string, string>): Promise<number | string> {
  const peers = createPeers({ secret });
  try {
    const stream = peers
      .session({ id: 'any', url: peerUrl })
      .request({ ':method': 'GET', ...headers }, { endStream: true });
    const failed = Promise.withResolvers<string>();
    stream.on('error', (error) => failed.resolve(error.message));
    stream.resume();
    return await Promise.race([
      once(stream, 'response').then(([head]) => (head as { ':status': number })[':status']),
      failed.promise,
    ]);
  } finally {
    await peers.close();
  }
}
const SECRET = createIdentity({ seed: IDENTITY_SEED }).secret('cluster');

test('who knows the secret reaches tunnels, and nothing else of the gateway', async () => {
  expect(await ask(SECRET, { ':path': '/nowhere', [CONNECTION_HEADER]: connection })).toBe(404);
  for (const path of ['/api/v1/models', '/health/live', '/metrics', '/admin/v1/accounts', '/']) {
    expect(await ask(SECRET, { ':path': path })).toBe(404);
    expect(
      await ask(SECRET, { ':path': path, authorization: `Bearer ${near.adminKey}`, [CONNECTION_HEADER]: 'another' }),
    ).toBe(404);
  }
});

test('who knows another does not', async () => {
  const seen = cluster.provider.log.length;
  for (const secret of [Buffer.from('another'), Buffer.alloc(32), Buffer.from(SECRET.toString('hex'))])
    expect(await ask(secret, { ':path': '/nowhere', [CONNECTION_HEADER]: connection })).toMatch(
      /canceled|bad record mac/i,
    );
  const { port } = new URL(peerUrl);
  const tls = connectTls({ port: Number(port), host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] });
  expect(String((await once(tls, 'error').catch((error: unknown) => [error]))[0])).toMatch(
    /handshake failure|protocol version/i,
  );
  const plain = connectHttp2(`http://127.0.0.1:${port}`);
  plain.on('error', () => {});
  plain.request({ ':path': '/' }).on('error', () => {});
  await once(plain, 'close');
  await expect(fetch(`https://127.0.0.1:${port}/api/v1/models`)).rejects.toThrow('fetch failed');
  expect(cluster.provider.log.length).toBe(seen);
});

test('a gateway of the same database with another secret gets no further than that', async () => {
  const stranger = await startSpine({
    databaseUrl: cluster.databaseUrl,
    provider: cluster.provider,
    toml: `${UNHURRIED}\n${CLUSTER_TOML}\n[tunnel]\nwait_ms = 300\n`,
    env: { TOLLGATE_CLUSTER_SECRET: 'another-secret-of-another-operator-1' },
  });
  try {
    await reachable([stranger.origin], 'tunnel/model');
    const seen = cluster.provider.log.length;
    const before = await stranger.balance();
    const response = await stranger.post('/chat/completions', question);
    expect([500, 503]).toContain(response.status);
    await response.text();
    expect(cluster.provider.log.length).toBe(seen);
    expect(await stranger.faults()).toEqual([]);
    expect(await stranger.balance()).toEqual(before);
  } finally {
    await stranger.stop();
  }
});

test('and after all of them the others still do', async () => {
  const response = await far.post('/chat/completions', question);
  expect(response.status).toBe(200);
  await response.text();
});
