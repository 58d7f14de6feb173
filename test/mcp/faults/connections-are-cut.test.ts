import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { openSocket } from '../../support/raw-http.ts';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { until } from '../../support/tunnel-spine.ts';
import { callTool, toolToml } from '../calls/modern-post.ts';
import { callIn, openSession, type OldSession, type Said } from './clients.ts';
import { startCutServer, type Cut, type CutServer } from './cut-server.ts';
import { atThisLoad } from '../../support/at-this-load.ts';

// The connection of a client or of a server is cut at any byte of a call, in either direction, JSON or events: its
// lock is resolved at once, and what is charged is nothing or the price.

const POSITIONS = process.env['TOLLGATE_DEEP'] === '1' ? 2_000 : 64;
const PRICE = 1_000n;
/** Four directions, two formats, four combinations of eras. */
const EACH = Math.ceil(POSITIONS / 32);
const WITHIN_MS = 5_000;

let spine: Spine;
let servers: { readonly modern: CutServer; readonly legacy: CutServer };
let sessions: { readonly modern: OldSession; readonly legacy: OldSession };
let baseline: number;
/** The gateway's connections to the servers. A call that takes one that is about to close fails. */
const upstream = new Set<Socket>();
const note = (message: unknown) => {
  const { socket } = message as { readonly socket: Socket };
  socket.once('connect', () => {
    const port = String(socket.remotePort);
    if (![servers.modern, servers.legacy].some(({ url }) => new URL(url).port === port)) return;
    upstream.add(socket);
    socket.once('close', () => upstream.delete(socket));
  });
};
let charged = 0;
let done = 0;
beforeAll(async () => {
  servers = { modern: await startCutServer('modern'), legacy: await startCutServer('legacy') };
  subscribe('net.client.socket', note);
  spine = await startSpine({
    toml:
      `${UNHURRIED}\n[upstream]\ncooldown_ms = 0\n[billing]\ndrain_ms = 3000\n` +
      toolToml({ name: 'modern', url: servers.modern.url }) +
      toolToml({ name: 'legacy', url: servers.legacy.url }),
  });
  sessions = { modern: await openSession(spine, 'modern'), legacy: await openSession(spine, 'legacy') };
  for (const pair of PAIRS) await call(pair, { format: 'json', at: null });
  servers.modern.closeConnections();
  servers.legacy.closeConnections();
  await until(() => servers.modern.connections + servers.legacy.connections + upstream.size === 0);
  // Closed sockets are counted until the turn is over.
  await new Promise((resolve) => setImmediate(resolve));
  baseline = open();
});
afterAll(async () => {
  unsubscribe('net.client.socket', note);
  await spine.stop();
  await Promise.all([servers.modern.close(), servers.legacy.close()]);
});

afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

type Era = 'modern' | 'legacy';
interface Pair {
  readonly client: Era;
  readonly server: Era;
}
const ERAS = ['modern', 'legacy'] as const;
const PAIRS: readonly Pair[] = ERAS.flatMap((client) => ERAS.map((server) => ({ client, server })));
const CASES = PAIRS.flatMap((pair) => (['json', 'events'] as const).map((format) => ({ ...pair, format })));

/** All of one length. */
let lastId = 10_000;

async function call({ client, server }: Pair, cut: Cut): Promise<{ readonly status: number; readonly message: Said }> {
  const id = ++lastId;
  if (client === 'legacy') return callIn(sessions[server], 'cut', cut, id);
  return callTool(spine, server, 'cut', cut, { id });
}

const open = () => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;

/**
 * Ends connections to the servers that are only kept for the next request. The one that this process calls the
 * gateway with stays.
 */
async function closed(): Promise<void> {
  servers.modern.closeConnections();
  servers.legacy.closeConnections();
  await until(() => upstream.size === 0 && open() <= baseline);
}

/** Positions from 0 to `bytes`, both among them. */
const spread = (bytes: number) => [
  ...new Set(Array.from({ length: EACH }, (_, index) => Math.round((index * bytes) / (EACH - 1)))),
];

/** What was charged meanwhile; the locks are resolved within the time, and nothing stays open. */
async function paid(run: () => Promise<unknown>): Promise<bigint> {
  const before = await spine.balance();
  await run();
  const endedAt = performance.now();
  await spine.quiet();
  expect(performance.now() - endedAt).toBeLessThan(atThisLoad(WITHIN_MS));
  // A call is over a moment after its lock is resolved.
  await until(async () => /^tollgate_calls_in_flight 0$/m.test(await spine.app.metrics.text()));
  await closed();
  return before.available - (await spine.balance()).available;
}

test.each(CASES)(
  'the server breaks off its answer ($client to $server, $format): free, unless the whole response had come',
  async ({ format, ...pair }) => {
    await call(pair, { format, at: null });
    const server = servers[pair.server];
    for (const at of spread(server.answer.bytes)) {
      const amount = await paid(async () => {
        const { message } = await call(pair, { format, at });
        const { whole } = server.answer;
        expect([at, 'result' in message, 'error' in message]).toEqual([at, whole, !whole]);
      });
      expect([at, amount]).toEqual([at, server.answer.whole ? PRICE : 0n]);
      charged += Number(amount / PRICE);
      done += 1;
    }
  },
);

test.each(CASES)(
  'the server breaks off while it is asked ($client to $server, $format): free, and not asked again',
  async ({ format, ...pair }) => {
    await call(pair, { format, at: null });
    const server = servers[pair.server];
    for (const at of spread(server.requestBytes)) {
      const { asked } = server;
      server.cutRequestAt = Math.max(1, at);
      const amount = await paid(async () => {
        const { message } = await call(pair, { format, at: null });
        expect([at, 'error' in message]).toEqual([at, true]);
      });
      expect([at, amount, server.asked]).toEqual([at, 0n, asked]);
      done += 1;
    }
  },
);

/** The bytes of a client's request. */
function requestOf({ client, server }: Pair, cut: Cut, id: number): Buffer {
  const envelope = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const params = { name: 'cut', arguments: cut, ...(client === 'modern' ? { _meta: envelope } : {}) };
  const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params });
  const own =
    client === 'modern'
      ? 'mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: cut\r\n'
      : `mcp-session-id: ${sessions[server].id}\r\n`;
  return Buffer.from(
    `POST /mcp/${server} HTTP/1.1\r\nhost: ${new URL(spine.origin).host}\r\nauthorization: Bearer ${spine.key}\r\ncontent-type: application/json\r\n` +
      `accept: application/json, text/event-stream\r\n${own}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

test.each(CASES)(
  'the client breaks off its request ($client to $server, $format): nothing happens, unless all of it had come',
  async ({ format, ...pair }) => {
    const server = servers[pair.server];
    const whole = requestOf(pair, { format, at: null }, lastId).length;
    const { asked } = server;
    const amount = await paid(() =>
      Promise.all(
        spread(whole).map(async (at) => {
          const socket = await openSocket(spine.origin);
          const request = requestOf(pair, { format, at: null }, ++lastId);
          socket.write(request.subarray(0, at));
          if (at === whole) await until(() => server.asked > asked);
          socket.end();
          socket.resume();
          await new Promise((resolve) => socket.once('close', resolve));
          done += 1;
        }),
      ),
    );
    expect([server.asked - asked, amount]).toEqual([1, PRICE]);
    charged += 1;
  },
);

test.each(CASES)(
  'the client leaves in its answer ($client to $server, $format): the work that was done is paid, once',
  async ({ format, ...pair }) => {
    const server = servers[pair.server];
    const cut: Cut = { format, at: null, waitMs: 30 };
    const { asked } = server;
    // As it comes when nobody leaves.
    const length = (await readUntil(requestOf(pair, cut, ++lastId), Infinity)).length;
    const positions = spread(length);
    const amount = await paid(() => Promise.all(positions.map((at) => readUntil(requestOf(pair, cut, ++lastId), at))));
    expect([server.asked - asked, amount]).toEqual([positions.length + 1, BigInt(positions.length) * PRICE]);
    charged += positions.length;
    done += positions.length;
  },
);

/** Sends a request and leaves when so many bytes of the answer have come, or it has ended. */
async function readUntil(request: Buffer, at: number): Promise<Buffer> {
  const socket = await openSocket(spine.origin);
  const { asked } = servers.modern;
  const before = asked + servers.legacy.asked;
  let bytes: Buffer = Buffer.alloc(0);
  const left = new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
    socket.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      if (bytes.length >= at || /"content":|0\r\n\r\n$/.test(bytes.toString('latin1'))) socket.destroy();
    });
  });
  socket.write(request);
  if (at === 0) {
    await until(() => servers.modern.asked + servers.legacy.asked > before);
    socket.destroy();
  }
  await left;
  return bytes;
}

test('so many positions were tried', () => {
  console.log(`  ${done} cuts, ${charged} calls charged`);
  expect(done).toBeGreaterThanOrEqual(POSITIONS * 0.9);
});
