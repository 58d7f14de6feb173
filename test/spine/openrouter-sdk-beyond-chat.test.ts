import { OpenRouter } from '@openrouter/sdk';
import { beforeAll, describe, expect, test } from 'vitest';
import { embed } from '../../src/program/demo/embeddings.ts';
import { startWireUpstream } from '../openai/native/support/wire-upstream.ts';
import { modelBlock, MODEL, UNHURRIED } from '../support/spine.ts';
import { ofFile, spineOfFile } from '../support/of-file.ts';

// The calls of @openrouter/sdk beside chat. It parses every answer strictly.

let client: OpenRouter;
const upstream = ofFile(startWireUpstream, (one) => one.stop());
const spine = spineOfFile(() => {
  upstream.answer = ({ body }) => ({ text: JSON.stringify(embed(body)) });
  const vectors = modelBlock({ name: 'test/vectors', provider: 'Vectors', url: upstream.url }).replace(
    'display_name',
    'output_modalities = ["embeddings"]\ndisplay_name',
  );
  return { toml: UNHURRIED + vectors };
});
beforeAll(() => {
  client = new OpenRouter({ serverURL: spine.url, apiKey: spine.key, retryConfig: { strategy: 'none' } });
});

describe('responses', () => {
  const responsesRequest = { model: MODEL, input: 'hello !tokens:4', maxOutputTokens: 20 };
  test('a whole one', async () => {
    const response = await client.responses.send({ responsesRequest: { ...responsesRequest, stream: false } });
    if (!('output' in response)) throw new Error('it streamed');
    expect(response).toMatchObject({
      status: 'completed',
      model: MODEL,
      frequencyPenalty: 0,
      presencePenalty: 0,
      temperature: 1,
      topP: 1,
      usage: { inputTokensDetails: { cachedTokens: 0, cacheWriteTokens: 0 }, outputTokens: 4 },
    });
    expect(response.completedAt).toBeGreaterThanOrEqual(response.createdAt);
    const { cost, costDetails } = response.usage!;
    expect(costDetails!.upstreamInferenceInputCost + costDetails!.upstreamInferenceOutputCost).toBeCloseTo(cost!, 12);
  });

  test('a stream to its end', async () => {
    const stream = await client.responses.send({ responsesRequest: { ...responsesRequest, stream: true } });
    if ('output' in stream) throw new Error('it did not stream');
    const types: string[] = [];
    for await (const event of stream) types.push(event.type);
    expect(types.at(0)).toBe('response.created');
    expect(types.at(-1)).toBe('response.completed');
    expect(types).not.toContain('UNKNOWN');
  });

  test('a model that is called by `callModel`', async () => {
    const result = client.callModel({ model: MODEL, input: 'hello !tokens:4' });
    expect(await result.getText()).toBe('the toll is paid ');
  });

  test('one that ends at its cap is not completed', async () => {
    const response = await client.responses.send({
      responsesRequest: { ...responsesRequest, input: 'hello !tokens:30', stream: false },
    });
    expect(response).toMatchObject({ status: 'incomplete', completedAt: null });
  });
});

test('embeddings', async () => {
  const reply = await client.embeddings.generate({ requestBody: { model: 'test/vectors', input: 'the red road' } });
  if (typeof reply === 'string') throw new Error('it is a text');
  expect(reply.data).toHaveLength(1);
  expect(reply.usage!.cost).toBeGreaterThan(0);
});
