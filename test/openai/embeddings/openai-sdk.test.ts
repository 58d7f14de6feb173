import OpenAI from 'openai';
import { beforeAll, expect, test } from 'vitest';
import { embed } from '../../../src/program/demo/embeddings.ts';
import { createEmbeddingsReader, type EmbeddingsResult } from '../../../src/openai/embeddings/embeddings-reader.ts';
import { EmbeddingForms } from '../../../src/openai/embeddings/embedding-forms.ts';
import { dialIn, offeredModel } from '../../support/dial-in.ts';
import { UNHURRIED } from '../../support/spine.ts';
import { startTranscripts } from '../translated/support/transcript-upstream.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

// Embeddings by OpenAI's SDK as it is on npm, and what each reply costs.

const MODEL = 'acme/vectors';
let client: OpenAI;
const upstream = ofFile(startTranscripts, (one) => one.stop());
const spine = spineOfFile(() => ({
  toml: `${UNHURRIED}
[upstream]
cooldown_ms = 0
[[models]]
name = "${MODEL}"
display_name = "Acme: Vectors"
provider_name = "Acme"
context_length = 1000
output_modalities = ["embeddings"]
[models.pricing]
prompt = 1
completion = 0
[models.params]
model = "upstream-vectors"
api_base = "${upstream.url}"
api_key = "k"
`,
}));
beforeAll(() => {
  client = new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 });
});

const near = (one: readonly number[], other: readonly number[]) =>
  one.reduce((sum, value, at) => sum + value * other[at]!, 0);
const asked = () => upstream.asked.at(-1)!;

test('texts become vectors, by base64 that the SDK asks for by itself', async () => {
  upstream.answer = (body) => ({ body: embed(body) });
  const { data: reply, response } = await client.embeddings
    .create({ model: MODEL, input: ['the red road', 'a road so red', 'fish'] })
    .withResponse();
  expect(asked()).toEqual({
    model: 'upstream-vectors',
    input: ['the red road', 'a road so red', 'fish'],
    encoding_format: 'base64',
  });
  const [first, second, third] = reply.data.map(({ embedding }) => embedding) as [number[], number[], number[]];
  expect(first).toHaveLength(64);
  expect(near(first, second)).toBeGreaterThan(near(first, third));
  expect(reply).toMatchObject({ model: MODEL, usage: { prompt_tokens: 8, total_tokens: 8, cost: 0.000008 } });
  expect(response.headers.get('x-cost-usd')).toBe('0.000008');
  expect(await spine.generation(response.headers.get('x-generation-id'))).toMatchObject({
    state: 'settled',
    cost_micro_usdc: 8,
    tokens_prompt: 8,
  });
});

const inBase64 = (...numbers: number[]) => Buffer.from(Float32Array.from(numbers).buffer).toString('base64');
const NUMBERS = [0.5, -0.25, 1, 0];
const TEXT = inBase64(...NUMBERS);
const vectors = (...embeddings: unknown[]) => ({
  object: 'list',
  data: embeddings.map((embedding, index) => ({ object: 'embedding', index, embedding })),
  usage: { prompt_tokens: embeddings.length, total_tokens: embeddings.length },
});
const embeddingsOf = async (reply: Response) =>
  ((await reply.json()) as { data: { embedding: unknown }[] }).data.map(({ embedding }) => embedding);

// Versions 5 and 6 of OpenAI's SDK decode whatever comes as base64, and make zeros of numbers.
test.each([
  ['base64', [TEXT, TEXT]],
  ['float', [NUMBERS, NUMBERS]],
  [undefined, [NUMBERS, NUMBERS]],
  [null, [NUMBERS, NUMBERS]],
])('asked for %s, vectors come so, whatever their provider writes', async (format, expected) => {
  for (const note of ['', 'x'.repeat(8_000)]) {
    upstream.answer = () => ({ body: { ...vectors(NUMBERS, TEXT), note } });
    const reply = await spine.post('/embeddings', { model: MODEL, input: ['a', 'b'], encoding_format: format });
    expect(reply.status).toBe(200);
    expect(await embeddingsOf(reply)).toEqual(expected);
  }
});

test('the SDK reads numbers, though it asked for base64', async () => {
  upstream.answer = () => ({ body: vectors(NUMBERS) });
  const { data } = await client.embeddings.create({ model: MODEL, input: 'x' });
  expect(data[0]!.embedding).toEqual(NUMBERS);
});

test('a form that another field asks for stays', async () => {
  upstream.answer = () => ({ body: vectors(TEXT) });
  const reply = await spine.post('/embeddings', { model: MODEL, input: 'a', embedding_type: 'base64' });
  expect(await embeddingsOf(reply)).toEqual([TEXT]);
});

test('a large reply that passes as it comes has the form that was asked for', () => {
  const given = Buffer.from(
    JSON.stringify({ ...vectors(...Array.from({ length: 2_000 }, () => NUMBERS)), model: 'x' }),
  );
  const reader = createEmbeddingsReader({
    size: { each: Array.from({ length: 2_000 }, () => 1), counted: false },
    form: 'base64',
    tokensMax: 2_000,
    replyBytesMax: 10_000,
    passesAs: MODEL,
  });
  reader.head(200, { 'content-type': 'application/json' });
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < given.length; at += 1_000) {
    const passed = reader.data([given.subarray(at, at + 1_000)]);
    if (passed !== null) pieces.push(passed);
  }
  expect(pieces.length).toBeGreaterThan(10);
  const { bytes } = reader.end().result as EmbeddingsResult;
  const { data } = JSON.parse(Buffer.concat([...pieces, bytes]).toString()) as { data: { embedding: unknown }[] };
  expect(new Set(data.map(({ embedding }) => embedding))).toEqual(new Set([TEXT]));
  expect(data).toHaveLength(2_000);
});

test('a reply that arrives in pieces of any size has its vectors in the form that was asked for', () => {
  const given = Buffer.from(JSON.stringify(vectors(NUMBERS, TEXT, [[1], [2]])).replaceAll('":', '" : '));
  for (const form of ['base64', 'float'] as const)
    for (let size = 1; size <= given.length; size++) {
      const forms = new EmbeddingForms(form);
      const pieces: Buffer[] = [];
      for (let at = 0; at < given.length; at += size) pieces.push(forms.push(given.subarray(at, at + size)));
      const { data } = JSON.parse(Buffer.concat([...pieces, forms.rest]).toString()) as { data: object[] };
      const one = form === 'float' ? NUMBERS : TEXT;
      expect(data).toMatchObject([{ embedding: one }, { embedding: one }, { embedding: [[1], [2]] }]);
      expect([forms.count, forms.empty]).toEqual([3, 0]);
    }
});

test.each([
  [[1, 2, 3], 2],
  [[[1, 2, 3], [4]], 3],
])('tokens %j are taken', async (input, cost) => {
  upstream.answer = (body) => ({ body: embed(body) });
  const { usage } = await client.embeddings.create({
    model: MODEL,
    input,
    encoding_format: 'float',
  });
  expect(usage.prompt_tokens).toBe(cost);
});

test('a large reply passes byte for byte, but for its model and usage', async () => {
  const inputs = Array.from({ length: 500 }, (_, index) => `text ${index}`);
  upstream.answer = (body) => ({ body: embed(body) });
  const { data, usage } = await client.embeddings.create({ model: MODEL, input: inputs, encoding_format: 'float' });
  const expected = embed({ input: inputs }) as { data: object[]; usage: object };
  expect(data).toEqual(expected.data);
  expect(usage).toMatchObject(expected.usage);
});

test.each([undefined, { prompt_tokens: 0, total_tokens: 0 }])(
  'usage %j is none: it is measured, and says so',
  async (usage) => {
    upstream.answer = (body) => ({ body: { ...embed(body), usage, model: undefined } });
    const reply = await client.embeddings.create({ model: MODEL, input: 'x'.repeat(40) });
    expect(reply).toMatchObject({ model: MODEL, usage: { prompt_tokens: 10, estimated: true, cost: 0.00001 } });
  },
);

test('a claim beyond what can be is cut to the lock', async () => {
  upstream.answer = (body) => ({ body: { ...embed(body), usage: { prompt_tokens: 1e6, total_tokens: 1e6 } } });
  const { usage } = await client.embeddings.create({ model: MODEL, input: 'abcd' });
  expect(usage.prompt_tokens).toBe(20);
});

test.each([
  ['an error in place of a reply', { body: { error: { message: 'no' } } }],
  ['no data', { body: { object: 'list' } }],
  ['half a reply', { cut: '{"object":"list","data":[{"index":0,"embedding":[1,' }],
  ['a failure', { status: 500, body: { error: { message: 'boom' } } }],
])('%s is free', async (_what, transcript) => {
  upstream.answer = () => transcript;
  const before = await spine.balance();
  await expect(client.embeddings.create({ model: MODEL, input: 'x' })).rejects.toThrow(/Provider Acme failed/);
  await spine.quiet();
  expect(await spine.balance()).toEqual(before);
});

test.each([
  ['no vector', 0, 'base64', 64],
  ['one vector too few', 2, 'float', 2],
  ['one vector too few, of a large reply', 2, 'float', 64],
  ['one vector too many, of a large reply', 4, 'float', 64],
])('%s for three texts is a failure of the provider, and free', async (_what, count, format, dimensions) => {
  const texts = ['a', 'b', 'c', 'd'].slice(0, count);
  upstream.answer = () => {
    const reply = embed({ input: texts.length === 0 ? 'x' : texts, encoding_format: format, dimensions });
    return { body: count === 0 ? { ...reply, data: [] } : reply };
  };
  const before = await spine.balance();
  await expect(client.embeddings.create({ model: MODEL, input: ['a', 'b', 'c'] })).rejects.toThrow(
    /Provider Acme failed/,
  );
  await spine.quiet();
  expect(await spine.balance()).toEqual(before);
});

const USELESS = [[], '', null, [[]], {}, 0, [null, 1], ['0.5'], [1, [2]], 'no base64', '[1]'];
test.each(USELESS)('the vector %j is a failure of the provider, and free', async (embedding) => {
  const before = await spine.balance();
  // A reply of up to 4 KiB is parsed, and a larger one is only searched.
  for (const length of [0, 8_000]) {
    const data = [
      { index: 0, embedding: [0.5] },
      { index: 1, embedding },
    ];
    const usage = { prompt_tokens: 2, total_tokens: 2 };
    upstream.answer = () => ({ body: { object: 'list', data, note: 'x'.repeat(length), usage } });
    await expect(client.embeddings.create({ model: MODEL, input: ['a', 'b'] })).rejects.toThrow(/Provider Acme failed/);
  }
  await spine.quiet();
  expect(await spine.balance()).toEqual(before);
});

test.each([
  ['base64', [1, 1e39]],
  ['float', 'AAAA'],
  ['float', inBase64(NaN)],
  ['float', inBase64(1, Infinity)],
])('asked for %s, %j is a failure of the provider', async (format, embedding) => {
  upstream.answer = () => ({ body: vectors(embedding) });
  const reply = await spine.post('/embeddings', { model: MODEL, input: 'a', encoding_format: format });
  expect(reply.status).toBe(500);
});

test('vectors of other forms are not empty', async () => {
  for (const embedding of [[0], [[0.5], [1]], { indices: [1], values: [0.5] }]) {
    const usage = { prompt_tokens: 1, total_tokens: 1 };
    upstream.answer = () => ({ body: { object: 'list', data: [{ index: 0, embedding }], usage } });
    const reply = await spine.post('/embeddings', { model: MODEL, input: 'a' });
    expect(await reply.json()).toMatchObject({ data: [{ embedding }] });
  }
});

test('a provider that dialled in is paid two tokens beyond the bytes of each input, and flagged for more', async () => {
  const proxy = await dialIn({
    router: spine.origin,
    services: offeredModel({ url: upstream.url, name: 'far/vectors', provider: 'Far' })
      .replace('context_length', 'output_modalities = ["embeddings"]\ncontext_length')
      .replace(/max_output_tokens.*|completion = 2/g, (line) => (line.startsWith('c') ? 'completion = 0' : '')),
  });
  try {
    const input = Array.from({ length: 100 }, () => 'x');
    const claim = async (prompt_tokens: number) => {
      upstream.answer = (body) => ({ body: { ...embed(body), usage: { prompt_tokens, total_tokens: prompt_tokens } } });
      const reply = await spine.post('/embeddings', { model: 'far/vectors', input });
      expect(reply.status).toBe(200);
      return spine.generation(reply.headers.get('x-generation-id'));
    };
    expect(await claim(300)).toMatchObject({ tokens_prompt: 300, cost_micro_usdc: 300, flags: [] });
    expect(await claim(1_700)).toMatchObject({
      tokens_prompt: 300,
      cost_micro_usdc: 300,
      flags: ['usage_implausible'],
      claims: [{ meter: 'prompt', claimed: 1_700, most: 300 }],
    });
  } finally {
    await proxy.close();
  }
});

test('each door names the other where the model is for that one', async () => {
  await expect(client.embeddings.create({ model: 'test/model', input: 'x' })).rejects.toThrow(
    /422 test\/model makes no embeddings. Call it at \/chat\/completions/,
  );
  await expect(
    client.chat.completions.create({ model: MODEL, messages: [{ role: 'user', content: 'x' }] }),
  ).rejects.toThrow(/422 acme\/vectors makes embeddings. Call it at \/embeddings/);
});

test.each([
  [{ input: [] }, /input must be a string, an array of 1 to 2048 strings/],
  [{ input: Array(2049).fill('x') }, /input must be a string, an array of 1 to 2048 strings/],
  [{ input: ['x', 1] }, /input must be/],
  [{ input: [null] }, /input\[0\] must be a string, a token/],
  [{ input: 'x', encoding_format: 'int8' }, /encoding_format must be float or base64/],
  [{}, /input is required/],
])('a request that is wrong is refused by name', async (body, words) => {
  const reply = await spine.post('/embeddings', { model: MODEL, ...body });
  expect(reply.status).toBe(400);
  expect(((await reply.json()) as { error: { message: string } }).error.message).toMatch(words);
});

test('fields of a chat request are not embedded', async () => {
  upstream.answer = (body) => ({ body: embed(body) });
  const messages = [{ role: 'user', content: 'unpriced' }];
  const unpriced = { messages, MESSAGES: messages, texts: ['unpriced'], instruction: 'unpriced '.repeat(40) };
  const reply = await spine.post('/embeddings', { model: MODEL, input: 'x', ...unpriced, input_type: 'query' });
  expect(reply.headers.get('x-tollgate-dropped')).toBe('messages, MESSAGES, texts, instruction');
  expect(asked()).toEqual({ model: 'upstream-vectors', input: 'x', input_type: 'query' });
});

test('a request that comes again with its key is answered the same and charged once', async () => {
  upstream.answer = (body) => ({ body: embed(body) });
  const before = await spine.balance();
  const send = () => spine.post('/embeddings', { model: MODEL, input: 'again' }, { 'idempotency-key': 'one' });
  const [first, second] = [await (await send()).text(), await (await send()).text()];
  expect(second).toBe(first);
  await spine.quiet();
  expect(before.available - (await spine.balance()).available).toBe(2n);
});

test('a quote is used by one call, which may cost no more', async () => {
  upstream.answer = (body) => ({ body: embed(body) });
  const quoted = await spine.post('/quotes', { primitive: 'model', model: MODEL, input: 'abcd' });
  const answer = (await quoted.json()) as { readonly quote_id: string };
  // A token for each byte, and 16 around the input.
  expect(answer).toMatchObject({ valid: true, exact: false, price_micro_usdc: 20 });
  const send = async (input: string, id = answer.quote_id) => {
    const reply = await spine.post('/embeddings', { model: MODEL, input }, { 'x-quote-id': id });
    return `${reply.status} ${await reply.text()}`;
  };
  const before = await spine.balance();
  expect(await send('abcde')).toMatch(/^409.*may cost more/);
  expect(await send('abcd')).toMatch(/^200/);
  expect(await send('abcd')).toMatch(/^409.*already used/);
  expect(await send('abcd', 'qt_unknown')).toMatch(/^404.*Quote not found/);
  await spine.quiet();
  expect(before.available - (await spine.balance()).available).toBe(1n);
});

test('a request for a quote of embeddings is checked as the call is', async () => {
  const quote = async (body: object) => {
    const reply = await spine.post('/quotes', { primitive: 'model', model: MODEL, ...body });
    return `${reply.status} ${await reply.text()}`;
  };
  expect(await quote({ input: ['x', 1] })).toMatch(/^400.*input must be/);
  expect(await quote({ messages: [{ role: 'user', content: 'x' }] })).toMatch(/"valid":false.*Call it at \/embeddings/);
});

test('without money nobody is asked', async () => {
  const { key } = await spine.tenant('poor-vectors', '0.000001');
  const count = upstream.asked.length;
  const reply = await spine.post(
    '/embeddings',
    { model: MODEL, input: 'some text' },
    { authorization: `Bearer ${key}` },
  );
  expect(reply.status).toBe(402);
  expect(upstream.asked.length).toBe(count);
});

test('a frozen account gets none, and nothing is sent', async () => {
  const { account, key } = await spine.tenant('frozen', '1');
  const become = async (state: 'freeze' | 'unfreeze') => {
    const path = `/admin/v1/accounts/${encodeURIComponent(account)}/${state}`;
    const headers = { authorization: `Bearer ${spine.adminKey}`, 'content-type': 'application/json' };
    const answer = await fetch(spine.origin + path, { method: 'POST', headers, body: '{"reason":"a test"}' });
    expect(answer.status).toBe(200);
  };
  upstream.answer = (body) => ({ body: embed(body) });
  const own = new OpenAI({ baseURL: spine.url, apiKey: key, maxRetries: 0 });
  const ask = () => own.embeddings.create({ model: MODEL, input: 'x' });
  await become('freeze');
  const before = upstream.asked.length;
  await expect(ask()).rejects.toMatchObject({
    status: 403,
    message: expect.stringContaining('This account is frozen by the operator of this gateway'),
  });
  expect(upstream.asked.length).toBe(before);
  await become('unfreeze');
  expect((await ask()).data).toHaveLength(1);
});
