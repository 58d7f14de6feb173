import { afterEach, expect, test } from 'vitest';
import { openSocket } from '../support/raw-http.ts';
import { ask, events, MODEL, UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// What stands around an answer: cost, provider, ids and rates in headers, and a stream that no proxy may hold up or
// change.

const spine = spineOfFile(() => ({ toml: UNHURRIED, keepAliveMs: 60 }));
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const RATES = ['limit', 'remaining', 'reset'].flatMap((what) =>
  ['requests', 'tokens'].map((of) => `x-ratelimit-${what}-${of}`),
);

test('not streamed: cost, provider, generation, receipt and rates', async () => {
  const response = await spine.post('/chat/completions', ask('hello !tokens:7'), { 'x-receipt': '1' });
  const body = (await response.json()) as {
    id: string;
    object: string;
    model: string;
    created: number;
    usage: Record<string, unknown> & { cost: number; cost_details: object };
  };
  const cost = spine.provider.log.at(-1)!.promptTokens + 2 * 7;
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(Number(response.headers.get('x-cost-usd'))).toBe(cost / 1e6);
  expect(response.headers.get('x-cost-usd')).toMatch(/^0\.\d{1,6}$/);
  expect(response.headers.get('x-provider')).toBe('Test');
  expect(response.headers.get('x-generation-id')).toBe(body.id);
  expect(response.headers.get('x-receipt')).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/);
  for (const name of RATES) expect(response.headers.get(name), name).toMatch(/^\d+$/);
  expect(body).toMatchObject({
    object: 'chat.completion',
    model: MODEL,
    choices: [{ index: 0, message: { role: 'assistant' }, finish_reason: 'stop' }],
  });
  expect(Number.isInteger(body.created)).toBe(true);
  expect(body.usage).toMatchObject({
    completion_tokens: 7,
    total_tokens: spine.provider.log.at(-1)!.promptTokens + 7,
    cost: cost / 1e6,
  });
  expect(body.usage.cost_details).toBeTypeOf('object');
});

test('streamed: an event stream that nobody may buffer, compress or change', async () => {
  let response: Response;
  // The head is sent without a provider where none has answered before the first comment, 60 ms here.
  for (let tries = 1; ; tries += 1) {
    response = await spine.post('/chat/completions', ask('hello !tokens:7', { stream: true }), {
      'accept-encoding': 'gzip, br, zstd, deflate',
    });
    if (response.headers.get('x-provider') !== null || tries === 20) break;
    await response.text();
  }
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  expect(response.headers.get('cache-control')).toBe('no-cache, no-transform');
  expect(response.headers.get('x-accel-buffering')).toBe('no');
  expect(response.headers.get('content-encoding')).toBeNull();
  expect(response.headers.get('content-length')).toBeNull();
  expect(response.headers.get('x-provider')).toBe('Test');
  for (const name of RATES) expect(response.headers.get(name), name).toMatch(/^\d+$/);
  const chunks = events(await response.text());
  expect(response.headers.get('x-generation-id')).toBe((chunks[0] as { id: string }).id);
  expect(chunks.at(-1)).toBe('[DONE]');
});

test.each(['/chat/completions', '/models', '/providers'])('%s is never compressed', async (path) => {
  const headers = { 'accept-encoding': 'gzip, br, zstd, deflate' };
  const response =
    path === '/chat/completions'
      ? await spine.post(path, ask('hello !tokens:40'), headers)
      : await spine.get(path, headers);
  expect(response.headers.get('content-encoding')).toBeNull();
});

test('the head of a stream is sent before the first word', async () => {
  const seen = Promise.withResolvers<void>();
  spine.provider.instruct({ stallAt: 0, stallUntil: seen.promise });
  const response = await spine.post('/chat/completions', ask('hello', { stream: true }));
  // fetch resolves with the head; the provider is silent until then.
  expect(spine.provider.log.at(-1)!.bytes).toBe(0);
  seen.resolve();
  expect(await response.text()).toContain('[DONE]');
});

test('a silent stream is kept alive by comments, which are no events', async () => {
  const response = await spine.post('/chat/completions', ask('hello !tokens:3 !stall:600:400', { stream: true }));
  const text = await response.text();
  expect(text.split(': keep-alive\n\n').length - 1).toBeGreaterThanOrEqual(2);
  const said = events(text).filter((event) => event !== '[DONE]') as { choices: { delta: { content?: string } }[] }[];
  expect(said.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('the toll is ');
});

test('content-encoding identity is none', async () => {
  expect((await spine.post('/chat/completions', ask('hello'), { 'content-encoding': 'identity' })).status).toBe(200);
});

test('two calls on one connection, one after the other and at once', async () => {
  const socket = await openSocket(spine.origin);
  const body = JSON.stringify(ask('hello !tokens:2'));
  const request = `POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${spine.key}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  let text = '';
  const two = new Promise<void>((resolve) =>
    socket.on('data', (part: Buffer) =>
      (text += part.toString()).match(/"cost_details"/g)?.length === 2 ? resolve() : undefined,
    ),
  );
  socket.write(request + request);
  await two;
  socket.destroy();
  expect(text.match(/HTTP\/1\.1 200/g)).toHaveLength(2);
  expect(new Set(text.match(/x-generation-id: \S+/g)).size).toBe(2);
});

test.each(['/', '/docs', '/openapi.json', '/llms.txt', '/api/v1/models', '/.well-known/agent-card.json', '/nowhere'])(
  'browsers do not guess another type for %s',
  async (path) => {
    const response = await fetch(spine.origin + path);
    await response.arrayBuffer();
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
  },
);
