import type OpenAI from 'openai';
import { beforeAll, expect, test } from 'vitest';
import { embed } from '../../../src/program/demo/embeddings.ts';
import { MODEL, UNHURRIED } from '../../support/spine.ts';
import { startTranscripts } from '../translated/support/transcript-upstream.ts';
import { begin, chatLine, clientAt, ended, jsonl, resultsOf, upload } from './support/batch-client.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

// Batches of each endpoint, in both dialects, and one of a thousand lines.

const PING = 'ping !tokens:5';
let client: OpenAI;
const vectors = ofFile(startTranscripts, (one) => one.stop());
const spine = spineOfFile(() => {
  vectors.answer = (body) => ({ body: embed(body) });
  return {
    toml: `${UNHURRIED}
[[models]]
name = "acme/vectors"
display_name = "Acme: Vectors"
provider_name = "Acme"
context_length = 1000
output_modalities = ["embeddings"]
[models.pricing]
prompt = 1
completion = 0
[models.params]
model = "upstream-vectors"
api_base = "${vectors.url}"
api_key = "k"
`,
  };
});
beforeAll(() => {
  client = clientAt(`${spine.origin}/v1`, spine.key);
});

async function answersOf(endpoint: string, bodies: readonly object[], by = client) {
  const lines = bodies.map((body, at) => ({ custom_id: `${at}`, method: 'POST', url: endpoint, body }));
  const batch = await ended(by, (await begin(by, lines, { endpoint })).id);
  const { output, errors } = await resultsOf(by, batch);
  return { batch, errors, bodies: output.map(({ response }) => response!.body as Record<string, unknown>) };
}

test('responses', async () => {
  const body = { model: MODEL, input: PING, max_output_tokens: 50 };
  const { batch, bodies } = await answersOf('/v1/responses', [body, { ...body, store: true, metadata: { a: 'b' } }]);
  expect(bodies).toMatchObject([
    { object: 'response', status: 'completed', usage: { input_tokens: 11, output_tokens: 5 } },
    // Lines keep no responses, so a batch does not push out those that others asked to keep.
    { object: 'response', store: false },
  ]);
  expect(batch.usage).toMatchObject({ input_tokens: 22, output_tokens: 10, total_tokens: 32 });
});

test('embeddings', async () => {
  const input = ['the red road', 'a road so red'];
  const { batch, bodies } = await answersOf('/v1/embeddings', [{ model: 'acme/vectors', input }]);
  expect(bodies).toMatchObject([
    { object: 'list', data: [{ index: 0 }, { index: 1 }], usage: { cost: expect.any(Number) } },
  ]);
  expect(batch.usage!.input_tokens).toBeGreaterThan(0);
  expect(batch.usage!.output_tokens).toBe(0);
});

test('completions', async () => {
  const { batch, bodies } = await answersOf('/v1/completions', [{ model: MODEL, prompt: PING, max_tokens: 50 }]);
  expect(bodies).toMatchObject([{ object: 'text_completion', usage: { completion_tokens: 5 } }]);
  expect(batch).toMatchObject({ status: 'completed', model: MODEL });
});

test('an endpoint that no batch may have, and a body of another', async () => {
  await expect(answersOf('/v1/moderations', [{ input: 'x' }])).rejects.toMatchObject({
    status: 400,
    param: 'endpoint',
  });
  const lines = [{ custom_id: 'a', method: 'POST', url: '/v1/responses', body: chatLine('a', PING).body }];
  const failed = await ended(client, (await begin(client, lines, { endpoint: '/v1/responses' })).id);
  expect(failed.errors!.data).toMatchObject([{ line: 1, code: 'invalid_request' }]);
  const body = { model: MODEL, input: 'continue', previous_response_id: 'resp_0000000000' };
  const kept = await ended(
    client,
    (
      await begin(client, [{ custom_id: 'a', method: 'POST', url: '/v1/responses', body }], {
        endpoint: '/v1/responses',
      })
    ).id,
  );
  expect(kept.errors!.data).toMatchObject([{ line: 1, param: 'body.previous_response_id' }]);
});

test('results have the dialect of the address at which the batch was made', async () => {
  const own = clientAt(`${spine.origin}/api/v1`, spine.key);
  const lines = [chatLine('good', PING), chatLine('bad', 'x !status:400')];
  const results = async (by: OpenAI) => resultsOf(by, await ended(by, (await begin(by, lines)).id));
  const [strict, ours] = [await results(client), await results(own)];
  expect(ours.output[0]!.response!.body.usage!.cost).toBe(0.000021);
  expect(typeof ours.errors[0]!.response!.body.error!.code).toBe('number');
  expect(typeof strict.errors[0]!.response!.body.error!.code).toBe('string');
});

test('a thousand lines: each once, each charged once, in the order of the file', async () => {
  const before = await spine.balance();
  const names = Array.from({ length: 1_000 }, (_, at) => `line-${at}`);
  const { id: file } = await upload(client, jsonl(names.map((name) => chatLine(name, PING))));
  const { id } = await client.batches.create({
    input_file_id: file,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
  });
  const batch = await ended(client, id);
  expect(batch).toMatchObject({
    status: 'completed',
    request_counts: { total: 1_000, completed: 1_000, failed: 0 },
    usage: { input_tokens: 11_000, output_tokens: 5_000 },
    tollgate: { locked_usd: '0.198' },
  });
  const { output } = await resultsOf(client, batch);
  expect(output.map((line) => line.custom_id)).toEqual(names);
  expect(new Set(output.map((line) => line.id)).size).toBe(1_000);
  expect(await spine.balance()).toEqual({ available: before.available - 21_000n, locked: 0n });
});
