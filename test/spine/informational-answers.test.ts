import { createServer, type AddressInfo, type Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createGuardedFetch } from '../../src/gateway/network/upstream/guarded-fetch.ts';
import { ask as probe } from '../../src/providers/proxy/probe/ask.ts';
import { dialIn, offeredModel, type DialledIn } from '../support/dial-in.ts';
import { ask, modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { dialPeer, documentOf, type TunnelPeer } from '../support/tunnel-peer.ts';
import { solanaWallet } from '../support/wallets.ts';

// What a provider may send before its reply (RFC 9110, 15.2), although nobody asked for it: 100, 102, 103. The same
// provider is called directly and through the tunnel of its proxy.

const BODY = JSON.stringify({
  id: 'x',
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
});
const ANSWER = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`;

let provider: Server;
let url: string;
let spine: Spine;
let proxy: DialledIn;
let peer: TunnelPeer;
let before = '';
/** Of the provider that speaks HTTP/2 itself. */
let interim: readonly number[] = [];

beforeAll(async () => {
  provider = createServer((socket) => {
    let text = '';
    socket.on('error', () => {});
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      const length = /content-length: (\d+)/i.exec(text);
      const head = text.indexOf('\r\n\r\n');
      const hasBody = !text.startsWith('GET');
      if ((hasBody && !length) || head === -1 || text.length < head + 4 + Number(length?.[1] ?? 0)) return;
      text = '';
      socket.write(before + ANSWER);
    });
  });
  await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
  spine = await startSpine({
    toml: `${UNHURRIED}[upstream]\ncooldown_ms = 0\n${modelBlock({ name: 'test/raw', provider: 'Raw', url: `${url}/v1` })}`,
  });
  proxy = await dialIn({
    router: spine.origin,
    services: offeredModel({ url: `${url}/v1`, name: 'proxied/model', provider: 'Proxied' }),
  });
  peer = await dialPeer({
    url: spine.origin,
    wallet: solanaWallet(),
    serve(stream) {
      stream.resume();
      for (const status of interim) stream.additionalHeaders({ ':status': status });
      stream.respond({ ':status': 200, 'content-type': 'application/json' });
      stream.end(BODY);
    },
  });
  expect(await peer.register(documentOf('peer/model', 'Peer'))).toMatchObject({ type: 'registered' });
});
afterAll(async () => {
  peer?.kill();
  await proxy?.close();
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  provider.close();
});

const call = async (model: string) => {
  const response = await spine.post('/chat/completions', ask('hello', { model }));
  const body = (await response.json()) as { error?: { message: string } };
  return { status: response.status, message: body.error?.message };
};
const many = (count: number, status = '100 Continue') => `HTTP/1.1 ${status}\r\n\r\n`.repeat(count);

const SKIPPED = [
  ['100 Continue', many(1)],
  ['100 Continue with a header, twice', many(2, '100 Continue\r\nserver: any')],
  ['102 Processing, twice', many(2, '102 Processing')],
  ['103 Early Hints, twice', many(2, '103 Early Hints\r\nlink: </a>')],
  ['each of them', many(1) + many(1, '103 Early Hints') + many(1) + many(1, '102 Processing')],
  ['a hundred of them', many(100)],
] as const;

describe.each([
  ['directly', 'test/raw'],
  ['through its proxy', 'proxied/model'],
])('a provider that is called %s', (_way, model) => {
  test.each(SKIPPED)('may send %s before its reply', async (_what, sent) => {
    before = sent;
    expect(await call(model)).toEqual({ status: 200, message: undefined });
    // The connection is used again.
    expect(await call(model)).toEqual({ status: 200, message: undefined });
  });

  test('fails the call for nothing with more than a hundred, and works afterwards', async () => {
    const balance = await spine.balance();
    for (const status of ['100 Continue', '102 Processing']) {
      before = many(101, status);
      expect((await call(model)).status).toBe(500);
    }
    expect(await spine.balance()).toEqual(balance);
    before = '';
    expect((await call(model)).status).toBe(200);
  });
});

test('the error says why', async () => {
  before = many(101);
  const message =
    'Provider Raw failed: the provider sent more than 100 interim replies, such as 100 Continue, before its reply';
  expect(await call('test/raw')).toEqual({ status: 500, message });
});

test('a proxy that passes interim replies on is as free and as bounded', async () => {
  interim = [103, 100, 102];
  expect(await call('peer/model')).toEqual({ status: 200, message: undefined });
  interim = Array.from({ length: 101 }, () => 103);
  const { status, message } = await call('peer/model');
  expect({ status, message }).toEqual({
    status: 500,
    message:
      'Provider Peer failed: the provider sent more than 100 interim replies, such as 100 Continue, before its reply',
  });
});

test('the check of a provider file and what is fetched from strangers skip them', async () => {
  before = many(3);
  expect(await probe({ method: 'POST', url, body: {} })).toMatchObject({ status: 200, text: BODY });
  const fetched = await createGuardedFetch({ allowPrivate: true })(url, { timeoutMs: 10_000, bodyBytesMax: 10_000 });
  expect(String(fetched.body)).toBe(BODY);
});
