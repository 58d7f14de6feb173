import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type PeerProvider, startPeerProvider, USED } from '../peers/peer-provider.ts';
import { ENDPOINTS, type PeerDoor } from '../peers/routes.ts';
import { peerServices } from '../peers/services.ts';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// A provider closes a kept connection at the moment at which a request comes on it, which it does not read. What can be
// repeated goes out once more on a new connection; what may have had effects does not.

let provider: PeerProvider;
let spine: Spine;
/** How many of the next requests meet a closing, and how it is. */
let closings = 0;
let close: (socket: Socket, response: ServerResponse) => void;
/** Whether a request on a new connection meets it too. */
let alsoFresh = false;
const served = new WeakMap<Socket, number>();

const server = createServer((request, response) => void pass(request, response).catch(() => response.destroy()));
let requests = 0;
async function pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
  requests += 1;
  const { socket } = request;
  const before = served.get(socket) ?? 0;
  served.set(socket, before + 1);
  if (closings > 0 && (before > 0 || alsoFresh)) {
    closings -= 1;
    return close(socket, response);
  }
  const { host: _, connection: __, ...headers } = request.headers;
  const onward = httpRequest(new URL(provider.modelUrl).origin + request.url!, { method: request.method!, headers });
  request.pipe(onward);
  const [reply] = (await once(onward, 'response')) as [IncomingMessage];
  const { connection: ___, 'keep-alive': ____, ...given } = reply.headers;
  reply.pipe(response.writeHead(reply.statusCode!, given));
}

beforeAll(async () => {
  provider = await startPeerProvider();
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const origin = new URL(provider.modelUrl).origin;
  const behind = Object.fromEntries(
    (['modelUrl', 'toolUrl', 'agentUrl'] as const).map((name) => [name, provider[name].replace(origin, url)]),
  ) as Pick<PeerProvider, 'modelUrl' | 'toolUrl' | 'agentUrl'>;
  spine = await startSpine({
    toml: `${UNHURRIED}[upstream]\ncooldown_ms = 1\nhead_timeout_ms = 2000\n${peerServices(behind)}`,
  });
});
afterAll(async () => {
  await spine.stop();
  await provider.close();
  server.close();
  server.closeAllConnections();
});
afterEach(async () => {
  closings = 0;
  alsoFresh = false;
  expect(await spine.faults()).toEqual([]);
});

const fin = (socket: Socket) => void socket.end();
const rst = (socket: Socket) => void socket.resetAndDestroy();
const midway = (socket: Socket) => void socket.end('HTTP/1.1 200 OK\r\ncontent-');
const interim = (socket: Socket) => void socket.end('HTTP/1.1 102 Processing\r\n\r\n');

const call = (door: PeerDoor) => door.call({ origin: spine.origin, key: spine.key, text: 'complete' });
const named = (name: string) => ENDPOINTS.find((door) => door.name === name)!;

/** Makes a call, so that a connection is kept, and then one that meets a closing. */
async function meet(door: PeerDoor, how: typeof close): Promise<{ kind: string; calls: number; paid: bigint }> {
  expect((await call(door)).kind).toBe('answered');
  const calls = provider.calls();
  const before = await spine.balance();
  [close, closings] = [how, 1];
  const { kind } = await call(door);
  expect(closings).toBe(0);
  await spine.quiet();
  return { kind, calls: provider.calls() - calls, paid: before.available - (await spine.balance()).available };
}

const MODELS = ENDPOINTS.filter(({ primitive, beginsTask }) => ['model', 'image'].includes(primitive) && !beginsTask);
test.each(MODELS)('$name: the request goes out once more, and is paid once', async (door) => {
  for (const how of [fin, rst])
    expect(await meet(door, how)).toEqual({ kind: 'answered', calls: 1, paid: BigInt(USED) });
});

const chat = named('chat');
test.each([
  ['after a part of the head', midway],
  ['after an interim reply', interim],
])('not %s, because then it was read', async (_what, how) => {
  expect(await meet(chat, how)).toEqual({ kind: 'failed', calls: 0, paid: 0n });
});

test('not on a new connection, where nothing was idle, and not a second time', async () => {
  await call(chat);
  [close, closings, alsoFresh] = [fin, 2, true];
  expect((await call(chat)).kind).toBe('failed');
  expect(closings).toBe(0);
  // The connections of before are gone.
  [close, closings] = [fin, 1];
  expect((await call(chat)).kind).toBe('failed');
  expect(closings).toBe(0);
});

test('not after the time for its head, because then it may have been read', async () => {
  await call(chat);
  // Before the call, so that the provider would answer a second request.
  [close, closings] = [() => {}, 1];
  const asked = requests;
  expect((await call(chat)).kind).toBe('failed');
  expect(requests - asked).toBe(1);
});

test('not after a second of silence, because then it may have been read', async () => {
  const late = (socket: Socket) => void setTimeout(() => socket.end(), 1_200);
  expect(await meet(chat, late)).toEqual({ kind: 'failed', calls: 0, paid: 0n });
});

test.each(['MCP', 'A2A', 'videos'])('not a call of %s, which may have had an effect', async (name) => {
  expect(await meet(named(name), fin)).toMatchObject({ kind: 'failed', paid: 0n });
});
