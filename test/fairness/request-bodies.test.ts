import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { imageBlock, type ImageProvider, png, startImageProvider } from '../media/support/image-provider.ts';
import { createPaperChain, payWith, toHeader } from '../support/paper-chain.ts';
import { openSocket, type RawAnswer, readAnswer } from '../support/raw-http.ts';
import { ask, startSpine, type Spine } from '../support/spine.ts';
import { unlessStalled } from '../support/unless-stalled.ts';

// The memory for bodies is small here: 4 MiB, of which an account and a network may use 1 MiB each. Clients come from
// the networks that X-Forwarded-For names.

const MIB = 1024 * 1024;
const LARGE = 900_000;
const LIMITS = `
[server]
trusted_proxies = ["127.0.0.1"]
[limits]
requests_per_minute = 1000000
anonymous_requests_per_minute = 1000000
burst = 1000000
bodies_bytes_max = ${4 * MIB}
bodies_wait_ms = 0
media_body_bytes_max = ${MIB}
chat_body_bytes_max = 262144
body_bytes_max = 131072
anonymous_body_bytes_max = 100000
`;

const chain = createPaperChain();
let provider: ImageProvider;
let spine: Spine;
/** Gives up slow uploads after two seconds. At the other one, they stay longer than a busy machine takes for a test. */
let hasty: Spine;
beforeAll(async () => {
  provider = await startImageProvider();
  spine = await startSpine({
    toml: `${LIMITS}upload_bytes_per_second_min = 1\n${imageBlock({ url: provider.url, params: 'edits = true' })}`,
    payments: chain.payments,
  });
  hasty = await startSpine({
    toml: `${LIMITS}request_timeout_ms = 2000\nupload_bytes_per_second_min = 10000\n`,
  });
  chain.credit(spine.app.ledger);
});
afterAll(async () => {
  await hasty.stop();
  await spine.stop();
  await provider.close();
});

const open = new Set<Socket>();
afterEach(async () => {
  for (const socket of open) socket.destroy();
  open.clear();
  for (const gateway of [spine, hasty]) {
    await held(0, gateway);
    expect(await gateway.faults()).toEqual([]);
  }
});

/** Resolves when this many bytes are counted for bodies. */
async function held(bytes: number, gateway = spine): Promise<void> {
  await expect.poll(() => gateway.app.server.requestBodies.heldBytes(), { timeout: 30_000, interval: 20 }).toBe(bytes);
}

interface Upload {
  /** Default `spine`. */
  readonly to?: Spine;
  readonly key?: string | null;
  readonly from?: string;
  readonly path?: string;
  /** null: chunked. */
  readonly length?: number | null;
  readonly headers?: string;
  readonly type?: string;
}

/** Sends the head of a request. Its body is up to the test. */
async function begin({
  to = spine,
  key = to.key,
  from = '10.0.0.1',
  path = '/image/edit',
  length = LARGE,
  headers = '',
  type = 'application/json',
}: Upload = {}) {
  const socket = await openSocket(to.origin);
  open.add(socket);
  const answer = readAnswer(socket);
  answer.catch(() => {});
  const size = length === null ? 'transfer-encoding: chunked' : `content-length: ${length}`;
  socket.write(
    `POST /api/v1${path} HTTP/1.1\r\nhost: x\r\nx-forwarded-for: ${from}\r\ncontent-type: ${type}\r\n` +
      `${key === null ? '' : `authorization: Bearer ${key}\r\n`}${headers}${size}\r\n\r\n`,
  );
  return { socket, answer };
}

/** Begins an upload that falls silent, and waits until it is counted. */
async function silent(upload: Upload = {}) {
  const before = spine.app.server.requestBodies.heldBytes();
  const begun = await begin(upload);
  begun.socket.write('{"model":'.padEnd(100));
  await held(before + (upload.length ?? LARGE));
  return begun;
}

const messageOf = ({ body }: RawAnswer) => (JSON.parse(body) as { error: { message: string } }).error.message;
const chat = (key: string, from: string) =>
  spine.post('/chat/completions', ask('hello !tokens:1'), { authorization: `Bearer ${key}`, 'x-forwarded-for': from });

describe('a large body is refused before it is read', () => {
  test('if its account has used its share: 429, while others are served', async () => {
    await silent();
    const second = await (await begin({ from: '10.0.0.2' })).answer;
    expect([second.status, second.headers['retry-after']]).toEqual([429, '2']);
    expect(messageOf(second)).toMatch(
      /^The large requests of this account .* may use a quarter of limits\.bodies_bytes_max, and at most/,
    );
    const other = await spine.tenant('another', '1');
    expect((await chat(other.key, '10.0.0.1')).status).toBe(200);
    expect((await chat(spine.key, '10.0.0.1')).status).toBe(200);
    await silent({ key: other.key, from: '10.0.0.2' });
  });

  test('if its network has used its share, whatever accounts it has: 429', async () => {
    const [one, two] = [await spine.tenant('one', '1'), await spine.tenant('two', '1')];
    await silent({ key: one.key, from: '2001:db8:1:1::1' });
    const second = await (await begin({ key: two.key, from: '2001:db8:1:1::2' })).answer;
    expect([second.status, messageOf(second)]).toEqual([429, expect.stringContaining('of this network')]);
    await silent({ key: two.key, from: '2001:db8:1:2::2' });
  });

  test('if all memory for bodies is used: 503 with Retry-After', async () => {
    for (const n of [1, 2, 3, 4])
      await silent({ key: (await spine.tenant(`full-${n}`, '1')).key, from: `10.0.1.${n}` });
    const { answer } = await begin({ from: '10.0.1.5' });
    expect(await answer).toMatchObject({ status: 503, headers: { 'retry-after': '2' } });
    expect((await chat(spine.key, '10.0.1.5')).status).toBe(200);
  });

  test.each([
    ['/messages', { type: 'error', error: { type: 'rate_limit_error' } }],
    ['/rpc', { jsonrpc: '2.0', id: null, error: { code: -32016 } }],
    ['/chat/completions', { error: { type: 'rate_limit_exceeded', code: 429 } }],
  ])('%s says it in its own words', async (path, shape) => {
    await silent();
    const answer = await (await begin({ path, length: 200_000 })).answer;
    expect([answer.status, JSON.parse(answer.body)]).toEqual([429, expect.objectContaining({})]);
    expect(JSON.parse(answer.body)).toMatchObject(shape);
  });

  test('a chunked body is counted as it arrives', async () => {
    const { socket, answer } = await begin({ length: null });
    const piece = `10000\r\n${' '.repeat(65_536)}\r\n`;
    for (let i = 0; i < 8; i++) socket.write(piece);
    // At the end its pieces and the whole are in memory together.
    await held(2 * 8 * 65_536);
    const other = await (await begin({ from: '10.0.0.2' })).answer;
    expect(other.status).toBe(429);
    socket.write('0\r\n\r\n');
    expect((await answer).status).toBe(400);
  });
});

describe('without a credential', () => {
  test('a large body is refused, and the answer says how to pay', async () => {
    const { answer } = await begin({ key: null });
    expect([(await answer).status, messageOf(await answer)]).toEqual([
      413,
      expect.stringContaining('PAYMENT-SIGNATURE'),
    ]);
    const chunked = await begin({ key: null, length: null });
    for (let i = 0; i < 2; i++) chunked.socket.write(`10000\r\n${' '.repeat(65_536)}\r\n`);
    expect((await chunked.answer).status).toBe(413);
  });

  test('with a payment, it is read under the share of the network, and paid', async () => {
    const image = png(500, 500).toString('base64');
    const body = JSON.stringify({ model: 'test/paint', prompt: 'x', images: [image], metadata: {} });
    const padded = body.slice(0, -1) + ' '.repeat(200_000) + '}';
    const payment = `payment-signature: ${toHeader(payWith({ wallet: 'payer', nonce: 'large' }))}\r\n`;
    await silent({ key: null, headers: payment });
    const refused = await (await begin({ key: null, headers: payment, length: padded.length })).answer;
    expect([refused.status, messageOf(refused)]).toEqual([429, expect.stringContaining('of this network')]);
    const { socket, answer } = await begin({ key: null, from: '10.0.0.9', headers: payment, length: padded.length });
    socket.write(padded);
    expect(await answer).toMatchObject({ status: 200 });
  });
});

describe('a slow body', () => {
  test.each([
    ['large', LARGE],
    ['small', 1_000],
  ])('that is %s ends with 408 and a closed connection, and its memory is free again', async (_size, length) => {
    const { socket, answer } = await begin({ to: hasty, length });
    const closed = new Promise((resolve) => socket.once('close', resolve));
    const drip = setInterval(() => socket.writable && socket.write(' '), 50);
    try {
      expect(await answer).toMatchObject({ status: 408, headers: { connection: 'close' } });
      await closed;
    } finally {
      clearInterval(drip);
    }
    await held(0, hasty);
  });

  test('is counted even if it is small, so that many of them stay within the share', () =>
    unlessStalled(250, async () => {
      await held(0, hasty);
      const uploads = await Promise.all(Array.from({ length: 30 }, () => begin({ to: hasty, length: 64 * 1024 })));
      const answers = await Promise.all(uploads.map(({ answer }) => answer));
      const refused = answers.filter(({ status }) => status === 429);
      expect(refused).toHaveLength(14);
      expect(answers.filter(({ status }) => status === 408)).toHaveLength(16);
    }));

  test('that keeps up the least speed arrives, for longer than a small one may take', async () => {
    const { socket, answer } = await begin({ to: hasty, length: 300_000 });
    const begun = performance.now();
    for (let sent = 0; sent < 300_000; sent += 5_000) {
      socket.write(' '.repeat(5_000));
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect(await answer).toMatchObject({ status: 400 });
    expect(performance.now() - begun).toBeGreaterThan(2_000);
  });
});

describe('the body of a running call', () => {
  const SIZE = 60_000;
  /** Sends a whole request whose provider does not answer yet, and waits until its memory is counted. */
  async function running(path: string, body: object, upload: Upload = {}) {
    const text = JSON.stringify(body);
    const [before, asked] = [spine.app.server.requestBodies.heldBytes(), spine.provider.log.length];
    const begun = await begin({ ...upload, path, length: text.length });
    begun.socket.write(text);
    await expect.poll(() => spine.provider.log.length, { timeout: 30_000, interval: 20 }).toBe(asked + 1);
    await held(before + 4 * text.length);
    return begun;
  }
  const words = '!tokens:1'.padEnd(SIZE);
  const stream = { ...ask(words), stream: true };
  const { model } = stream;
  const responses = { model, input: words, store: false };
  const message = { role: 'ROLE_USER', messageId: 'm', parts: [{ text: words }] };
  const left: [string, string, object][] = [
    ['a chat', '/chat/completions', ask(words)],
    ['a streamed chat', '/chat/completions', stream],
    ['a message', '/messages', { model, max_tokens: 9, messages: [{ role: 'user', content: words }] }],
    ['a message to a model as an agent', `/a2a/model/${model}/message:send`, { message }],
  ];

  let answer = () => {};
  beforeEach(() => {
    const { promise, resolve } = Promise.withResolvers<void>();
    answer = resolve;
    spine.provider.hold(promise);
  });
  afterEach(() => {
    answer();
    spine.provider.hold(null);
  });

  test('is counted above 8 KiB until the call has ended, and refused as a large one is', async () => {
    const calls = [
      await running('/chat/completions', ask(words)),
      await running('/chat/completions', stream, { headers: 'connection: close\r\n' }),
      await running('/messages', { model, max_tokens: 9, messages: [{ role: 'user', content: words }] }),
      await running('/responses', responses),
    ];
    const refused = await (await begin({ path: '/chat/completions', length: SIZE, from: '10.0.0.2' })).answer;
    expect([refused.status, refused.headers['retry-after']]).toEqual([429, '2']);
    expect(messageOf(refused)).toMatch(/^The large requests of this account /);
    const chunked = await begin({ path: '/chat/completions', length: null, from: '10.0.0.2' });
    chunked.socket.write(`4000\r\n${' '.repeat(0x4000)}\r\n`.repeat(2));
    expect((await chunked.answer).status).toBe(429);
    const other = await spine.tenant('beside', '1');
    await running('/chat/completions', ask(words), { key: other.key, from: '10.0.0.2' });
    // The usual small call is not counted, and finds room.
    const small = chat(spine.key, '10.0.0.1');
    answer();
    expect((await small).status).toBe(200);
    expect((await Promise.all(calls.map((call) => call.answer))).map(({ status }) => status)).toEqual(
      Array(4).fill(200),
    );
    await held(0);
  });

  test('is counted while it is answered in the background', async () => {
    const begun = await running('/responses', { model, input: words, background: true });
    expect(await begun.answer).toMatchObject({ status: 200 });
    begun.socket.destroy();
    expect((await spine.get('/models')).status).toBe(200);
    expect(spine.app.server.requestBodies.heldBytes()).toBeGreaterThan(4 * SIZE);
    answer();
    await held(0);
  });

  test.each(left)(
    '%s is counted no longer when the call of a client that left has ended',
    async (_what, path, body) => {
      const { socket } = await running(path, body);
      socket.destroy();
      answer();
      await held(0);
    },
  );

  test('is counted no longer when the call fails', async () => {
    const { answer: failed } = await running('/chat/completions', ask('!status:500'.padEnd(SIZE)));
    answer();
    expect((await failed).status).toBeGreaterThanOrEqual(500);
    await held(0);
  });
});

test('refused bodies are read and dropped one connection at a time, and their clients get the answer', async () => {
  const sockets = new Set<Socket>();
  const note = (socket: Socket) => void sockets.add(socket);
  await silent();
  spine.app.server.server.on('connection', note);
  const refused = await Promise.all(Array.from({ length: 24 }, () => begin({ from: '10.0.0.2' })));
  const answers = await Promise.all(refused.map(({ answer }) => answer));
  expect(answers.map(({ status }) => status)).toEqual(Array(24).fill(429));
  spine.app.server.server.removeListener('connection', note);
  /** The most connections that were read in one turn of the event loop, while the rest of the bodies came. */
  let most = 0;
  for (const { socket } of refused) socket.write('x'.repeat(LARGE));
  expect(sockets.size).toBe(24);
  const read = new Map([...sockets].map((socket) => [socket, socket.bytesRead]));
  while ([...sockets].some(({ bytesRead }) => bytesRead < LARGE)) {
    await new Promise((resolve) => setImmediate(resolve));
    let now = 0;
    for (const socket of sockets) {
      if (socket.bytesRead > read.get(socket)!) now += 1;
      read.set(socket, socket.bytesRead);
    }
    most = Math.max(most, now);
  }
  expect(most).toBeLessThanOrEqual(2);
  const { socket } = refused[0]!;
  const next = readAnswer(socket);
  socket.write('GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n');
  expect((await next).status).toBe(200);
});

describe('the memory of a body is free again', () => {
  test('when its client resets the connection', async () => {
    const { socket } = await silent();
    socket.resetAndDestroy();
    await held(0);
  });

  test('when its call has ended, and not before', async () => {
    let answered = () => {};
    provider.answer((_request, response) => {
      answered = () => response.writeHead(500).end();
    });
    const body = JSON.stringify({ model: 'test/paint', prompt: 'x', images: [png(9, 9).toString('base64')] }).padEnd(
      500_000,
    );
    const { socket } = await begin({ length: body.length });
    const asked = provider.requests.length;
    socket.write(body);
    await expect.poll(() => provider.requests.length, { timeout: 30_000 }).toBe(asked + 1);
    await held(body.length);
    // Its client leaves, but the gateway still waits for the provider.
    const gone = new Promise((resolve) => socket.once('close', resolve));
    socket.destroy();
    await gone;
    expect((await chat(spine.key, '10.0.0.1')).status).toBe(200);
    await held(body.length);
    answered();
    await held(0);
  });

  test('when a chunked body is whole: it counts twice only while it arrives', async () => {
    let answered = () => {};
    provider.answer((_request, response) => {
      // A refusal: after a 500 the only provider would be asked once more.
      answered = () => response.writeHead(400).end();
    });
    const { socket, answer } = await begin({ length: null, type: 'multipart/form-data; boundary=b' });
    const part = (name: string, content: string, more = '') =>
      `--b\r\ncontent-disposition: form-data; name="${name}"${more}\r\n\r\n${content}\r\n`;
    const file = png(9, 9).toString('latin1').padEnd(200_000, 'x');
    const form = `${part('model', 'test/paint')}${part('prompt', 'x')}${part('image', file, '; filename="a.png"')}--b--\r\n`;
    const bytes = Buffer.from(form, 'latin1');
    const asked = provider.requests.length;
    socket.write(`${bytes.byteLength.toString(16)}\r\n`);
    socket.write(bytes);
    await held(2 * bytes.byteLength);
    socket.write('\r\n0\r\n\r\n');
    await expect.poll(() => provider.requests.length, { timeout: 30_000 }).toBe(asked + 1);
    await held(bytes.byteLength);
    answered();
    expect((await answer).status).toBe(400);
  });

  test('when it is answered with an error or with success', async () => {
    for (const content of ['x'.repeat(100_000), '!tokens:1'.padEnd(100_000)]) {
      const response = await spine.post('/chat/completions', ask(content), { 'x-forwarded-for': '10.0.0.1' });
      await response.text();
      await held(0);
    }
    const broken = await begin({ length: 100_000, path: '/chat/completions' });
    broken.socket.write('x'.repeat(100_000));
    expect((await broken.answer).status).toBe(400);
  });
});

test('the metrics show what is held, and what was refused and why', async () => {
  await silent();
  await (
    await begin()
  ).answer;
  const text = await spine.app.metrics.text();
  expect(text).toMatch(/^tollgate_bodies_bytes 900000$/m);
  const refused = (why: string) => new RegExp(`^tollgate_bodies_refused_total\\{why="${why}"\\} [1-9]`, 'm');
  for (const why of ['account', 'network', 'gateway']) expect(text).toMatch(refused(why));
  expect(await hasty.app.metrics.text()).toMatch(refused('slow'));
});
