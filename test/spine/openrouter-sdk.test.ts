import { OpenRouter } from '@openrouter/sdk';
import { beforeAll, describe, expect, test } from 'vitest';
import { awayFromMidnight } from '../support/away-from-midnight.ts';
import { startScriptedUpstream } from '../support/scripted-upstream.ts';
import { modelBlock, MODEL, startSpine, UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// @openrouter/sdk as it comes from npm, which parses every answer strictly: one field of another type, and the
// caller has paid and gets an error.

let client: OpenRouter;
const spine = spineOfFile(() => ({ toml: `${UNHURRIED}[upstream]\ncooldown_ms = 0` }));
beforeAll(() => {
  client = new OpenRouter({ serverURL: spine.url, apiKey: spine.key, retryConfig: { strategy: 'none' } });
});

const [author, slug] = MODEL.split('/') as [string, string];
const messages = (content: string) => [{ role: 'user' as const, content }];
const weather = {
  type: 'function' as const,
  function: {
    name: 'weather',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};

async function all<T>(pages: AsyncIterable<{ readonly result: { readonly data: readonly T[] } }>): Promise<T[]> {
  const found: T[] = [];
  for await (const { result } of pages) found.push(...result.data);
  return found;
}

describe('chat', () => {
  test('a completion', async () => {
    const completion = await client.chat.send({
      chatRequest: { model: MODEL, messages: messages('hello !tokens:4'), maxTokens: 20, stream: false },
    });
    if (!('choices' in completion)) throw new Error('it streamed');
    expect(completion).toMatchObject({
      model: MODEL,
      object: 'chat.completion',
      choices: [{ finishReason: 'stop', message: { role: 'assistant' } }],
    });
    const { cost, costDetails } = completion.usage!;
    expect(cost).toBeGreaterThan(0);
    expect(costDetails!.upstreamInferencePromptCost + costDetails!.upstreamInferenceCompletionsCost).toBeCloseTo(
      cost!,
      12,
    );
    expect(costDetails!.upstreamInferenceCompletionsCost).toBe(8 / 1e6);
  });

  test('a stream to its end', async () => {
    const stream = await client.chat.send({
      chatRequest: { model: MODEL, messages: messages('hello !tokens:6'), maxTokens: 20, stream: true },
    });
    if ('choices' in stream) throw new Error('it did not stream');
    let text = '';
    let cost: number | null | undefined;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      if (chunk.usage) ({ cost } = chunk.usage);
    }
    expect(text).toBe('the toll is paid für jede ');
    expect(cost).toBeGreaterThan(0);
  });

  test('tool calls, streamed and not', async () => {
    const request = { model: MODEL, messages: messages('weather?'), tools: [weather], toolChoice: 'required' as const };
    const completion = await client.chat.send({ chatRequest: { ...request, stream: false } });
    if (!('choices' in completion)) throw new Error('it streamed');
    expect(completion.choices[0]!.message.toolCalls![0]).toMatchObject({
      type: 'function',
      function: { name: 'weather' },
    });
    const stream = await client.chat.send({ chatRequest: { ...request, stream: true } });
    if ('choices' in stream) throw new Error('it did not stream');
    let given = '';
    for await (const chunk of stream) given += chunk.choices[0]?.delta.toolCalls?.[0]?.function?.arguments ?? '';
    expect(JSON.parse(given)).toEqual({ city: 'Zürich', days: 3 });
  });

  test('reasoning, streamed and not', async () => {
    const details = [{ type: 'reasoning.text', text: 'First, think.', index: 0, format: 'unknown' }];
    const thinker = await startScriptedUpstream(() => ({
      words: ['42'],
      usage: {
        prompt_tokens: 5,
        completion_tokens: 9,
        total_tokens: 14,
        completion_tokens_details: { reasoning_tokens: 6 },
      },
      message: { reasoning: 'First, think.', reasoning_details: details },
    }));
    const thinking = await startSpine({
      toml: modelBlock({ name: 'test/thinker', provider: 'Thinker', url: thinker.url }),
    });
    try {
      const own = new OpenRouter({ serverURL: thinking.url, apiKey: thinking.key, retryConfig: { strategy: 'none' } });
      const request = { model: 'test/thinker', messages: messages('why?'), reasoning: { effort: 'high' as const } };
      const completion = await own.chat.send({ chatRequest: { ...request, stream: false } });
      if (!('choices' in completion)) throw new Error('it streamed');
      expect(completion.choices[0]!.message).toMatchObject({ reasoning: 'First, think.', content: '42' });
      expect(completion.usage).toMatchObject({ completionTokensDetails: { reasoningTokens: 6 } });
      const stream = await own.chat.send({ chatRequest: { ...request, stream: true } });
      if ('choices' in stream) throw new Error('it did not stream');
      let thought = '';
      for await (const chunk of stream) thought += chunk.choices[0]?.delta.reasoning ?? '';
      expect(thought).toBe('First, think.');
      expect(await thinking.faults()).toEqual([]);
    } finally {
      await thinking.stop();
    }
  });

  test('a reply that fails in its stream is an error of the stream', async () => {
    const stream = await client.chat.send({
      chatRequest: { model: MODEL, messages: messages('hello !tokens:6 !error-at:3 !dribble:1'), stream: true },
    });
    if ('choices' in stream) throw new Error('it did not stream');
    const errors = [];
    for await (const chunk of stream) if (chunk.error) errors.push(chunk.error);
    expect(errors).toMatchObject([{ code: 500 }]);
  });
});

describe('models', () => {
  test('the list, one of it, how many', async () => {
    const models = await all(await client.models.list());
    expect(models).toMatchObject([
      {
        id: MODEL,
        canonicalSlug: MODEL,
        architecture: { modality: 'text+image->text' },
        links: { details: `/api/v1/models/${MODEL}/endpoints` },
      },
    ]);
    expect(await all(await client.models.listForUser({ bearer: spine.key }))).toEqual(models);
    expect((await client.models.get({ author, slug })).data).toEqual(models[0]);
    expect((await client.models.count()).data.count).toBe(1);
  });

  test('who serves one', async () => {
    const { data } = await client.endpoints.list({ author, slug });
    expect(data).toMatchObject({
      id: MODEL,
      endpoints: [{ providerName: 'Test', modelId: MODEL, status: 0, maxCompletionTokens: 4096 }],
    });
  });

  test('all providers', async () => {
    expect((await client.providers.list()).data).toMatchObject([{ name: 'Test', slug: 'test' }]);
  });
});

test('the record of a call', async () => {
  const completion = await client.chat.send({
    chatRequest: { model: MODEL, messages: messages('hello !tokens:4'), stream: false },
  });
  if (!('choices' in completion)) throw new Error('it streamed');
  const { data } = await client.generations.getGeneration({ id: completion.id });
  expect(data).toMatchObject({
    id: completion.id,
    model: MODEL,
    providerName: 'Test',
    usage: completion.usage!.cost,
    totalCost: completion.usage!.cost,
    tokensCompletion: 4,
  });
});

test('keys: made, looked at, changed, deleted', async () => {
  // What a key spent is counted by months.
  await awayFromMidnight();
  const { key, data } = await client.apiKeys.create({
    requestBody: { name: 'made by the sdk', limit: 5, limitReset: 'monthly' },
  });
  expect(data).toMatchObject({
    name: 'made by the sdk',
    limit: 5,
    limitRemaining: 5,
    limitReset: 'monthly',
    usage: 0,
    usageDaily: 0,
  });
  const { hash } = data;
  expect((await client.apiKeys.get({ hash })).data).toEqual(data);
  expect((await client.apiKeys.list()).data.map((one) => one.hash)).toContain(hash);
  expect((await client.apiKeys.update({ hash, requestBody: { name: 'renamed', disabled: false } })).data).toMatchObject(
    { name: 'renamed' },
  );

  const own = new OpenRouter({ serverURL: spine.url, apiKey: key, retryConfig: { strategy: 'none' } });
  const completion = await own.chat.send({
    chatRequest: { model: MODEL, messages: messages('hello !tokens:4'), stream: false },
  });
  if (!('choices' in completion)) throw new Error('it streamed');
  const current = (await own.apiKeys.getCurrentKeyMetadata()).data;
  expect(current).toMatchObject({
    label: 'renamed',
    usage: completion.usage!.cost,
    usageMonthly: completion.usage!.cost,
    isFreeTier: false,
  });

  expect(await client.apiKeys.delete({ hash })).toEqual({ deleted: true });
  await expect(client.apiKeys.get({ hash })).rejects.toMatchObject({ statusCode: 404 });
});

test('credits', async () => {
  expect((await client.credits.getCredits()).data).toMatchObject({ totalCredits: 100 });
});
