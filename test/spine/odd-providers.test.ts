import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { sendRaw } from '../support/raw-http.ts';
import { ask, events, modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// Providers that speak HTTP in their own way: what can be understood is served, what cannot goes to the next, and
// nothing of theirs leaks through.

type Answer = (response: ServerResponse, body: { stream?: boolean }) => void;
let answer: Answer;
let spine: Spine;
let skew = 0;
const server = createServer((request, response) => {
  let text = '';
  request.on('data', (part: Buffer) => (text += part.toString()));
  request.on('end', () => answer(response, JSON.parse(text) as { stream?: boolean }));
});

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  spine = await startSpine({
    now: () => Date.now() + skew,
    toml: `${UNHURRIED}\n[upstream]\ncooldown_ms = 0\n${modelBlock({ provider: 'Odd', url })}`,
  });
});
afterAll(async () => {
  await spine.stop();
  server.close();
  server.closeAllConnections();
});
beforeEach(() => {
  skew += 20_000;
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const USAGE = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 };
const completion = (more: object = {}) => ({
  id: 'theirs',
  object: 'chat.completion',
  created: 1,
  model: 'theirs',
  choices: [{ index: 0, message: { role: 'assistant', content: 'from odd' }, finish_reason: 'stop' }],
  usage: USAGE,
  ...more,
});
const json = (response: ServerResponse, body: unknown, status = 200, headers: Record<string, string> = {}) =>
  response
    .writeHead(status, { 'content-type': 'application/json', ...headers })
    .end(typeof body === 'string' ? body : JSON.stringify(body));
const sse = (response: ServerResponse, ...chunks: unknown[]) =>
  response
    .writeHead(200, { 'content-type': 'text/event-stream' })
    .end(chunks.map((chunk) => `data: ${typeof chunk === 'string' ? chunk : JSON.stringify(chunk)}\n\n`).join(''));
const chunk = (delta: object, finish: string | null = null, more: object = {}) => ({
  id: 'theirs',
  object: 'chat.completion.chunk',
  model: 'theirs',
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
});
/** The odd provider first, the honest one behind it. */
const call = (stream: boolean, only = false) =>
  spine.post(
    '/chat/completions',
    ask('hello !tokens:3', { stream, provider: only ? { only: ['Odd'] } : { order: ['Odd', 'Test'] } }),
  );

const SAID = { role: 'assistant', content: 'from odd' };
const GONE = { code: 502, message: 'the backend went away' };
const FAILED_CHOICE = { index: 0, message: { ...SAID, content: '' }, finish_reason: 'error', error: GONE };
/** The only one that says why: its words and its code are told. */
const BUSY = '200 with an error in it';
const UNUSABLE: readonly (readonly [string, Answer])[] = [
  [
    'a reply in a coding that is not read',
    (response) => json(response, completion(), 200, { 'content-encoding': 'compress' }),
  ],
  [
    'a reply that breaks off in its coding',
    (response) =>
      response
        .writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
        .end(gzipSync(JSON.stringify(completion())).subarray(0, 40)),
  ],
  [BUSY, (response) => json(response, { error: { message: 'overloaded', code: 529 } })],
  ['200 with nothing', (response) => response.writeHead(200, { 'content-type': 'application/json' }).end()],
  ['200 with HTML', (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>sign in</html>')],
  ['204', (response) => response.writeHead(204).end()],
  ['304', (response) => response.writeHead(304).end()],
  [
    '307 to somewhere else',
    (response) => response.writeHead(307, { location: 'http://169.254.169.254/latest/meta-data' }).end(),
  ],
  ['an array', (response) => json(response, [completion()])],
  ['null', (response) => json(response, 'null')],
  ['no choices', (response) => json(response, completion({ choices: [] }))],
  ['choices that are none', (response) => json(response, completion({ choices: ['x', null] }))],
  [
    'choices without messages',
    (response) => json(response, completion({ choices: [{ index: 0, finish_reason: 'stop' }] })),
  ],
  ['an error in its only choice', (response) => json(response, completion({ choices: [FAILED_CHOICE] }))],
  [
    'errors in all of its choices, and a text',
    (response) =>
      json(response, completion({ choices: [FAILED_CHOICE, { ...FAILED_CHOICE, index: 1, message: SAID }] })),
  ],
  ['half of a reply, well ended', (response) => json(response, JSON.stringify(completion()).slice(0, 80))],
];

test.each(UNUSABLE)('not streamed: %s: the next provider serves', async (name, odd) => {
  answer = odd;
  const response = await call(false);
  expect(response.status).toBe(200);
  expect(response.headers.get('x-provider')).toBe('Test');
  await response.text();
  const before = await spine.balance();
  const alone = await call(false, true);
  const isBusy = name === BUSY;
  expect(alone.status).toBe(isBusy ? 529 : 500);
  expect(await alone.json()).toMatchObject({ error: { type: isBusy ? 'overloaded' : 'provider_unavailable' } });
  await spine.quiet();
  expect(await spine.balance()).toEqual(before);
});

test.each([
  ...UNUSABLE,
  [
    'a stream without events',
    (response: ServerResponse) => response.writeHead(200, { 'content-type': 'text/event-stream' }).end(),
  ] as const,
  [
    'a stream of comments',
    (response: ServerResponse) =>
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(': hello\n\n: world\n\n'),
  ] as const,
  ['a stream that is only ended', (response: ServerResponse) => sse(response, '[DONE]')] as const,
  [
    'a stream that begins with an error',
    (response: ServerResponse) => sse(response, { error: { message: 'overloaded' } }),
  ] as const,
  [
    'a stream that begins with an error in a choice',
    (response: ServerResponse) =>
      sse(response, { ...chunk({}), choices: [{ index: 0, delta: {}, finish_reason: 'error', error: GONE }] }),
  ] as const,
  ['a stream of what is no JSON', (response: ServerResponse) => sse(response, '{"choices":')] as const,
])('streamed: %s: the next provider serves', async (_name, odd) => {
  answer = odd;
  const response = await call(true);
  expect(response.status).toBe(200);
  const text = await response.text();
  expect(events(text).at(-1)).toBe('[DONE]');
  expect(text).toContain('"toll "');
  expect(await spine.generation(response.headers.get('x-generation-id'))).toMatchObject({ provider_name: 'Test' });
});

test('asked for a stream, it answers in one piece: the client gets a stream', async () => {
  answer = (response) => json(response, completion());
  const response = await call(true);
  const chunks = events(await response.text()) as {
    choices: { delta: { content: string }; finish_reason: string }[];
    usage: object;
  }[];
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  expect(chunks[0]).toMatchObject({
    object: 'chat.completion.chunk',
    model: 'test/model',
    choices: [{ delta: { content: 'from odd' }, finish_reason: 'stop' }],
    usage: USAGE,
  });
  expect(chunks.at(-1)).toBe('[DONE]');
});

test('asked for one piece, it streams: the next provider serves', async () => {
  answer = (response) => sse(response, chunk({ content: 'x' }), chunk({}, 'stop', { usage: USAGE }), '[DONE]');
  expect((await call(false)).headers.get('x-provider')).toBe('Test');
});

test('its headers, ids and names stay behind', async () => {
  answer = (response, body) => {
    const headers = {
      'set-cookie': 'canary=1',
      'x-receipt': 'canary',
      'x-cost-usd': '0',
      server: 'canary',
      'x-request-id': 'canary',
      'content-disposition': 'canary',
      'access-control-allow-origin': 'canary',
    };
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    if (body.stream) sse(response, chunk({ content: 'x' }), chunk({}, 'stop', { usage: USAGE }), '[DONE]');
    else json(response, completion());
  };
  for (const stream of [false, true]) {
    const response = await call(stream);
    const text = await response.text();
    expect(response.headers.get('x-provider')).toBe('Odd');
    expect(JSON.stringify([...response.headers])).not.toContain('canary');
    expect(text).not.toContain('theirs');
  }
});

test('extra fields of its reply pass through, also numbers that no double holds', async () => {
  answer = (response, body) =>
    body.stream
      ? sse(
          response,
          chunk({ content: 'x', reasoning_content: 'hm' }, null, { system_fingerprint: 'fp' }),
          chunk({}, 'stop', { usage: { ...USAGE, prompt_tokens_details: { cached_tokens: 3 } } }),
          '[DONE]',
        )
      : json(
          response,
          JSON.stringify(
            completion({
              system_fingerprint: 'fp',
              service_tier: 'x',
              usage: { ...USAGE, completion_tokens_details: { reasoning_tokens: 1 } },
            }),
          ).replace(/}$/, ',"big":12345678901234567890}'),
        );
  const whole = await (await call(false)).text();
  expect(JSON.parse(whole)).toMatchObject({
    system_fingerprint: 'fp',
    service_tier: 'x',
    usage: { ...USAGE, completion_tokens_details: { reasoning_tokens: 1 } },
  });
  expect(whole).toContain('"big":12345678901234567890');
  const chunks = events(await (await call(true)).text());
  expect(chunks[0]).toMatchObject({
    system_fingerprint: 'fp',
    choices: [{ delta: { content: 'x', reasoning_content: 'hm' } }],
  });
  expect(chunks.at(-2)).toMatchObject({ usage: { ...USAGE, prompt_tokens_details: { cached_tokens: 3 } } });
});

test('what it says after its end is not heard, and the next call is not confused by it', async () => {
  answer = (response) =>
    sse(response, chunk({ content: 'x' }), chunk({}, 'stop', { usage: USAGE }), '[DONE]', chunk({ content: 'ghost' }), {
      error: { message: 'ghost' },
    });
  for (let i = 0; i < 5; i++) {
    const text = await (await call(true)).text();
    expect(text).not.toContain('ghost');
    expect(events(text).at(-1)).toBe('[DONE]');
  }
});

test('a field called __proto__ in its reply pollutes nothing', async () => {
  answer = (response, body) =>
    body.stream
      ? response
          .writeHead(200, { 'content-type': 'text/event-stream' })
          .end(
            `data: {"__proto__":{"polluted":1},"choices":[{"index":0,"delta":{"content":"x","__proto__":{"polluted":1}}}]}\n\ndata: ${JSON.stringify(chunk({}, 'stop', { usage: USAGE }))}\n\ndata: [DONE]\n\n`,
          )
      : json(response, JSON.stringify(completion()).replace('{', '{"__proto__":{"polluted":1},'));
  for (const stream of [false, true]) expect((await call(stream)).status).toBe(200);
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});

test('an old client without chunked encoding reads a stream to the end of the connection', async () => {
  const body = JSON.stringify(ask('hello !tokens:3', { stream: true, provider: { only: ['Test'] } }));
  const got = await sendRaw(
    spine.origin,
    `POST /api/v1/chat/completions HTTP/1.0\r\nauthorization: Bearer ${spine.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  expect(got.status).toBe(200);
  expect(got.headers).not.toHaveProperty('transfer-encoding');
  expect(events(got.body).at(-1)).toBe('[DONE]');
});

test.each([
  [GONE, /Odd failed: .*: the backend went away/],
  [{ code: 402, message: 'the account acct-1234567 is empty' }, /Odd failed: it reported an error instead of a reply$/],
  [{ code: 'insufficient_quota', message: 'pay first' }, /Odd failed: it reported an error instead of a reply$/],
])('the words of the error %j in a choice are told, unless they are about the operator', async (error, words) => {
  for (const stream of [false, true]) {
    answer = (response) => json(response, completion({ choices: [{ ...FAILED_CHOICE, error }] }));
    const response = await call(stream, true);
    const text = await response.text();
    const [event] = stream && response.status === 200 ? (events(text) as object[]) : [JSON.parse(text) as object];
    expect((event as { error: { message: string } }).error.message).toMatch(words);
  }
});

test('of two choices, the one without an error is delivered', async () => {
  answer = (response) =>
    json(
      response,
      completion({
        choices: [
          { index: 0, message: SAID, finish_reason: 'stop' },
          { ...FAILED_CHOICE, index: 1 },
        ],
      }),
    );
  const response = await call(false, true);
  expect(response.status).toBe(200);
  expect(await response.text()).toContain('from odd');
});
