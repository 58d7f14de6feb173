import OpenAI, { BadRequestError, InternalServerError, RateLimitError } from 'openai';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startProvider } from '../support/provider.ts';
import type { TestProvider } from '../support/provider.ts';

let provider: TestProvider;
let client: OpenAI;
beforeAll(async () => {
  provider = await startProvider();
  client = new OpenAI({ baseURL: provider.url, apiKey: 'unused', maxRetries: 0 });
});
afterAll(() => provider.stop());

const messages = [{ role: 'user' as const, content: 'hello' }];

it('answers in one piece with the usage it logs', async () => {
  const answer = await client.chat.completions.create({ model: 'test/model', messages, max_completion_tokens: 5 });
  const call = provider.log.at(-1);
  expect(answer.choices[0]?.finish_reason).toBe('length');
  // 3 for the request, 4 for the message, 2 for five bytes of text.
  expect(answer.usage).toEqual({ prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 });
  expect(call).toMatchObject({
    promptTokens: 9,
    completionTokens: 5,
    end: 'finished',
    usages: [JSON.stringify(answer.usage)],
  });
  expect(call?.textBytes).toBe(Buffer.byteLength(answer.choices[0]?.message.content ?? ''));
});

it('streams n choices, then the usage of all of them', async () => {
  const stream = await client.chat.completions.create({
    model: 'test/model!tokens:30',
    messages,
    n: 2,
    stream: true,
    stream_options: { include_usage: true },
  });
  const texts = ['', ''];
  const finished: string[] = [];
  let usage: unknown = null;
  for await (const chunk of stream) {
    for (const choice of chunk.choices) {
      texts[choice.index] += choice.delta.content ?? '';
      if (choice.finish_reason !== null) finished.push(choice.finish_reason);
    }
    usage = chunk.usage ?? usage;
  }
  expect(texts[0]).toBe(texts[1]);
  expect(finished).toEqual(['stop', 'stop']);
  expect(usage).toEqual({ prompt_tokens: 9, completion_tokens: 60, total_tokens: 69 });
  expect(provider.log.at(-1)).toMatchObject({ completionTokens: 60, textBytes: Buffer.byteLength(texts.join('')) });
});

it('calls the tools that the message names', async () => {
  const tools = ['weather', 'clock'].map((name) => ({
    type: 'function' as const,
    function: { name, parameters: { type: 'object' } },
  }));
  const stream = client.chat.completions.stream({
    model: 'test/model',
    messages: [{ role: 'user', content: 'weather and clock' }],
    tools,
  });
  const { choices } = await stream.finalChatCompletion();
  expect(choices[0]?.finish_reason).toBe('tool_calls');
  expect(
    choices[0]?.message.tool_calls?.map(
      (call) => call.type === 'function' && [call.id, call.function.name, JSON.parse(call.function.arguments)],
    ),
  ).toEqual([
    ['call_0', 'weather', { city: 'Zürich', days: 3 }],
    ['call_1', 'clock', { city: 'Zürich', days: 3 }],
  ]);
});

it('answers errors that the SDK understands', async () => {
  provider.instruct({ status: 429, retryAfterS: 7 }, { status: 400 }, { status: 503, errorBody: 'html' });
  const failures: unknown[] = [];
  for (let round = 0; round < 3; round += 1) {
    failures.push(
      await client.chat.completions.create({ model: 'test/model', messages }).catch((error: unknown) => error),
    );
  }
  expect(failures[0]).toBeInstanceOf(RateLimitError);
  expect(failures[1]).toBeInstanceOf(BadRequestError);
  expect(failures[2]).toBeInstanceOf(InternalServerError);
  expect(provider.log.slice(-3).map((call) => call.end)).toEqual(['error_status', 'error_status', 'error_status']);
});
