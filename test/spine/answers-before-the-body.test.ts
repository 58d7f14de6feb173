import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { beforeAll, describe, expect, test } from 'vitest';
import { createServer } from '#http';
import { LIMITS } from '../server/accounts/gateway-world.ts';
import type { Posts } from '../support/http-request-worker.ts';
import { openSocket, readAnswer } from '../support/raw-http.ts';
import { fill, routesOf } from '../support/route-table.ts';
import { spineOfFile } from '../support/of-file.ts';

// Who is refused while he still sends is told so: the rest of the body is read for a while before the connection
// may end.

const MIB = 1024 * 1024;
const TRIES = process.env['TOLLGATE_DEEP'] === '1' ? 200 : 10;

let slow: string;
const spine = spineOfFile(() => ({
  toml: '[limits]\nchat_body_bytes_max = 2097152\nrequests_per_minute = 100000\nburst = 100000\n',
}));
beforeAll(async () => {
  ({ key: slow } = await spine.tenant('poor', '1'));
});

/** What fetch got of each try: the status, or what it failed with. */
async function outcomes(path: string, bytes: number, headers: Record<string, string>) {
  const body = JSON.stringify({ model: 'test/model', text: 'x'.repeat(bytes) });
  const found = new Map<string, number>();
  const texts: string[] = [];
  for (let round = 0; round < TRIES / 5; round += 1)
    await Promise.all(
      Array.from({ length: 5 }, async () => {
        const outcome = await fetch(spine.origin + path, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...headers },
          body,
        }).then(
          async (response) => {
            texts.push(await response.text());
            return String(response.status);
          },
          (error: Error) => String((error.cause as NodeJS.ErrnoException | undefined)?.code ?? error),
        );
        found.set(outcome, (found.get(outcome) ?? 0) + 1);
      }),
    );
  return { found: Object.fromEntries(found), text: texts[0] ?? '' };
}

test.each([
  ['/api/v1/chat/completions', 2, 'limits.chat_body_bytes_max'],
  ['/a2a/test/agent', 1, 'limits.body_bytes_max'],
  ['/mcp/test/tool', 1, 'limits.body_bytes_max'],
  ['/api/v1/keys', 1, 'limits.body_bytes_max'],
])('a body that is too large for %s: 413 that names the limit and the option', async (path, mib, option) => {
  const { found, text } = await outcomes(path, mib * MIB + 400_000, { authorization: `Bearer ${slow}` });
  expect(found).toEqual({ 413: TRIES });
  expect(text).toContain(`${mib * MIB} bytes`);
  expect(text).toContain(option);
});

test('a 413 names every option that has the limit of the endpoint', async () => {
  const limits = { ...LIMITS, chatBodyBytesMax: 4096, bodyBytesMax: 2048, mediaBodyBytesMax: 2048 };
  const server = createServer({ limits, onError: () => {} });
  server.post('/', () => 'pong');
  const { statusCode, payload } = await server.inject({ method: 'POST', url: '/', payload: { a: 'x'.repeat(2048) } });
  await server.close();
  expect(statusCode).toBe(413);
  expect(payload).toContain(
    '2048 bytes; the operator sets it with limits.body_bytes_max or limits.media_body_bytes_max',
  );
});

test('a large body with a wrong key: 401', async () => {
  expect(
    (await outcomes('/api/v1/chat/completions', 2 * MIB - 1000, { authorization: 'Bearer svc-sk-v2-wrong' })).found,
  ).toEqual({ 401: TRIES });
});

/** What a client by `http.request`, in a thread of its own, got of its posts: the status, or the error's code. */
async function postedBy(posts: Omit<Posts, 'url'>, path: string) {
  const workerData: Posts = { ...posts, url: spine.origin + path };
  const worker = new Worker(new URL('../support/http-request-worker.ts', import.meta.url), {
    execArgv: [],
    workerData,
  });
  const [found] = (await once(worker, 'message')) as [Record<string, number>];
  return found;
}

describe.each([
  [true, TRIES],
  [false, 40],
])('http.request, with kept connections: %s', (keepAlive, tries) => {
  test.each([
    ['a body that is too large', '/api/v1/chat/completions', 413, 12, {}],
    ['a wrong key', '/api/v1/chat/completions', 401, 8, { authorization: 'Bearer svc-sk-v2-wrong' }],
    ['a path that does not exist', '/api/v1/nowhere', 404, 5, {}],
    ['a body that is no JSON', '/api/v1/image/edit', 400, 5, { 'content-type': 'text/plain' }],
    ['a wrong key at an agent', '/a2a/test/agent', 401, 8, { authorization: 'Bearer svc-sk-v2-wrong' }],
    ['a body that is too large for a tool', '/mcp/test/tool', 413, 8, {}],
  ])('reads the answer to %s', async (_name, path, status, mib, more) => {
    const headers = { authorization: `Bearer ${slow}`, 'content-type': 'application/json', ...more };
    expect(await postedBy({ headers, bytes: mib * MIB, tries, keepAlive }, path)).toEqual({ [status]: tries });
  });
});

test('a connection whose client asks for its close is closed when the body has come', async () => {
  const { socket, answer } = await begun('POST', '/nowhere', `${LENGTH}connection: close\r\n`);
  expect(answer.status).toBe(404);
  const closed = once(socket, 'close');
  socket.write('"":1}');
  await closed;
});

/** The answer to a request of whose body only the first character was sent. */
async function begun(method: string, path: string, fields: string) {
  const socket = await openSocket(spine.origin);
  const answer = readAnswer(socket);
  socket.write(`${method} ${path} HTTP/1.1\r\nhost: x\r\n${fields}content-type: application/json\r\n\r\n`);
  if (fields.includes('chunked')) socket.write('1\r\n{\r\n');
  else socket.write('{');
  return { socket, answer: await answer };
}

const LENGTH = 'content-length: 6\r\n';

test.each([
  ['POST', '/api/v1/nowhere', 404, undefined],
  ['PUT', '/nowhere', 404, undefined],
  ['GET', '/nowhere', 404, undefined],
  ['POST', '/api/v1/models', 405, 'GET, HEAD'],
  ['PATCH', '/api/v1/chat/completions', 405, 'POST'],
  ['OPTIONS', '/api/v1/models', 204, 'GET, HEAD'],
])('%s %s is %s before its body has come', async (method, path, status, allow) => {
  for (const fields of [LENGTH, 'content-length: 900000000\r\n', 'transfer-encoding: chunked\r\n']) {
    const { socket, answer } = await begun(method, path, fields);
    expect([answer.status, answer.headers['allow']]).toEqual([status, allow]);
    socket.destroy();
  }
});

test('a connection whose body comes after its 404 goes on', async () => {
  const { socket, answer } = await begun('POST', '/nowhere', LENGTH);
  expect(answer.status).toBe(404);
  const next = readAnswer(socket);
  socket.write('"":1}GET /api/v1/ping HTTP/1.1\r\nhost: x\r\n\r\n');
  expect(await next).toMatchObject({ status: 200, body: 'pong' });
  socket.destroy();
});

test('a connection keeps nothing of the requests that it was refused', async () => {
  const connected = once(spine.app.server.server, 'connection');
  const socket = await openSocket(spine.origin);
  const [connection] = (await connected) as [Socket];
  const listeners: number[] = [];
  for (let round = 0; round < 4; round += 1) {
    const answer = readAnswer(socket);
    socket.write(`POST /nowhere HTTP/1.1\r\nhost: x\r\n${LENGTH}\r\n`);
    expect((await answer).status).toBe(404);
    const next = readAnswer(socket);
    socket.write('{"":1}GET /api/v1/ping HTTP/1.1\r\nhost: x\r\n\r\n');
    expect(await next).toMatchObject({ status: 200 });
    listeners.push(connection.listenerCount('close'));
  }
  socket.destroy();
  expect(new Set(listeners).size).toBe(1);
});

test('no route waits for the body of who has a wrong key, but those where the body says who asks', async () => {
  const routes = routesOf(spine.app.server).filter(
    ({ method, path }) =>
      !['GET', 'HEAD', 'OPTIONS'].includes(method) && !['/api/v1/rpc', '/api/v1/auth/session'].includes(path),
  );
  expect(routes.length).toBeGreaterThan(30);
  for (const { method, path } of routes) {
    const { socket, answer } = await begun(
      method,
      fill(path, {}),
      `authorization: Bearer svc-sk-v2-wrong\r\n${LENGTH}`,
    );
    expect([401, 403, 404], `${method} ${path}`).toContain(answer.status);
    socket.destroy();
  }
});

test('a short rest does not wait until long ones are read', async () => {
  const connections: Socket[] = [];
  const take = (connection: Socket) => connections.push(connection);
  spine.app.server.server.on('connection', take);
  const long = await Promise.all(
    Array.from({ length: 20 }, () => begun('POST', '/nowhere', 'content-length: 900000000\r\n')),
  );
  spine.app.server.server.removeListener('connection', take);
  for (const { socket } of long) socket.on('error', () => {}).write(Buffer.alloc(3 * MIB, 'x'));
  const { socket } = await begun('POST', '/nowhere', `${LENGTH}connection: close\r\n`);
  const before = connections.map(({ bytesRead }) => bytesRead);
  const closed = once(socket, 'close');
  socket.write('"":1}');
  await closed;
  const read = connections.map(({ bytesRead }, at) => bytesRead - before[at]!);
  for (const each of long) each.socket.destroy();
  expect(Math.max(...read)).toBeGreaterThan(0);
  expect(Math.max(...read)).toBeLessThanOrEqual(4 * 65_536);
});

test('a body without an end is not read for ever', async () => {
  const { hostname, port } = new URL(spine.origin);
  const asked = request({
    hostname,
    port,
    method: 'POST',
    path: '/api/v1/chat/completions',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${slow}` },
  });
  const chunk = Buffer.alloc(65_536, 'x');
  let sent = 0;
  let over = false;
  const more = () => {
    while (!over && sent < 256 * MIB) {
      sent += chunk.length;
      if (!asked.write(chunk)) return void asked.once('drain', more);
    }
  };
  asked.on('error', () => (over = true));
  asked.on('close', () => (over = true));
  const answered = once(asked, 'response');
  more();
  const [response] = (await answered) as [IncomingMessage];
  expect(response.statusCode).toBe(413);
  response.resume();
  await expect.poll(() => over, { timeout: 60_000 }).toBe(true);
  expect(sent).toBeLessThan(128 * MIB);
});
