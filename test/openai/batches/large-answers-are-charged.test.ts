import type OpenAI from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { completionOf, resultOf, startBatchProvider, type BatchProvider } from '../../support/batch-provider.ts';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { begin, chatLine, clientAt, ended, resultsOf, until } from './support/batch-client.ts';

// A provider bills what it has done, however large the answer is, so its use is charged.

const MODEL = 'lot/model';
const EMBEDDER = 'lot/embedder';
/** 11 prompt tokens at 0.5 and 5 completion tokens at 1 USD per 1M: 10.5 micro-USD, rounded up. */
const COST = 11n;
const REPLY_MAX = 64 * 1024;
const RESULTS_MAX = 400_000;
let provider: BatchProvider;
let spine: Spine;
let client: OpenAI;
beforeAll(async () => {
  provider = await startBatchProvider();
  const model = (name: string, lines = '') =>
    modelBlock({
      name,
      provider: 'Lot',
      url: provider.url,
      prompt: 1,
      completion: 2,
      pricing: 'service_tiers = { batch = { prompt = 0.5, completion = 1 } }',
      lines,
      params: 'batches = true',
    });
  const bounds = `[upstream]\nreply_bytes_max = ${REPLY_MAX}\n[batches]\nprovider_look_ms = 20\naccount_bytes_max = ${RESULTS_MAX}\n`;
  const models = model(MODEL) + model(EMBEDDER, 'output_modalities = ["embeddings"]');
  spine = await startSpine({ toml: `${UNHURRIED}${bounds}${models}` });
  client = clientAt(`${spine.origin}/v1`, spine.key);
});
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await provider.stop();
  }
});

/** The results of a batch of these lines, which the provider gives these answers, and what it cost. */
async function costOf(lines: readonly unknown[], answer: (n: number) => object, more: object = {}) {
  await spine.quiet();
  const before = await spine.balance();
  const count = provider.batches.length;
  const { id } = await begin(client, lines, more);
  await until(() => provider.batches.length > count);
  const there = provider.batches.at(-1)!;
  provider.end(there, 'completed', (line) => resultOf(line, answer(there.lines.indexOf(line))));
  const results = await resultsOf(client, await ended(client, id));
  await spine.quiet();
  return { ...results, cost: before.available - (await spine.balance()).available };
}

const chat = (n: number) => chatLine(`line-${n}`, 'ping', { model: MODEL });

test('an answer of a chat model beyond the size of a reply costs what its provider reports', async () => {
  const { errors, output, cost } = await costOf([chat(0), chat(1)], (n) => completionOf('x'.repeat(n * 300_000)));
  expect(output.map(({ custom_id }) => custom_id)).toEqual(['line-0']);
  expect(errors).toMatchObject([{ custom_id: 'line-1', error: { code: 'provider_answer_too_large' } }]);
  expect(errors[0]!.error!.message).toContain('what that costs was charged');
  expect(cost).toBe(2n * COST);
});

test('so do embeddings', async () => {
  const line = {
    custom_id: 'a',
    method: 'POST',
    url: '/v1/embeddings',
    body: { model: EMBEDDER, input: 'a '.repeat(50) },
  };
  const data = [{ object: 'embedding', index: 0, embedding: Array.from({ length: 20_000 }, () => 0.125) }];
  const usage = { prompt_tokens: 40, total_tokens: 40 };
  const { errors, cost } = await costOf([line], () => ({ object: 'list', data, model: 'm', usage }), {
    endpoint: '/v1/embeddings',
  });
  expect(errors).toMatchObject([{ custom_id: 'a', error: { code: 'provider_answer_too_large' } }]);
  expect(cost).toBe(20n);
});

test('and answers for which the file of results has no room', async () => {
  const lines = Array.from({ length: 12 }, (_, n) => chat(n));
  const { output, errors, cost } = await costOf(lines, () => completionOf('x'.repeat(50_000)));
  expect(output.length).toBeGreaterThan(5);
  expect(errors.length).toBe(lines.length - output.length);
  expect(errors.length).toBeGreaterThan(2);
  expect(cost).toBe(BigInt(lines.length) * COST);
});
