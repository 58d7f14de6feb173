import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { atThisLoad } from '../support/at-this-load.ts';
import { startProvider, type TestProvider } from '../support/provider.ts';
import { ask, events, modelBlock, startSpine, UNHURRIED, type Generation, type Spine } from '../support/spine.ts';

// A reply that the gateway ends, though nobody failed: what was delivered is paid, the client is told, and the
// provider is blamed for nothing.

/** The first word has to come before a call is over, on a busy machine too. */
const CALL_S = Math.ceil(atThisLoad(300) / 1_000);
const REPLY_BYTES_MAX = 20_000;
const WORD = '12345678';
const COOLED_DOWN_MS = 600_000;
let skew = 0;

let answer: (response: ServerResponse) => void;
const server = createServer((request, response) => {
  request.resume();
  request.on('end', () => answer(response));
});
let spine: Spine;
let other: TestProvider;
beforeAll(async () => {
  other = await startProvider();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  spine = await startSpine({
    now: () => Date.now() + skew,
    toml: `${UNHURRIED}
[upstream]
call_timeout_ms = ${CALL_S}000
reply_bytes_max = ${REPLY_BYTES_MAX}
[billing]
drain_ms = 200
${modelBlock({ name: 'test/long', provider: 'Long', url })}
${modelBlock({ name: 'test/mute', provider: 'Mute', url })}
${modelBlock({ name: 'test/mute', provider: 'Speaks', url: other.url, prompt: 3, completion: 5 })}`,
  });
});
afterAll(async () => {
  await spine.stop();
  server.close();
  server.closeAllConnections();
  await other.stop();
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const event = (choice: object) =>
  `data: ${JSON.stringify({ id: 'up', object: 'chat.completion.chunk', choices: [{ index: 0, ...choice }] })}\n\n`;
const word = event({ delta: { content: WORD } });
const beginStream = (response: ServerResponse) => response.writeHead(200, { 'content-type': 'text/event-stream' });
const beginWhole = (response: ServerResponse) => response.writeHead(200, { 'content-type': 'application/json' });
/** Begins with the first, then says the second again and again until the gateway hangs up. */
const goOn = (response: ServerResponse, first: string, bytes: string) => {
  response.write(first);
  const timer = setInterval(() => response.write(bytes), 20);
  response.on('close', () => clearInterval(timer));
};

interface Told {
  readonly choices: readonly { readonly finish_reason: string; readonly message: { readonly content: string } }[];
  readonly usage: { readonly cost: number; readonly estimated?: boolean };
  readonly error?: { readonly type: string; readonly message: string };
  readonly tollgate?: { readonly note: { readonly type: string; readonly message: string } };
}

async function call(stream: boolean, headers: Record<string, string> = {}) {
  const response = await spine.post(
    '/chat/completions',
    ask('hello', { model: 'test/long', max_tokens: 4_000, stream }),
    headers,
  );
  const text = await response.text();
  const generation = (await spine.generation(response.headers.get('x-generation-id'))) as Generation & {
    readonly outcome: string;
    readonly finish_reason: string;
  };
  return { response, text, generation };
}

/** Share of the calls that did not fail, by what is held against the provider. */
async function uptime(of = 'Long'): Promise<number | null> {
  const { data } = (await (await spine.get('/providers')).json()) as {
    data: { name: string; uptime: number | null }[];
  };
  return data.find(({ name }) => name === of)!.uptime;
}

/** Claims that were held against the provider so far. */
async function implausible(): Promise<number> {
  const { data } = (await (await spine.get('/models/test/long/endpoints')).json()) as {
    readonly data: { readonly endpoints: readonly { readonly flags: Readonly<Record<string, number>> }[] };
  };
  return data.endpoints[0]!.flags['usage_implausible'] ?? 0;
}

test('a stream that the clock ends costs what came, and whoever reads fast is told why in its last frame', async () => {
  answer = (response) => goOn(beginStream(response), word, word);
  const before = await spine.balance();
  const { response, text, generation } = await call(true);
  expect(response.status).toBe(200);
  const frames = events(text) as Told[];
  const words = text.split(WORD).length - 1;
  const last = frames.at(-1)!;
  expect(last).toMatchObject({
    choices: [{ delta: {}, finish_reason: 'length' }],
    error: {
      type: 'reply_cut',
      code: 500,
      message: `The reply was cut: the call took longer than ${CALL_S} s. The part that arrived is charged`,
    },
    usage: { completion_tokens: 2 * words, estimated: true },
  });
  expect(generation).toMatchObject({
    state: 'settled',
    outcome: 'cut',
    finish_reason: 'timeout',
    estimated: true,
    cancelled: false,
    tokens_completion: 2 * words,
    flags: [],
  });
  const paid = before.available - (await spine.balance()).available;
  expect(paid).toBeGreaterThanOrEqual(BigInt(4 * words));
  expect(last.usage.cost).toBe(Number(paid) / 1e6);
  expect(await uptime()).not.toBe(0);
});

test('a whole reply that the clock ends is what came of it, charged, with the reason beside it', async () => {
  answer = (response) => goOn(beginWhole(response), '{"choices":[{"message":{"content":"', WORD);
  const { response, text, generation } = await call(false);
  expect(response.status).toBe(200);
  const reply = JSON.parse(text) as Told;
  expect(reply.choices).toHaveLength(1);
  expect(reply.choices[0]).toMatchObject({
    finish_reason: 'length',
    message: { content: expect.stringContaining(WORD) as string },
  });
  expect(reply.tollgate!.note).toMatchObject({
    type: 'reply_cut',
    message: expect.stringContaining(`longer than ${CALL_S} s`) as string,
  });
  expect(generation).toMatchObject({ outcome: 'cut', finish_reason: 'timeout', estimated: true });
  expect(generation.cost_micro_usdc).toBeGreaterThan(0);
  expect(Number(response.headers.get('x-cost-usd'))).toBe(generation.cost_micro_usdc / 1e6);
});

test('a stream with much beside each word is no longer than its words: it is complete, and paid', async () => {
  answer = (response) => {
    beginStream(response);
    for (let i = 0; i < 100; i++)
      response.write(event({ delta: { content: WORD }, logprobs: { content: [{ padding: 'x'.repeat(1_600) }] } }));
    response.end(
      `${event({ delta: {}, finish_reason: 'stop' })}data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":200}}\n\ndata: [DONE]\n\n`,
    );
  };
  const { text, generation } = await call(true);
  expect(events(text).at(-1)).toBe('[DONE]');
  expect(generation).toMatchObject({ outcome: 'complete', tokens_completion: 200, cost_micro_usdc: 405 });
});

test('a stream that goes on without a word after its words costs the words', async () => {
  answer = (response) => goOn(beginStream(response), word, ': nothing\n\n'.repeat(8_000));
  const { text, generation } = await call(true);
  expect(text).toContain(WORD);
  expect(events(text).at(-1)).toMatchObject({
    error: { type: 'reply_cut', message: expect.stringContaining('in addition to its output') as string },
  });
  expect(generation).toMatchObject({
    outcome: 'cut',
    finish_reason: 'too_large',
    tokens_completion: 2,
    estimated: true,
  });
});

const PADDING = 'x'.repeat(2 * REPLY_BYTES_MAX);
test.each([
  [
    'as it is measured',
    `"choices":[{"message":{"content":"${WORD}"},"logprobs":"${PADDING}"`,
    { completion_tokens: 2, estimated: true },
  ],
  [
    'as its provider says before',
    `"usage":{"prompt_tokens":5,"completion_tokens":9},"choices":[{"message":{"content":"${WORD}"},"logprobs":"${PADDING}"`,
    { completion_tokens: 9 },
  ],
])('a whole reply of more bytes than the gateway takes costs what it says, %s', async (_name, begin, usage) => {
  answer = (response) => goOn(beginWhole(response), `{${begin}`, 'x');
  const { response, text, generation } = await call(false);
  expect(response.status).toBe(200);
  expect(JSON.parse(text)).toMatchObject({
    choices: [{ finish_reason: 'length', message: { content: WORD } }],
    usage,
    tollgate: {
      note: {
        type: 'reply_cut',
        message: `The reply was cut: its reply is larger than ${REPLY_BYTES_MAX} bytes. The part that arrived is charged`,
      },
    },
  });
  expect(generation).toMatchObject({ outcome: 'cut', finish_reason: 'too_large' });
  expect(generation.cost_micro_usdc).toBeGreaterThan(0);
});

const MUTE = { model: 'test/mute', provider: { order: ['Mute', 'Speaks'] } };
const NOTHING_SAID: readonly (readonly [string, boolean, string])[] = [
  ['a stream of comments', true, ': nothing\n\n'.repeat(4_000)],
  ['a stream of one line of spaces', true, ' '.repeat(1024 * 1024 + 1)],
];
test('a whole reply without words that is too large costs what its provider took, and nobody else is asked', async () => {
  answer = (response) => beginWhole(response).end(`{"padding":"${'x'.repeat(2 * REPLY_BYTES_MAX)}"}`);
  const before = await spine.balance();
  const response = await spine.post('/chat/completions', ask('hello', MUTE));
  expect([response.status, response.headers.get('x-provider')]).toEqual([422, 'Mute']);
  await response.text();
  await spine.quiet();
  const paid = before.available - (await spine.balance()).available;
  expect(paid).toBeGreaterThan(0n);
  expect(Number(response.headers.get('x-cost-usd'))).toBe(Number(paid) / 1e6);
});

test.each(NOTHING_SAID)('%s that is too large: another provider serves', async (_name, stream, bytes) => {
  answer = (response) => (stream ? beginStream(response) : beginWhole(response)).end(bytes);
  const response = await spine.post('/chat/completions', ask('hello', { ...MUTE, stream }));
  expect([response.status, response.headers.get('x-provider')]).toEqual([200, 'Speaks']);
  await response.text();
  await spine.quiet();
  // Once it has failed it rests for the account.
  expect(await uptime('Mute')).toBe(0);
  skew += COOLED_DOWN_MS;
});

test('a stream that begins, and then says nothing until it is too large, is the failure of its provider', async () => {
  const begin = event({ delta: { role: 'assistant', content: '' } });
  answer = (response) => {
    beginStream(response).write(begin);
    setTimeout(() => response.end(': nothing\n\n'.repeat(4_000)), 100);
  };
  const response = await spine.post('/chat/completions', ask('hello', { ...MUTE, stream: true }));
  await response.text();
  // Nothing of an answer was given out, so the other provider was asked.
  await spine.quiet();
  expect(await spine.generation(response.headers.get('x-generation-id'))).toMatchObject({
    provider_name: 'Speaks',
    failed_attempts: [{ provider: 'Mute', error: `its stream had no output in ${REPLY_BYTES_MAX} bytes` }],
  });
  skew += COOLED_DOWN_MS;
});

test('a cut reply is kept for who sends the request again, and charged once', async () => {
  answer = (response) => goOn(beginStream(response), word, word);
  const key = { 'idempotency-key': 'cut-once' };
  const first = await call(true, key);
  const before = await spine.balance();
  const again = await call(true, key);
  expect(again.text).toBe(first.text);
  expect(again.response.headers.get('idempotent-replayed')).toBe('true');
  expect(await spine.balance()).toEqual(before);
});

test('after all of these nothing is held against the provider, and the next call is served', async () => {
  answer = (response) =>
    beginWhole(response).end(
      JSON.stringify({
        choices: [{ message: { content: 'ok' }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 1, completion_tokens: 1 },
      }),
    );
  expect((await call(false)).generation).toMatchObject({ outcome: 'complete' });
  expect(await uptime()).toBe(1);
});

test.each([
  ['the prompt alone', { prompt_tokens: 10, completion_tokens: 0, total_tokens: 10 }, 10],
  ['zeros', { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }, null],
  ['the first token', { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 }, 10],
])('a claim of %s at the beginning of a stream does not make the rest of it free', async (_name, usage, prompt) => {
  const withUsage = `data: ${JSON.stringify({ id: 'up', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content: WORD } }], usage })}\n\n`;
  answer = (response) => goOn(beginStream(response), withUsage + word.repeat(3), word);
  const { text, generation } = await call(true);
  const words = text.split(WORD).length - 1;
  expect(words).toBeGreaterThan(3);
  expect(generation).toMatchObject({
    outcome: 'cut',
    estimated: true,
    tokens_completion: words * 2,
    flags: prompt === null ? ['usage_implausible'] : [],
    claims: prompt === null ? [{ meter: 'completion', claimed: 0, least: words * 2 }] : [],
  });
  if (prompt !== null) expect(generation.tokens_prompt).toBe(prompt);
  else expect(generation.tokens_prompt).toBeGreaterThan(0);
  expect(generation.cost_micro_usdc).toBeGreaterThanOrEqual(words * 2);
});

test('a claim of nothing, of a stream that is cut, is counted for its provider', async () => {
  expect(await implausible()).toBe(1);
});

test('zeros before the end are not held against the provider of a client that left', async () => {
  const usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  const withUsage = `data: ${JSON.stringify({ id: 'up', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content: WORD } }], usage })}\n\n`;
  answer = (response) => goOn(beginStream(response), withUsage, withUsage);
  const before = await implausible();
  const leaving = new AbortController();
  const response = await spine.post(
    '/chat/completions',
    ask('hello', { model: 'test/long', max_tokens: 4_000, stream: true }),
    {},
    leaving.signal,
  );
  for await (const part of response.body!) if (Buffer.from(part).includes(WORD)) break;
  leaving.abort();
  await spine.quiet();
  const generation = await spine.generation(response.headers.get('x-generation-id'));
  expect(generation).toMatchObject({ outcome: 'cut', cancelled: true, estimated: true, flags: [] });
  expect(generation.cost_micro_usdc).toBeGreaterThan(0);
  expect(await implausible()).toBe(before);
});

test('a running claim of an honest provider is what is charged', async () => {
  let said = 0;
  const running = () => {
    said += 3;
    const usage = { prompt_tokens: 7, completion_tokens: said, total_tokens: 7 + said };
    return `data: ${JSON.stringify({ id: 'up', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content: WORD } }], usage })}\n\n`;
  };
  answer = (response) => {
    beginStream(response);
    const timer = setInterval(() => response.write(running()), 20);
    response.on('close', () => clearInterval(timer));
  };
  const { text, generation } = await call(true);
  const words = text.split(WORD).length - 1;
  expect(generation).toMatchObject({
    outcome: 'cut',
    estimated: false,
    tokens_prompt: 7,
    tokens_completion: words * 3,
  });
});
