import OpenAI from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { startStrictOpenAi, type StrictModel, type StrictOpenAi } from '../support/strict-openai.ts';

// Blocks with nothing but what a block must have work with services that refuse what OpenAI refuses.

const BOTH = ['max_tokens', 'max_completion_tokens'] as const;
const MODELS: Readonly<Record<string, StrictModel>> = {
  chat: { takes: BOTH, outputMax: 4096 },
  reasoner: { takes: ['max_completion_tokens'], outputMax: 100_000, reasons: true },
  'small-reasoner': { takes: ['max_completion_tokens'], outputMax: 4096, reasons: true },
  old: { takes: ['max_tokens'], outputMax: 4096 },
  uncapped: { takes: [], outputMax: 4096 },
  narrow: { takes: BOTH, outputMax: 8192, contextLength: 8192 },
  deep: {
    takes: ['max_tokens'],
    outputMax: 8192,
    tooLarge: (_, __, most) => `Invalid max_tokens value, the valid range of max_tokens is [1, ${most}]`,
  },
  fast: {
    takes: BOTH,
    outputMax: 8192,
    tooLarge: (name, _, most) =>
      `\`${name}\` must be less than or equal to \`${most}\`, the maximum value for \`${name}\` is less than the \`context_window\` for this model`,
  },
  careful: {
    takes: BOTH,
    outputMax: 64_000,
    tooLarge: (name, given, most) =>
      `${name}: ${given} > ${most}, which is the maximum allowed number of output tokens for claude-3-7-sonnet-20250219`,
  },
};

let upstream: StrictOpenAi;
let spine: Spine;
let client: OpenAI;
beforeAll(async () => {
  upstream = await startStrictOpenAi(MODELS);
  const block = (name: string, service = name) =>
    `\n[[models]]\nname = "strict/${service}"\npricing = { prompt = 1, completion = 2 }\nparams = { model = "${name}", api_base = "${upstream.url}" }\n`;
  spine = await startSpine({
    toml: `${UNHURRIED}${Object.keys(MODELS)
      .map((name) => block(name))
      .join('')}${block('reasoner', 'learnt-once')}${block('chat', 'learnt-bound')}`,
  });
  client = new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 });
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  await upstream.stop();
});

const messages = [{ role: 'user' as const, content: 'hello there' }];
const tools = [
  { type: 'function' as const, function: { name: 'look', parameters: { type: 'object', properties: {} } } },
];
/** The caps that the service was asked with since. */
const since = (seen: number) =>
  upstream.asked.slice(seen).map(({ body: { max_tokens, max_completion_tokens }, status }) => ({
    status,
    ...(max_tokens === undefined ? {} : { max_tokens }),
    ...(max_completion_tokens === undefined ? {} : { max_completion_tokens }),
  }));
const flagsOf = async (id: string) => (await spine.generation(id)).flags;

test.each(
  Object.keys(MODELS).flatMap(
    (name) =>
      [
        [name, {}],
        [name, { max_tokens: 6 }],
        [name, { max_completion_tokens: 6 }],
      ] as const,
  ),
)('%s with %j: plain, as a stream, and with tools', async (name, cap) => {
  const model = `strict/${name}`;
  const words = 'max_tokens' in cap || 'max_completion_tokens' in cap ? 6 : 12;
  const streamed = async () => {
    let text = '';
    for await (const chunk of await client.chat.completions.create({ model, messages, stream: true, ...cap }))
      text += chunk.choices[0]?.delta.content ?? '';
    return text;
  };
  const [plain, text, called] = await Promise.all([
    client.chat.completions.create({ model, messages, ...cap }),
    streamed(),
    client.chat.completions.create({ model, messages, tools, ...cap }),
  ]);
  expect(plain.usage).toMatchObject({ completion_tokens: words });
  expect(plain.choices[0]!.message.content).toContain('word0 word1');
  expect(text).toContain('word0 word1');
  expect(called.choices[0]!.message.tool_calls).toMatchObject([{ function: { name: 'look', arguments: '{"a":1}' } }]);
  await spine.quiet();
  expect(await flagsOf(plain.id)).toEqual([]);
});

test('a call without a cap sends none, to a model whose bound nobody knows', async () => {
  const seen = upstream.asked.length;
  await client.chat.completions.create({ model: 'strict/learnt-once', messages });
  expect(since(seen)).toEqual([{ status: 200 }]);
});

test('the name that is refused is asked with once, and the lock is charged by use', async () => {
  const seen = upstream.asked.length;
  for (let call = 0; call < 2; call++) {
    const reply = await client.chat.completions.create({ model: 'strict/learnt-once', messages, max_tokens: 5 });
    expect(reply.usage).toMatchObject({ completion_tokens: 5 });
    await spine.quiet();
    expect(await spine.generation(reply.id)).toMatchObject({
      cost_micro_usdc: reply.usage!.prompt_tokens + 2 * 5,
      flags: [],
    });
  }
  expect(since(seen)).toEqual([
    { status: 400, max_tokens: 5 },
    { status: 200, max_completion_tokens: 5 },
    { status: 200, max_completion_tokens: 5 },
  ]);
});

test('a cap above the bound is asked for with the bound, told in a header, and later calls know it', async () => {
  const seen = upstream.asked.length;
  for (const stream of [false, true, false]) {
    const { response } = await client.chat.completions
      .create({ model: 'strict/learnt-bound', messages, max_tokens: 32_000, stream })
      .withResponse();
    expect(response.status).toBe(200);
    expect(response.headers.get('x-max-tokens')).toBe('4096');
  }
  expect(since(seen)).toEqual([
    { status: 400, max_tokens: 32_000 },
    { status: 200, max_tokens: 4096 },
    { status: 200, max_tokens: 4096 },
    { status: 200, max_tokens: 4096 },
  ]);
  // What is known is sent where nothing is asked for, and then locks no more than it.
  const { data, response } = await client.chat.completions
    .create({ model: 'strict/learnt-bound', messages })
    .withResponse();
  expect(since(seen).at(-1)).toEqual({ status: 200, max_tokens: 4096 });
  expect(response.headers.get('x-max-tokens')).toBeNull();
  await spine.quiet();
  const lock = (await spine.generation(data.id)).entries.find(({ type }) => type === 'lock')!.amount_micro_usdc;
  expect(lock).toBeLessThan(2 * 4096 + 500);
});

test('what is refused for another reason is refused to the consumer, in its words, and asked once', async () => {
  const seen = upstream.asked.length;
  const failure = await client.chat.completions
    .create({ model: 'strict/reasoner', messages, max_completion_tokens: 5, temperature: 0.2 })
    .catch((error: unknown) => error);
  expect(failure).toMatchObject({
    status: 400,
    message: expect.stringContaining("'temperature' is not supported with this model") as string,
  });
  expect(upstream.asked.length - seen).toBe(1);
});

test('a service that takes no cap is cut at it, and paid for what it said', async () => {
  for (const stream of [false, true]) {
    const response = await spine.post('/chat/completions', {
      model: 'strict/uncapped',
      messages,
      max_tokens: 3,
      stream,
    });
    const text = await response.text();
    const id = response.headers.get('x-generation-id')!;
    expect(text).toContain('"finish_reason":"length"');
    expect(text).not.toContain('"error"');
    if (stream) expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
    await spine.quiet();
    expect(await spine.generation(id)).toMatchObject({ tokens_completion: 3, flags: [], state: 'settled' });
  }
});

test('the service is blamed for none of it', async () => {
  for (const name of Object.keys(MODELS)) {
    const { data } = (await (await spine.get(`/models/strict/${name}/endpoints`)).json()) as {
      data: { endpoints: { flags: object }[] };
    };
    expect(data.endpoints).toMatchObject([{ flags: {} }]);
  }
});

test('fields of another router never reach the service; a plugin is refused', async () => {
  const fields = {
    usage: { include: true },
    transforms: ['middle-out'],
    route: 'fallback',
    trace: {},
    preset: 'p',
    include_reasoning: true,
    plugins: [],
  };
  const seen = upstream.asked.length;
  const response = await spine.post('/chat/completions', {
    model: 'strict/chat',
    messages,
    ...fields,
    reasoning: { effort: 'low', exclude: false },
  });
  expect(response.status, await response.text()).toBe(200);
  expect(upstream.asked.slice(seen).map(({ body }) => body)).toEqual([
    { model: 'chat', messages, reasoning: { effort: 'low', exclude: false } },
    // The service has refused it.
    { model: 'chat', messages, reasoning_effort: 'low' },
  ]);
  expect(response.headers.get('x-tollgate-dropped')!.split(', ').toSorted()).toEqual([
    'include_reasoning',
    'plugins',
    'preset',
    'reasoning.exclude',
    'route',
    'trace',
    'transforms',
  ]);
  const refused = await spine.post('/chat/completions', { model: 'strict/chat', messages, plugins: [{ id: 'web' }] });
  expect([refused.status, await refused.json()]).toMatchObject([
    422,
    { error: { type: 'unprocessable', param: 'plugins[0]' } },
  ]);
  expect(upstream.asked.length - seen).toBe(2);
  const again = await spine.post('/chat/completions', {
    model: 'strict/chat',
    messages,
    reasoning: { effort: 'high' },
  });
  expect(again.status, await again.text()).toBe(200);
  expect(upstream.asked.slice(seen + 2).map(({ body }) => body)).toEqual([
    { model: 'chat', messages, reasoning_effort: 'high' },
  ]);
});
