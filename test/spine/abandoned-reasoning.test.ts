import { expect, test } from 'vitest';
import { startScriptedUpstream } from '../support/scripted-upstream.ts';
import { ask, modelBlock } from '../support/spine.ts';
import { readStream, startTunnelSpine } from '../support/tunnel-spine.ts';

// A model reasons unseen, its answer has come, its usage has not: a consumer that leaves then pays for what is
// usual of it, beside what it has seen.

const ANSWER = ['forty', '-two.'];

test.each([
  ['nothing declared', '', 4_000, 3],
  ['what is usual', 'hidden_reasoning_max = 5000\nhidden_reasoning_usual = 1200', 4_000, 3 + 1_200],
  [
    "what is usual, never more than the consumer's own cap",
    'hidden_reasoning_max = 5000\nhidden_reasoning_usual = 1200',
    100,
    100,
  ],
])('%s', async (_name, params, cap, tokens) => {
  const upstream = await startScriptedUpstream(() => ({ words: ANSWER, usage: undefined }));
  const { spine } = await startTunnelSpine(
    `[billing]\ndrain_ms = 200\n${modelBlock({ name: 'own/model', provider: 'Own', url: upstream.url, params, maxOutputTokens: 8_000 })}`,
  );
  const leaving = new AbortController();
  const body = ask('x'.repeat(400), { model: 'own/model', stream: true, max_tokens: cap });
  const stream = await readStream(spine.post('/chat/completions', body, {}, leaving.signal));
  await stream.tokens(ANSWER.length);
  const id = stream.response.headers.get('x-generation-id');
  leaving.abort();
  await stream.end.catch(() => {});
  await spine.quiet();
  expect(await spine.generation(id)).toMatchObject({
    estimated: true,
    cancelled: true,
    cost_micro_usdc: 101 + 2 * tokens,
  });
});

test('a consumer that leaves before any word came pays the input', async () => {
  const upstream = await startScriptedUpstream(() => ({ words: [], usage: undefined }));
  const params = 'hidden_reasoning_max = 5000\nhidden_reasoning_usual = 1200';
  const { spine } = await startTunnelSpine(
    `[billing]\ndrain_ms = 200\n${modelBlock({ name: 'own/model', provider: 'Own', url: upstream.url, params })}`,
    // The head of the stream does not wait for a word.
    { keepAliveMs: 50 },
  );
  const leaving = new AbortController();
  const response = await spine.post(
    '/chat/completions',
    ask('hello', { model: 'own/model', stream: true }),
    {},
    leaving.signal,
  );
  leaving.abort();
  await spine.quiet();
  const record = await spine.generation(response.headers.get('x-generation-id'));
  expect(record).toMatchObject({ cost_micro_usdc: 3, tokens_prompt: 3, tokens_completion: 0, estimated: true });
});
