import { once } from 'node:events';
import { constants, type ClientHttp2Stream } from 'node:http2';
import { createServer, type Server } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { modelAt, runProxy, type RunningProxy } from '../../support/provider-proxy.ts';
import { startProvider, type TestProvider } from '../../support/provider.ts';
import { findFreePort } from '../../support/free-port.ts';
import { readReply, startTunnelRouter, type RouterEnd, type TunnelRouter } from '../../support/tunnel-router.ts';

let provider: TestProvider;
/** Answers every request with these bytes and closes. */
let raw: Server;
let rawReply = '';
let rawMore = Promise.resolve('');
let router: TunnelRouter;
let running: RunningProxy;
let end: RouterEnd;
/** Waits only a moment for the head of a reply. */
let hasty: { readonly running: RunningProxy; readonly end: RouterEnd };
beforeAll(async () => {
  provider = await startProvider();
  raw = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.write(rawReply);
      void rawMore.then((text) => socket.end(text));
    });
  });
  raw.listen(0, '127.0.0.1');
  await once(raw, 'listening');
  router = await startTunnelRouter();
  const services = [
    modelAt('there', provider.url),
    modelAt('nowhere', `http://127.0.0.1:${await findFreePort()}/v1`),
    ...['raw', 'late'].map((name) => modelAt(name, `http://127.0.0.1:${(raw.address() as AddressInfo).port}/v1`)),
  ];
  const start = async (limits = {}) => {
    const proxy = runProxy({ url: router.url, services, options: { limits } });
    const its = await router.next();
    await its.accept();
    return { running: proxy, end: its };
  };
  ({ running, end } = await start());
  hasty = await start({ headTimeoutMs: 300 });
});
afterAll(async () => {
  running.proxy.kill();
  hasty.running.proxy.kill();
  await Promise.all([router.stop(), provider.stop()]);
  raw.close();
});

const call = (service: string, command = 'hello', of = end) =>
  of.open(
    { ':path': `/model/${service}/chat/completions` },
    JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: command }] }),
  );

/** `once` would reject with the reset that is expected here. */
const closed = (stream: ClientHttp2Stream) => new Promise((resolve) => stream.on('close', resolve));

it.each([
  ['cannot be reached', 'nowhere', '', 502, 'upstream_unreachable'],
  ['does not answer in time', 'there', '!head-delay:forever', 504, 'upstream_timeout'],
  ['closes before its head', 'there', '!cut-head:0', 502, 'upstream_broken'],
  ['breaks off within its head', 'there', '!cut-head:20', 502, 'upstream_broken'],
])('one that %s: a status, the mark, and no address', async (_what, service, command, status, failure) => {
  const its = failure === 'upstream_timeout' ? hasty : { running, end };
  const { headers, body, ...reply } = await readReply(call(service, command, its.end));
  expect(reply.status).toBe(status);
  expect(headers['x-tollgate-failure']).toBe(failure);
  expect(JSON.parse(body.toString())).toMatchObject({ error: { type: failure, code: status } });
  expect(body.toString()).not.toMatch(/127\.0\.0\.1|ECONN|:\d{4}/);
  expect(await its.running.logged('the upstream failed')).toMatchObject({ service, failure });
});

it.each([
  ['no HTTP', 'SSH-2.0-OpenSSH\r\n\r\n'],
  ['a length twice', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nabc'],
  ['a status that is none', 'HTTP/1.1 999999 OK\r\n\r\n'],
])('one that says %s', async (_what, bytes) => {
  rawReply = bytes;
  const { status, headers } = await readReply(call('raw'));
  expect([status, headers['x-tollgate-failure']]).toEqual([502, 'upstream_broken']);
});

it.each(['cut', 'reset'])(
  'one that breaks off in its body (%s): what came before the break arrives, then a reset',
  async (how) => {
    const stream = call('there', `!${how}:300 !tokens:100`);
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    await closed(stream);
    expect(stream.rstCode).toBe(constants.NGHTTP2_INTERNAL_ERROR);
    if (how === 'cut') expect(Buffer.concat(chunks).length).toBe(300);
  },
);

it('one that breaks off while the gateway does not read: every byte is there once it does', async () => {
  const more = Promise.withResolvers<void>();
  // Less than the stream's window; then what has to wait for it, too little to hold the upstream back.
  rawReply = `HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n${'a'.repeat(60_000)}`;
  rawMore = more.promise.then(() => 'b'.repeat(10_000));
  const stream = call('late');
  await once(stream, 'response');
  for (let turns = 0; turns < 20; turns += 1) await end.call({ ':path': '/model/none' });
  more.resolve();
  for (let line = await running.logged('the upstream failed'); line['service'] !== 'late';)
    line = await running.logged('the upstream failed');
  rawMore = Promise.resolve('');
  let bytes = 0;
  stream.on('data', (chunk: Buffer) => (bytes += chunk.length));
  await closed(stream);
  expect([bytes, stream.rstCode]).toEqual([70_000, constants.NGHTTP2_INTERNAL_ERROR]);
});

it('one whose body is shorter than it said', async () => {
  rawReply = 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc';
  await expect(readReply(call('raw'))).rejects.toThrow('after status 200 and 3 bytes');
});

it.each([401, 429, 500, 400])(
  'one that answers %d: a line in the log says so, with its words and the id',
  async (status) => {
    const stream = end.open(
      { ':path': '/model/there/chat/completions', 'x-request-id': `req-${status}` },
      JSON.stringify({ model: 'm', messages: [{ role: 'user', content: `!status:${status}` }] }),
    );
    expect((await readReply(stream)).status).toBe(status);
    const line = await running.logged('the upstream answered with an error');
    expect(line).toMatchObject({ service: 'there', primitive: 'model', status, request_id: `req-${status}` });
    expect(line['said']).toMatch(/^\{.*"error"/);
    expect((line['said'] as string).length).toBeLessThanOrEqual(200);
  },
);

it('one that answers an error: its own, without the mark', async () => {
  const { status, headers, body } = await readReply(call('there', '!status:503:garbage'));
  expect(status).toBe(503);
  expect(headers).not.toHaveProperty('x-tollgate-failure');
  expect(body).toEqual(Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x00, 0x5b, 0x5b, 0x0a]));
});

it.each([
  ['Connection', 'close\r\nConnection: x-hop\r\nx-hop: 1', undefined],
  ['Date', 'Mon, 23 Nov 2026 10:55:13 GMT\r\nDate: Mon, 23 Nov 2026 10:55:14 GMT', 'Mon, 23 Nov 2026 10:55:13 GMT'],
  ['X-Content-Type-Options', 'nosniff\r\nX-Content-Type-Options: nosniff', 'nosniff'],
  ['Access-Control-Allow-Credentials', 'true\r\nAccess-Control-Allow-Credentials: true', 'true'],
])('one that repeats the line %s: its reply', async (name, lines, value) => {
  rawReply = `HTTP/1.1 200 OK\r\n${name}: ${lines}\r\ncontent-length: 2\r\n\r\n{}`;
  const { status, headers, body } = await readReply(call('raw'));
  expect([status, body.toString(), headers['x-hop'], headers[name.toLowerCase()]]).toEqual([
    200,
    '{}',
    undefined,
    value,
  ]);
});
