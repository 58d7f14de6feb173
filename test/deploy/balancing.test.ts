import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PROXIES, type DeployedProxy } from './proxies.ts';

// How the proxies of deploy/ distribute requests of one address, such as those of an office. The servers behind them
// only say who they are.

const INSTALL_MS = 200_000;
const CALLS = 40;

/** A server that answers with its name. */
async function startNamed(name: string): Promise<Server> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.end(name));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

describe.each(Object.entries(PROXIES))('behind %s', (_name, start) => {
  const servers: Server[] = [];
  let proxy: DeployedProxy;
  let broken: DeployedProxy;
  beforeAll(async () => {
    servers.push(await startNamed('first'), await startNamed('second'));
    proxy = await start(servers.map((server) => `127.0.0.1:${(server.address() as AddressInfo).port}`));
    broken = await start(['127.0.0.1:9', '127.0.0.1:9']);
  }, INSTALL_MS);
  afterAll(async () => {
    await Promise.all([proxy.keeper.close(), broken.keeper.close()]);
    for (const server of servers) server.close();
  });

  /** The names of the servers that answered `CALLS` requests, and how often each did. */
  async function answered(path: string, keyOf: (call: number) => string): Promise<Readonly<Record<string, number>>> {
    const counts: Record<string, number> = {};
    for (let call = 0; call < CALLS; call += 1) {
      const headers = { authorization: `Bearer ${keyOf(call)}`, 'content-type': 'application/json' };
      const answer = await fetch(`http://127.0.0.1:${proxy.port}${path}`, { method: 'POST', headers, body: '{}' });
      const name = await answer.text();
      counts[name] = (counts[name] ?? 0) + 1;
    }
    return counts;
  }

  it('calls of one key and one address go to both', async () => {
    const counts = await answered('/api/v1/chat/completions', () => 'one');
    expect(Object.keys(counts).toSorted()).toEqual(['first', 'second']);
    for (const count of Object.values(counts)) expect(count).toBeGreaterThan(CALLS / 8);
  });

  it('a client of MCP stays at one, and many are at both', async () => {
    expect(Object.values(await answered('/mcp', () => 'one'))).toEqual([CALLS]);
    expect(Object.values(await answered('/mcp/files', () => 'two'))).toEqual([CALLS]);
    expect(Object.keys(await answered('/mcp/files', String)).toSorted()).toEqual(['first', 'second']);
  });

  it('while no gateway is ready, the proxy answers in the form of the gateway', async () => {
    const answer = await fetch(`http://127.0.0.1:${broken.port}/api/v1/models`);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '2']);
    expect(answer.headers.get('content-type')).toBe('application/json');
    expect(await answer.json()).toEqual({
      error: { message: 'No gateway is ready: retry in a moment', type: 'service_unavailable', code: 503 },
    });
  });
});

it(
  'nginx refuses what is too large in the form of the gateway, and Caddy leaves it to the gateway',
  async () => {
    const server = await startNamed('first');
    const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const statusAt = async (start: (typeof PROXIES)[keyof typeof PROXIES]) => {
      const { port, keeper } = await start([address, address.replace('127.0.0.1', 'localhost')]);
      try {
        const answer = await fetch(`http://127.0.0.1:${port}/api/v1/chat/completions`, {
          method: 'POST',
          body: Buffer.alloc(33 * 1024 * 1024, 'a'),
        });
        return [answer.status, answer.headers.get('content-type'), await answer.text()];
      } finally {
        await keeper.close();
      }
    };
    expect(await statusAt(PROXIES.nginx)).toEqual([
      413,
      'application/json',
      '{"error":{"message":"The request is larger than 32 MB","type":"payload_too_large","code":413}}',
    ]);
    expect(await statusAt(PROXIES.Caddy)).toEqual([200, expect.anything(), 'first']);
    server.close();
  },
  INSTALL_MS,
);
