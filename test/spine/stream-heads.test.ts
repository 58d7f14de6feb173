import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { ask, events, modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// The head of a stream waits for the first event of the provider, so that it says what happened and who answers. It
// does not wait for long.

let answer: (response: ServerResponse) => void;
const server = createServer((request, response) => {
  request.resume();
  request.on('end', () => answer(response));
});
let spine: Spine;
/** The same, where a silence is long after 20 ms. */
let hasty: Spine;
let skew = 0;
beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const toml = `${UNHURRIED}\n[upstream]\ncooldown_ms = 0\n${modelBlock({ provider: 'Odd', url })}${modelBlock({ name: 'test/odd', provider: 'Odd', url })}`;
  const now = () => Date.now() + skew;
  [spine, hasty] = await Promise.all([startSpine({ now, toml }), startSpine({ now, toml, keepAliveMs: 20 })]);
});
afterAll(async () => {
  await Promise.all([spine.stop(), hasty.stop()]);
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  skew += 20_000;
});
afterEach(async () => {
  for (const each of [spine, hasty]) expect(await each.faults()).toEqual([]);
});

const SSE = { 'content-type': 'text/event-stream' };
const ODD_FIRST = { stream: true, provider: { order: ['Odd', 'Test'] } };
const frame = (delta: object, finish: string | null = null, more: object = {}) =>
  `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`;
const USAGE = { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 };

const FAILURES: readonly (readonly [string, (response: ServerResponse) => void])[] = [
  [
    'an error as its first event',
    (response) => response.writeHead(200, SSE).end('data: {"error":{"message":"overloaded"}}\n\n'),
  ],
  ['a close', (response) => void response.writeHead(200, SSE).write(': hello\n\n', () => response.destroy())],
  ['a page of HTML', (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html></html>')],
  ['garbage', (response) => response.writeHead(200, SSE).end('data: {"choices":\n\n')],
  ['nothing', (response) => response.writeHead(200, SSE).end()],
  [
    'an error object',
    (response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"error":{"message":"overloaded"}}'),
  ],
];

test.each(FAILURES)('a stream that begins with %s has failed with a status', async (_what, fails) => {
  answer = fails;
  const response = await spine.post('/chat/completions', ask('hello', { model: 'test/odd', stream: true }));
  expect(response.status).toBe(500);
  expect(response.headers.get('content-type')).toMatch(/^application\/json/);
  expect(await response.json()).toMatchObject({ error: { type: 'provider_unavailable', code: 500 } });
});

test.each(FAILURES)(
  'a stream that begins with %s gives way to the next provider, which the head names',
  async (_what, fails) => {
    answer = fails;
    const response = await spine.post('/chat/completions', ask('hello !tokens:3', ODD_FIRST));
    expect([response.status, response.headers.get('x-provider')]).toEqual([200, 'Test']);
    expect(await response.text()).toMatch(/\[DONE\]\n\n$/);
    await spine.quiet();
    expect(await spine.generation(response.headers.get('x-generation-id'))).toMatchObject({ provider_name: 'Test' });
  },
);

/** Reads until `wanted` is in the text. */
async function readUntil(body: ReadableStreamDefaultReader<string>, wanted: string): Promise<string> {
  let text = '';
  while (!text.includes(wanted)) {
    const { done, value } = await body.read();
    if (done) break;
    text += value;
  }
  return text;
}

test.each([
  ['its head', () => {}],
  ['its first event', (response: ServerResponse) => response.writeHead(200, SSE).flushHeaders()],
])('where a provider is silent before %s, comments come, and the stream goes on', async (_what, begin) => {
  const asked = Promise.withResolvers<ServerResponse>();
  answer = (response) => {
    begin(response);
    asked.resolve(response);
  };
  const response = await hasty.post('/chat/completions', ask('hello', { model: 'test/odd', stream: true }));
  expect(response.status).toBe(200);
  // It is not said who answers while another may.
  expect(response.headers.get('x-provider')).toBeNull();
  expect(response.headers.get('x-generation-id')).toMatch(/^gen-/);
  const body = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  expect(await readUntil(body, ': keep-alive\n\n: keep-alive\n\n')).toMatch(/^(?:: keep-alive\n\n)+$/);
  const upstream = await asked.promise;
  if (!upstream.headersSent) upstream.writeHead(200, SSE);
  upstream.end(`${frame({ content: 'late' })}${frame({}, 'stop', { usage: USAGE })}data: [DONE]\n\n`);
  const rest = await readUntil(body, '[DONE]');
  expect(events(rest.replaceAll(': keep-alive\n\n', ''))).toMatchObject([
    { choices: [{ delta: { content: 'late' } }] },
    { usage: USAGE },
    '[DONE]',
  ]);
});

test('a provider that fails after a long silence gives way inside of the stream', async () => {
  const asked = Promise.withResolvers<ServerResponse>();
  answer = (response) => asked.resolve(response.writeHead(200, SSE));
  const response = await hasty.post('/chat/completions', ask('hello !tokens:3', ODD_FIRST));
  expect([response.status, response.headers.get('x-provider')]).toEqual([200, null]);
  (await asked.promise).end('data: {"error":{"message":"overloaded"}}\n\n');
  expect(await response.text()).toMatch(/\[DONE\]\n\n$/);
  await hasty.quiet();
  expect(await hasty.generation(response.headers.get('x-generation-id'))).toMatchObject({ provider_name: 'Test' });
});

test('a call that cannot be paid has its status, however long that takes to find', async () => {
  answer = () => {};
  const { key } = await hasty.tenant('poor', '0.000001');
  const response = await hasty.post('/chat/completions', ask('hello', { model: 'test/odd', stream: true }), {
    authorization: `Bearer ${key}`,
  });
  expect(response.status).toBe(402);
});
