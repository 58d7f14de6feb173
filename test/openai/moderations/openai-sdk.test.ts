import OpenAI from 'openai';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { UNHURRIED } from '../../support/spine.ts';
import { rerankBlock, startReranker } from '../rerank/reranker.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

// Moderations by OpenAI's SDK as it is on npm, and what each costs.

const FREE = 'omni-moderation-latest';
const PAID = 'acme/judge';
const BY_TOKENS = 'acme/reader';
let client: OpenAI;
const upstream = ofFile(startReranker, (one) => one.stop());
const spine = spineOfFile(() => {
  const block = { url: upstream.url, modality: 'moderation' } as const;
  const sees = 'input_modalities = ["text", "image"]';
  return {
    toml: `${UNHURRIED}
[upstream]
cooldown_ms = 0
${rerankBlock({ ...block, name: FREE, provider: 'OpenAI', lines: sees })}
${rerankBlock({ ...block, name: PAID, provider: 'Acme', pricing: 'per_call = 0.0005' })}
${rerankBlock({ ...block, name: BY_TOKENS, provider: 'Reader', prompt: 1, lines: sees })}`,
  };
});
beforeAll(() => {
  client = new OpenAI({ baseURL: `${spine.origin}/v1`, apiKey: spine.key, maxRetries: 0 });
});

const judged = (text: string) => ({
  flagged: text.includes('harm'),
  categories: { violence: text.includes('harm') },
  category_scores: { violence: text.includes('harm') ? 0.9 : 0.1 },
  category_applied_input_types: { violence: ['text'] },
});
const SAID = { id: 'modr-1', model: 'upstream' };
const answers = (more: object = {}) => {
  upstream.answer = ({ input }) => {
    const texts = Array.isArray(input) && typeof input[0] === 'string' ? (input as string[]) : [JSON.stringify(input)];
    return { body: { ...SAID, results: texts.map(judged), ...more } };
  };
};
beforeEach(() => {
  upstream.asked.length = 0;
  answers();
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const costOf = async (sent: Promise<{ response: Response }>) => {
  const { response } = await sent;
  const { cost_micro_usdc: cost } = (await spine.generation(response.headers.get('x-generation-id'))) as unknown as {
    cost_micro_usdc: number;
  };
  return cost;
};

test('a text is judged by the default model, for nothing', async () => {
  const { data, response } = await client.moderations.create({ input: 'no harm meant' }).withResponse();
  expect(upstream.asked).toEqual([
    { path: '/v1/moderations', body: { model: 'upstream-OpenAI', input: 'no harm meant' } },
  ]);
  expect(data).toMatchObject({
    id: 'modr-1',
    model: FREE,
    results: [
      { flagged: true, category_scores: { violence: 0.9 }, category_applied_input_types: { violence: ['text'] } },
    ],
  });
  expect(response.headers.get('x-cost-usd')).toBe('0');
});

test('each of several texts is judged, at the price of a call', async () => {
  const sent = client.moderations.create({ model: PAID, input: ['harm', 'peace'] });
  expect((await sent).results.map(({ flagged }) => flagged)).toEqual([true, false]);
  expect(await costOf(sent.withResponse())).toBe(500);
});

test('the parts of one input are judged together, pictures too', async () => {
  const input: OpenAI.ModerationMultiModalInput[] = [
    { type: 'text', text: 'a picture' },
    { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
  ];
  const { results } = await client.moderations.create({ model: FREE, input });
  expect(results).toHaveLength(1);
  expect(upstream.asked[0]!.body['input']).toEqual(input);
  await expect(client.moderations.create({ model: PAID, input })).rejects.toThrow(/422 acme\/judge takes no images/);
});

test('tokens are charged as the reply says, within the lock, or as measured', async () => {
  const ask = (input: string) => costOf(client.moderations.create({ model: BY_TOKENS, input }).withResponse());
  answers({ usage: { prompt_tokens: 7, total_tokens: 7 } });
  expect(await ask('twenty bytes of text')).toBe(7);
  answers({ usage: { prompt_tokens: 1e6, total_tokens: 1e6 } });
  // 20 bytes, and 16 more tokens around them.
  expect(await ask('twenty bytes of text')).toBe(36);
  const claims = [{ meter: 'prompt', claimed: 1e6, most: 36 }];
  expect(spine.logs.map((line) => JSON.parse(line))).toContainEqual(
    expect.objectContaining({ msg: 'provider flagged', provider: 'Reader', claims, usage: { prompt: 36, call: 1 } }),
  );
  answers();
  expect(await ask('twenty bytes of text')).toBe(5 + 16);
});

test.each([
  ['no results', { body: SAID }],
  ['a result too few', { body: { ...SAID, results: [judged('')] } }],
  ['a result that says nothing', { body: { ...SAID, results: [{}, {}] } }],
  ['an error in place of results', { body: { error: { message: 'no' } } }],
  ['a failure', { status: 500, body: { error: { message: 'boom' } } }],
])('%s: a failure of the provider, and free', async (_what, answer) => {
  upstream.answer = () => answer;
  const before = await spine.balance();
  const asked = client.moderations.create({ model: PAID, input: ['a', 'b'] });
  await expect(asked).rejects.toThrow(/Provider Acme failed/);
  await spine.quiet();
  expect(await spine.balance()).toEqual(before);
});

describe('a request is refused', () => {
  test.each([
    [{ input: [] }, 'input'],
    [{ input: 3 }, 'input'],
    [{ input: ['a', { type: 'text', text: 'b' }] }, 'input'],
    [{ input: [{ type: 'text' }] }, 'input[0].text'],
    [{ input: [{ type: 'sound', text: 'a' }] }, 'input[0].type'],
    [{ input: [{ type: 'image_url', image_url: {} }] }, 'input[0].image_url.url'],
  ])('%j', async (body, param) => {
    const response = await spine.post('/moderations', { model: FREE, ...body });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { type: 'invalid_request', param } });
  });

  test('for a model that does something else, with where it is called', async () => {
    await expect(client.moderations.create({ model: 'test/model', input: 'a' })).rejects.toThrow(
      /422 test\/model judges no content. Call it at \/chat\/completions/,
    );
    await expect(client.embeddings.create({ model: FREE, input: 'a' })).rejects.toThrow(
      /422 omni-moderation-latest judges content. Call it at \/moderations/,
    );
  });
});
