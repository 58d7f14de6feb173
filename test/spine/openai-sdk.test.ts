import OpenAI from 'openai';
import { beforeAll, expect, test } from 'vitest';
import { MODEL, startSpine } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// The official client against a running gateway: what its users write must work as it does elsewhere.

let client: OpenAI;
const spine = spineOfFile(() => ({ toml: '[limits]\nrequests_per_minute = 100000\n[upstream]\ncooldown_ms = 0' }));
beforeAll(() => {
  client = new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 });
});

const ask = (content: string) => [{ role: 'user' as const, content }];

test('chat completion', async () => {
  const completion = await client.chat.completions.create({
    model: MODEL,
    messages: ask('hello !tokens:4'),
    max_tokens: 20,
  });
  expect(completion.object).toBe('chat.completion');
  expect(completion.model).toBe(MODEL);
  expect(completion.id).toMatch(/^gen-/);
  expect(completion.choices[0]).toMatchObject({ index: 0, finish_reason: 'stop', message: { role: 'assistant' } });
  expect(completion.usage).toMatchObject({ completion_tokens: 4, total_tokens: completion.usage!.prompt_tokens + 4 });
  expect((completion.usage as unknown as { cost: number }).cost).toBe((completion.usage!.prompt_tokens + 8) / 1e6);
});

test('streamed chat completion, with usage exactly once, in the chunk that finishes', async () => {
  const stream = await client.chat.completions.create({
    model: MODEL,
    messages: ask('hello !tokens:6'),
    max_tokens: 20,
    stream: true,
  });
  let text = '';
  const finishing = [];
  for await (const chunk of stream) {
    expect(chunk.model).toBe(MODEL);
    text += chunk.choices[0]?.delta.content ?? '';
    if (chunk.usage || chunk.choices[0]?.finish_reason) finishing.push(chunk);
  }
  expect(text).toBe('the toll is paid für jede ');
  expect(finishing).toHaveLength(1);
  expect(finishing[0]).toMatchObject({ choices: [{ finish_reason: 'stop' }], usage: { completion_tokens: 6 } });
});

test('several choices', async () => {
  const completion = await client.chat.completions.create({
    model: MODEL,
    messages: ask('hello !tokens:2'),
    max_tokens: 20,
    n: 3,
  });
  expect(completion.choices.map((choice) => choice.index)).toEqual([0, 1, 2]);
});

const weather: OpenAI.ChatCompletionTool = {
  type: 'function',
  function: {
    name: 'weather',
    description: 'The weather of a city',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};

test('tool calls', async () => {
  const completion = await client.chat.completions.create({
    model: MODEL,
    messages: ask('weather in Zürich?'),
    tools: [weather],
    tool_choice: 'required',
  });
  const [call] = completion.choices[0]!.message.tool_calls!;
  expect(completion.choices[0]!.finish_reason).toBe('tool_calls');
  expect(call).toMatchObject({ type: 'function', function: { name: 'weather' } });
});

test.each(['right', 'no-index', 'repeat-id'])('streamed tool calls whose deltas are %s add up', async (defect) => {
  const runner = client.chat.completions.stream({
    model: MODEL,
    messages: ask(`weather? !tools:${defect}`),
    tools: [weather],
    tool_choice: 'required',
  });
  const completion = await runner.finalChatCompletion();
  const [call, ...others] = completion.choices[0]!.message.tool_calls!;
  expect(others).toEqual([]);
  expect(call).toMatchObject({ type: 'function', function: { name: 'weather' } });
  if (call!.type === 'function') expect(JSON.parse(call!.function.arguments)).toEqual({ city: 'Zürich', days: 3 });
});

test.each([
  ['an https address', 'https://example.com/toll.png'],
  [
    'a data URL',
    'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  ],
])('an image by %s is priced per image', async (_name, url) => {
  const completion = await client.chat.completions.create({
    model: MODEL,
    max_tokens: 20,
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'what is it? !tokens:2' },
          { type: 'image_url', image_url: { url } },
        ],
      },
    ],
  });
  const { prompt_tokens, cost } = completion.usage as unknown as { prompt_tokens: number; cost: number };
  expect(cost).toBeCloseTo((prompt_tokens + 4 + 1000) / 1e6, 12);
});

test('a wrong key is an AuthenticationError', async () => {
  const stranger = new OpenAI({ baseURL: spine.url, apiKey: 'svc-sk-v2-nonsense', maxRetries: 0 });
  const failure = await stranger.chat.completions
    .create({ model: MODEL, messages: ask('hello') })
    .catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(OpenAI.AuthenticationError);
  expect(failure).toMatchObject({
    status: 401,
    type: 'unauthorized',
    message: expect.stringContaining('Invalid API key') as string,
  });
});

test('an unknown model is a NotFoundError', async () => {
  const failure = await client.chat.completions
    .create({ model: 'nobody/nothing', messages: ask('hello') })
    .catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(OpenAI.NotFoundError);
  expect(failure).toMatchObject({
    type: 'invalid_model',
    message: expect.stringContaining('Model not found: nobody/nothing') as string,
  });
});

test('a parameter out of bounds is a BadRequestError that names it', async () => {
  const failure = await client.chat.completions
    .create({ model: MODEL, messages: ask('hello'), temperature: 3 })
    .catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(OpenAI.BadRequestError);
  expect(failure).toMatchObject({ type: 'invalid_request', param: 'temperature' });
});

test('an empty escrow is a 402 that names the estimated cost', async () => {
  const poor = await startSpine({ credit: '0.000001' });
  try {
    const broke = new OpenAI({ baseURL: poor.url, apiKey: poor.key, maxRetries: 0 });
    const failure = await broke.chat.completions
      .create({ model: MODEL, messages: ask('hello'), max_tokens: 100 })
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(OpenAI.APIError);
    expect(failure).toMatchObject({
      status: 402,
      type: 'insufficient_balance',
      message: expect.stringMatching(/Insufficient balance for estimated cost: 0\.000\d+ USDC/) as string,
    });
  } finally {
    await poor.stop();
  }
});

test('an account that was never funded is a 424', async () => {
  const unfunded = await startSpine({ credit: '0' });
  try {
    const failure = await new OpenAI({ baseURL: unfunded.url, apiKey: unfunded.key, maxRetries: 0 }).chat.completions
      .create({ model: MODEL, messages: ask('hello') })
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ status: 424, type: 'escrow_not_setup' });
  } finally {
    await unfunded.stop();
  }
});

test('a rate limit is a RateLimitError, and the client retries after the time it is told', async () => {
  const limited = await startSpine({ toml: '[limits]\nrequests_per_minute = 60\nburst = 0' });
  try {
    const impatient = new OpenAI({ baseURL: limited.url, apiKey: limited.key, maxRetries: 0 });
    const calls = await Promise.allSettled(
      Array.from({ length: 100 }, () =>
        impatient.chat.completions.create({ model: MODEL, messages: ask('hello !tokens:1') }),
      ),
    );
    const failures = calls.filter((call) => call.status === 'rejected');
    expect(failures.length).toBeGreaterThan(0);
    for (const { reason } of failures) expect(reason).toBeInstanceOf(OpenAI.RateLimitError);
    const patient = new OpenAI({ baseURL: limited.url, apiKey: limited.key, maxRetries: 3 });
    expect((await patient.chat.completions.create({ model: MODEL, messages: ask('hello !tokens:1') })).object).toBe(
      'chat.completion',
    );
  } finally {
    await limited.stop();
  }
});

test('a failing provider is an InternalServerError, and costs nothing', async () => {
  const before = await spine.balance();
  const failure = await client.chat.completions
    .create({ model: MODEL, messages: ask('hello !status:500') })
    .catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(OpenAI.InternalServerError);
  await spine.quiet();
  expect(await spine.balance()).toEqual(before);
});

test('a failure in the middle of a stream reaches the client as an error', async () => {
  const stream = await client.chat.completions.create({
    model: MODEL,
    messages: ask('hello !tokens:6 !token-ms:20 !error-at:3'),
    stream: true,
  });
  let text = '';
  const failure = await (async () => {
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
  })().catch((error: unknown) => error);
  expect(text.length).toBeGreaterThan(0);
  expect(failure).toBeInstanceOf(OpenAI.APIError);
});

test('models.list()', async () => {
  const models = [];
  for await (const model of client.models.list()) models.push(model);
  expect(models).toMatchObject([
    { id: MODEL, object: 'model', owned_by: expect.any(String) as string, created: expect.any(Number) as number },
  ]);
});
