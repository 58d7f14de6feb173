import type OpenAI from 'openai';
import { beforeAll, expect, test } from 'vitest';
import { embed } from '../../../src/program/demo/embeddings.ts';
import { startBatchProvider } from '../../support/batch-provider.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';
import { MODEL, modelBlock, UNHURRIED } from '../../support/spine.ts';
import { startTranscripts } from '../translated/support/transcript-upstream.ts';
import { begin, CHAT, clientAt, ended, resultsOf, until } from './support/batch-client.ts';

// A line whose body its route refuses is wrong alone. The others are answered, and what is locked is for them.

const PING = 'ping !tokens:5';
let client: OpenAI;
const vectors = ofFile(startTranscripts, (one) => one.stop());
const lots = ofFile(startBatchProvider, (one) => one.stop());
const spine = spineOfFile(() => {
  vectors.answer = (body) => ({ body: embed(body) });
  const embedder = modelBlock({
    name: 'acme/vectors',
    provider: 'Acme',
    url: vectors.url,
    prompt: 1,
    completion: 0,
    lines: 'output_modalities = ["embeddings"]',
  });
  const held = modelBlock({
    name: 'lot/model',
    provider: 'Lot',
    url: lots.url,
    prompt: 1,
    completion: 2,
    pricing: 'service_tiers = { batch = { prompt = 0.5, completion = 1 } }',
    params: 'batches = true',
  });
  return { toml: `${UNHURRIED}[batches]\nprovider_look_ms = 20\n${embedder}${held}` };
});
beforeAll(() => {
  client = clientAt(`${spine.origin}/v1`, spine.key);
});

const chat = { model: MODEL, messages: [{ role: 'user', content: PING }], max_tokens: 50 };
const linesOf = (url: string, bodies: readonly object[]) =>
  bodies.map((body, at) => ({ custom_id: `l${at}`, method: 'POST', url, body }));

test.each([
  ['chat without messages', CHAT, chat, { ...chat, messages: undefined }, 'messages'],
  ['chat with a value of a wrong type', CHAT, chat, { ...chat, temperature: 'hot' }, 'temperature'],
  ['chat with a model that is not there', CHAT, chat, { ...chat, model: 'no/model' }, 'model'],
  ['chat that asks for a stream', CHAT, chat, { ...chat, stream: true }, 'stream'],
  [
    'a response whose input is no text',
    '/v1/responses',
    { model: MODEL, input: PING },
    { model: MODEL, input: 7 },
    'input',
  ],
  ['a completion without prompt', '/v1/completions', { model: MODEL, prompt: PING }, { model: MODEL }, 'prompt'],
  [
    'an embedding without input',
    '/v1/embeddings',
    { model: 'acme/vectors', input: 'a' },
    { model: 'acme/vectors' },
    'input',
  ],
])('%s is the error of its line alone', async (_, endpoint, good, bad, param) => {
  const { id: alone } = await begin(client, linesOf(endpoint, [good, good]), { endpoint });
  const { locked_usd: locked } = (await ended(client, alone)).tollgate;
  const batch = await ended(client, (await begin(client, linesOf(endpoint, [good, bad, good]), { endpoint })).id);
  expect(batch).toMatchObject({
    status: 'completed',
    errors: null,
    request_counts: { total: 3, completed: 2, failed: 1 },
    tollgate: { locked_usd: locked },
  });
  const { output, errors } = await resultsOf(client, batch);
  expect(output.map(({ custom_id }) => custom_id)).toEqual(['l0', 'l2']);
  const status_code = param === 'model' ? 404 : 400;
  expect(errors).toMatchObject([
    { custom_id: 'l1', error: null, response: { status_code, body: { error: { param } } } },
  ]);
});

test('a provider that takes batches gets the other lines', async () => {
  const body = { ...chat, model: 'lot/model' };
  const { id } = await begin(client, linesOf(CHAT, [body, { ...body, temperature: 'hot' }, body]));
  await until(() => lots.batches.length > 0);
  expect(lots.batches[0]!.lines).toHaveLength(2);
  lots.end(lots.batches[0]!, 'completed');
  const batch = await ended(client, id);
  expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 3, completed: 2, failed: 1 } });
  const { errors } = await resultsOf(client, batch);
  expect(errors).toMatchObject([{ custom_id: 'l1', response: { status_code: 400 } }]);
});

test('a file in which no line is right fails as a whole, and so does one whose lines are no requests', async () => {
  const wrong = { ...chat, temperature: 'hot' };
  const none = await ended(client, (await begin(client, linesOf(CHAT, [wrong, wrong]))).id);
  expect(none).toMatchObject({ status: 'failed', error_file_id: null });
  expect(none.errors!.data).toMatchObject([
    { line: 1, param: 'body.temperature' },
    { line: 2, param: 'body.temperature' },
  ]);
  const [first, second] = linesOf(CHAT, [chat, wrong]);
  const twice = await ended(client, (await begin(client, [first, second, first])).id);
  expect(twice.errors!.data).toMatchObject([
    { line: 2, param: 'body.temperature' },
    { line: 3, code: 'duplicate_custom_id' },
  ]);
});
