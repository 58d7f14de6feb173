import { earningsOf } from '#billing';
import { expect, test } from 'vitest';
import { offeredModel } from '../support/dial-in.ts';
import { startScriptedUpstream, type ScriptedAnswer } from '../support/scripted-upstream.ts';
import { ask, modelBlock } from '../support/spine.ts';
import { startTunnelSpine } from '../support/tunnel-spine.ts';

// A claim of usage that what was delivered cannot explain. The spine charges 1 micro-USD a prompt token and 2 a
// completion token.

const usage = (completion: number, more: object = {}) => ({
  prompt_tokens: 5,
  completion_tokens: completion,
  total_tokens: 5 + completion,
  ...more,
});
const hi = (claim: object): ScriptedAnswer => ({ words: ['hi'], usage: claim });
/** Two bytes, and 32 tokens that no reply shows. */
const PLAUSIBLE = 2 + 32;

async function worldOf(answer: ScriptedAnswer, params = '', lines = '') {
  const upstream = await startScriptedUpstream(() => answer);
  const world = await startTunnelSpine(modelBlock({ name: 'own/model', provider: 'Own', url: upstream.url, params }));
  const proxy = await world.dialIn({ services: offeredModel({ url: upstream.url, params, lines }) });
  const call = async (model: string, stream: boolean) => {
    const response = await world.spine.post('/chat/completions', ask('say hi', { model, stream, max_tokens: 4_000 }));
    expect(response.status).toBe(200);
    const text = await response.text();
    return { text, generation: await world.spine.generation(response.headers.get('x-generation-id')) };
  };
  return { world, proxy, call };
}

test.each([false, true])(
  'of a provider that dialled in: cut to what was delivered, and flagged (stream: %s)',
  async (stream) => {
    const { world, proxy, call } = await worldOf(hi(usage(4_000)));
    const { text, generation } = await call('tunnel/model', stream);
    expect(generation).toMatchObject({
      cost_micro_usdc: 5 + 2 * PLAUSIBLE,
      flags: ['usage_implausible'],
      claims: [{ meter: 'completion', claimed: 4_000, most: PLAUSIBLE }],
    });
    expect(text).toContain(`"completion_tokens":${PLAUSIBLE}`);
    expect((await world.spine.app.ledger.balance(earningsOf(proxy.id)))?.available).toBe(BigInt(5 + 2 * PLAUSIBLE));
  },
);

test('of a provider that dialled in: words such as "reasoning_tokens" explain nothing that it has not declared', async () => {
  const { call } = await worldOf(hi(usage(4_000, { completion_tokens_details: { reasoning_tokens: 3_998 } })));
  expect((await call('tunnel/model', false)).generation).toMatchObject({
    cost_micro_usdc: 5 + 2 * PLAUSIBLE,
    flags: ['usage_implausible'],
  });
});

test('of a provider that dialled in: a field of the request that it did not get is no prompt', async () => {
  const { world } = await worldOf({
    words: ['hi'],
    usage: { prompt_tokens: 10_000, completion_tokens: 1, total_tokens: 10_001 },
  });
  const charged = async (more: object) => {
    const response = await world.spine.post('/chat/completions', ask('say hi', { model: 'tunnel/model', ...more }));
    await response.text();
    return world.spine.generation(response.headers.get('x-generation-id'));
  };
  const alone = await charged({});
  expect(alone.flags).toEqual(['usage_implausible']);
  expect(await charged({ documents: 'x'.repeat(9_000) })).toMatchObject({
    cost_micro_usdc: alone.cost_micro_usdc,
    flags: ['usage_implausible'],
  });
});

test.each([
  ['chat/completions', { type: 'file', file: { file_data: 'https://a.example/a.pdf' } }],
  ['chat/completions', { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERi0=' } }],
  ['messages', { type: 'document', source: { type: 'url', url: 'https://a.example/a.pdf' } }],
  ['responses', { type: 'input_file', file_url: 'https://a.example/a.pdf' }],
])('the pages of a file are a prompt, at /%s: %j', async (path, part) => {
  const claim = { words: ['hi'], usage: { ...usage(3), prompt_tokens: 50_000, total_tokens: 50_003 } };
  const { world } = await worldOf(claim, '', 'input_modalities = ["text", "file"]');
  const said = [{ role: 'user', content: [part] }];
  const response = await world.spine.post(`/${path}`, {
    model: 'tunnel/model',
    ...(path === 'responses' ? { max_output_tokens: 50, input: said } : { max_tokens: 50, messages: said }),
  });
  await response.text();
  expect(await world.spine.generation(response.headers.get('x-generation-id'))).toMatchObject({
    cost_micro_usdc: 50_000 + 2 * 3,
    flags: [],
  });
});

test('an image has at most the tokens that its model declares', async () => {
  const upstream = await startScriptedUpstream(() => ({
    words: ['hi'],
    usage: { ...usage(3), prompt_tokens: 50_000, total_tokens: 50_003 },
  }));
  const world = await startTunnelSpine();
  const image = { type: 'image_url', image_url: { url: 'https://a.example/a.png' } };
  const seeing = (name: string, params: string) =>
    offeredModel({ url: upstream.url, name, params }).replace(
      '[models.pricing]',
      'input_modalities = ["text", "image"]\n[models.pricing]',
    );
  await world.dialIn({ services: seeing('tunnel/usual', '') + seeing('tunnel/tiles', 'image_tokens_max = 26000') });
  const charged = async (model: string) => {
    const messages = [{ role: 'user', content: [image, image] }];
    const response = await world.spine.post('/chat/completions', ask('', { model, messages }));
    expect(await response.text()).toContain('hi');
    return world.spine.generation(response.headers.get('x-generation-id'));
  };
  expect(await charged('tunnel/tiles')).toMatchObject({ tokens_prompt: 50_000, flags: [] });
  expect(await charged('tunnel/usual')).toMatchObject({
    tokens_prompt: 4 + 16 + 64 + 2 * 2_048,
    flags: ['usage_implausible'],
    claims: [{ meter: 'prompt', claimed: 50_000, most: 4 + 16 + 64 + 2 * 2_048 }],
  });
  expect(await world.endpoints('tunnel/tiles')).toMatchObject([{ image_tokens_max: 26_000 }]);
  expect((await world.endpoints('tunnel/usual'))?.[0]).not.toHaveProperty('image_tokens_max');
});

test('what a model declares to reason unseen is allowed beside it, and shown to consumers', async () => {
  const { world, call } = await worldOf(hi(usage(1_500)), 'hidden_reasoning_max = 1000\nhidden_reasoning_usual = 300');
  for (const model of ['tunnel/model', 'own/model']) {
    expect((await call(model, true)).generation).toMatchObject({
      cost_micro_usdc: 5 + 2 * (PLAUSIBLE + 1_000),
      flags: ['usage_implausible'],
    });
    expect(await world.endpoints(model)).toMatchObject([{ hidden_reasoning_tokens: { max: 1_000, usual: 300 } }]);
  }
  const honest = await worldOf(hi(usage(900)), 'hidden_reasoning_max = 1000');
  expect((await honest.call('tunnel/model', true)).generation).toMatchObject({
    cost_micro_usdc: 5 + 2 * 900,
    flags: [],
  });
});

test("of the operator's own model: charged as claimed; flagged where the claim does not say that it is reasoning", async () => {
  const bare = await worldOf(hi(usage(4_000)));
  expect((await bare.call('own/model', false)).generation).toMatchObject({
    cost_micro_usdc: 5 + 2 * 4_000,
    flags: ['usage_implausible'],
  });
  const told = await worldOf(hi(usage(4_000, { completion_tokens_details: { reasoning_tokens: 3_990 } })));
  expect((await told.call('own/model', true)).generation).toMatchObject({ cost_micro_usdc: 5 + 2 * 4_000, flags: [] });
});

test('reasoning that a service counts only in its total is charged like reasoning in the completion', async () => {
  const claim = {
    prompt_tokens: 5,
    completion_tokens: 3,
    total_tokens: 1_008,
    completion_tokens_details: { reasoning_tokens: 1_000 },
  };
  const { call } = await worldOf(hi(claim));
  for (const stream of [false, true]) {
    const own = await call('own/model', stream);
    expect(own.generation).toMatchObject({ cost_micro_usdc: 5 + 2 * 1_003, tokens_completion: 1_003, flags: [] });
    expect(own.text).toMatch(/"completion_tokens":1003,"total_tokens":1008/);
    expect((await call('tunnel/model', stream)).generation).toMatchObject({
      cost_micro_usdc: 5 + 2 * PLAUSIBLE,
      flags: ['usage_implausible'],
    });
  }
});

test.each([
  ['reasoning that is shown', { reasoning_content: 'step '.repeat(400) }, 410],
  [
    'calls of tools',
    { tool_calls: Array.from({ length: 20 }, (_, n) => ({ id: `c${n}`, function: { name: 'f', arguments: '{}' } })) },
    500,
  ],
  ['speech', { audio: { id: 'a', data: 'A'.repeat(8_000), transcript: 'hi' } }, 60],
])('%s explains its tokens', async (_name, message, tokens) => {
  const { call } = await worldOf({ words: ['hi'], usage: usage(tokens), message });
  for (const stream of [false, true])
    expect((await call('tunnel/model', stream)).generation).toMatchObject({
      cost_micro_usdc: 5 + 2 * tokens,
      flags: [],
    });
});
