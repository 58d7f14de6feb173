/**
 * Only the gateway's upstream hop: node:http and one of its ways to an upstream. It forwards bytes without routing,
 * billing or checks. With `--upstream URL` it calls the upstream directly, with `--peer URL` through another one's
 * tunnel, otherwise through its own tunnel. Prints as lines of JSON what others need to know: the address for proxies,
 * the address for other gateways, and last its port for calls.
 */
import { createServer, type ServerResponse } from 'node:http';
import { parseArgs } from 'node:util';
import fastify from 'fastify';
import type { DirectEndpoint, TunnelEndpoint } from '../../src/server/catalog/offers.ts';
import type { Location } from '../../src/gateway/network/registry/presence.ts';
import { createPeerListener } from '../../src/gateway/network/peer-listener.ts';
import { createPeers } from '../../src/gateway/network/peers.ts';
import { createIdentity } from '../../src/gateway/auth/identity.ts';
import { createTunnels } from '../../src/gateway/network/tunnel/tunnels.ts';
import { servicePath } from '../../src/gateway/network/tunnel-wire.ts';
import { createTunnelUpstream } from '../../src/gateway/network/upstream/tunnel-upstream.ts';
import { createHttpUpstream } from '../../src/gateway/network/upstream/http-upstream.ts';
import type { UpstreamExchange } from '../../src/gateway/call/upstream.ts';
import { MODELS } from '../upstream/replies.ts';
import { announce } from './announce.ts';

const { values } = parseArgs({ options: { upstream: { type: 'string' }, peer: { type: 'string' } } });
const SECRET = Buffer.from('what the gateways of the bench share');
const TIMES = { headTimeoutMs: 30_000, idleTimeoutMs: 30_000, connectionsMax: 8_192 };
const ACCOUNT = 'tollgate:local:bench';
const TUNNEL: TunnelEndpoint = { kind: 'tunnel', provider: 'bench', basePath: servicePath('model', MODELS.small) };
const HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json',
  'x-request-id': '0123456789abcdef0123456789abcdef',
};

type Send = (body: string) => UpstreamExchange;

const asked = (body: string) => ({ method: 'POST', path: '/chat/completions', headers: HEADERS, body }) as const;
const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);

function direct(baseUrl: string): Send {
  const upstream = createHttpUpstream(TIMES);
  const endpoint: DirectEndpoint = { kind: 'direct', baseUrl, headers: { authorization: 'Bearer bench' } };
  return (body) => upstream.send(endpoint, asked(body), ACCOUNT);
}

/** Accepts any proxy as the benchmark's provider, and accepts other gateways. */
async function tunnel(): Promise<Send> {
  let location: Location | null = null;
  const server = fastify({ logger: false });
  const tunnels = createTunnels({
    server,
    authenticate: () => ({
      account: 'tollgate:local:bench',
      key: { hash: 'bench', label: 'bench', development: false, access: null },
      wallet: null,
    }),
    identity: createIdentity({ seed: '07'.repeat(32) }),
    registry: {
      join: async ({ id }) => void (location = { kind: 'here', connection: id }),
      register: async () => ({ revision: 1, raised: [] }),
      leave: async () => {},
      forget: async () => {},
      onSuperseded: () => () => {},
      onGone: () => () => {},
      banOf: () => null,
      onBanned: () => () => {},
    },
    config: {
      providers: 'anyone',
      silenceMs: 60_000,
      servicesMax: 100,
      strangersServicesMax: 20_000,
      connectionsPerAddressMax: 1_000,
    },
    domains: [],
    version: 'bench',
  });
  const peerListener = createPeerListener({
    secret: SECRET,
    host: '127.0.0.1',
    port: 0,
  });
  await peerListener.listen();
  peerListener.share({
    tunnels: { session: () => (location === null ? null : tunnels.session(location.connection)) },
  });
  say({ peers: peerListener.url });
  say({ dial: await server.listen({ host: '127.0.0.1', port: 0 }) });
  const upstream = createTunnelUpstream({
    consumerTag: () => 'consumer',
    ...TIMES,
    tunnels,
    peers: null,
    registry: { locate: () => location, waitFor: async () => null },
    waitMs: 0,
  });
  return (body) => upstream.send(TUNNEL, asked(body), ACCOUNT);
}

function byPeer(url: string): Send {
  const location: Location = { kind: 'elsewhere', node: { id: 'far', url }, connection: 'the only one' };
  const registry = { locate: () => location, waitFor: async () => location };
  const upstream = createTunnelUpstream({
    consumerTag: () => 'consumer',
    ...TIMES,
    tunnels: { session: () => null },
    peers: createPeers({ secret: SECRET }),
    registry,
    waitMs: 0,
  });
  return (body) => upstream.send(TUNNEL, asked(body), ACCOUNT);
}

async function pass(exchange: UpstreamExchange, response: ServerResponse): Promise<void> {
  response.on('close', () => {
    if (!response.writableFinished) exchange.abort(new Error('the client is gone'));
  });
  const reply = await exchange.head;
  const passed: Record<string, string> = { 'content-type': reply.headers['content-type'] ?? 'application/json' };
  if (reply.headers['content-length']) passed['content-length'] = reply.headers['content-length'];
  response.writeHead(reply.status, passed);
  for (;;) {
    const chunks = await reply.read();
    if (chunks === null) break;
    // Chunks that arrived together are sent together, as in the gateway.
    const room = response.write(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
    if (!room && !response.destroyed)
      await new Promise<void>((resolve) => response.once('drain', resolve).once('close', resolve));
  }
  response.end();
}

const send = values.peer ? byPeer(values.peer) : values.upstream ? direct(values.upstream) : await tunnel();
const server = createServer((request, response) => {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => {
    pass(send((parts.length === 1 ? parts[0]! : Buffer.concat(parts)).toString()), response).catch((error: unknown) => {
      process.stderr.write(`${String(error)}\n`);
      if (response.headersSent) return response.destroy();
      response.writeHead(502).end(String(error));
    });
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', 4096, () => announce(server));
// A normal exit, so that a profiler can write its file.
process.on('SIGTERM', () => process.exit(0));
