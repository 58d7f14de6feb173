import { expect, test } from 'vitest';
import { offeredModel } from '../support/dial-in.ts';
import { startScriptedUpstream } from '../support/scripted-upstream.ts';
import { ask, events, modelBlock } from '../support/spine.ts';
import { startTunnelSpine } from '../support/tunnel-spine.ts';

// Servers know the cap of a completion by many names, and some obey another one than max_tokens. None lets a call
// use more than was locked for it.

/** As llama.cpp's server: where n_predict is there, it counts. */
const WORD = 'word ';
const obeys = (names: readonly string[]) => (body: Record<string, unknown>) => {
  const options = (body['options'] ?? {}) as Record<string, unknown>;
  const tokens = Number(
    names.map((name) => body[name] ?? options[name]).find((cap) => typeof cap === 'number') ?? body['max_tokens'],
  );
  return {
    words: Array.from({ length: tokens }, () => WORD),
    usage: { prompt_tokens: 5, completion_tokens: tokens, total_tokens: 5 + tokens },
  };
};
const NAMES = ['n_predict', 'max_new_tokens', 'num_predict', 'maxTokens', 'max_output_tokens', 'min_tokens'];

const said = async (response: Response, stream: boolean) => {
  const text = await response.text();
  if (!stream) return (JSON.parse(text) as { choices: { message: { content: string } }[] }).choices[0]!.message.content;
  return events(text)
    .flatMap((event) => (event as { choices?: { delta: { content?: string } }[] }).choices ?? [])
    .map(({ delta }) => delta.content ?? '')
    .join('');
};

const ATTACKS: readonly object[] = [
  { n_predict: 20_000 },
  { max_new_tokens: '20000' },
  { maxTokens: 20_000 },
  { options: { num_predict: 20_000 } },
];

test.each(ATTACKS)('%j gets one token of max_tokens: 1, and is charged for one', async (attack) => {
  const upstream = await startScriptedUpstream(obeys(NAMES));
  const world = await startTunnelSpine(modelBlock({ name: 'own/model', provider: 'Own', url: upstream.url }));
  await world.dialIn({ services: offeredModel({ url: upstream.url, params: 'forward = "all"' }) });
  for (const model of ['own/model', 'tunnel/model']) {
    for (const stream of [false, true]) {
      const response = await world.spine.post(
        '/chat/completions',
        ask('hi', { model, max_tokens: 1, stream, ...attack }),
      );
      expect(response.status).toBe(200);
      const [name] = Object.keys(attack);
      expect(response.headers.get('x-tollgate-dropped')).toBe(name === 'options' ? 'options.num_predict' : name);
      expect(await said(response, stream)).toBe(WORD);
      expect(await world.spine.generation(response.headers.get('x-generation-id'))).toMatchObject({
        cost_micro_usdc: 5 + 2,
        flags: [],
      });
    }
  }
});

test('a name that the model lists gets the cap', async () => {
  const upstream = await startScriptedUpstream(obeys(NAMES));
  const world = await startTunnelSpine();
  await world.dialIn({ services: offeredModel({ url: upstream.url, params: 'forward = ["n_predict"]' }) });
  const response = await world.spine.post(
    '/chat/completions',
    ask('hi', { model: 'tunnel/model', max_tokens: 3, n_predict: 20_000 }),
  );
  expect(await said(response, false)).toBe(WORD.repeat(3));
  expect(upstream.asked[0]).toMatchObject({ max_tokens: 3, n_predict: 3 });
  expect(response.headers.get('x-tollgate-dropped')).toBeNull();
});

test.each([false, true])(
  'a server that ignores every cap is cut to what the cap can be, and the cap is charged (stream: %s)',
  async (stream) => {
    const upstream = await startScriptedUpstream(() => obeys(['max_tokens'])({ max_tokens: 20_000 }));
    const { spine } = await startTunnelSpine(modelBlock({ name: 'own/model', provider: 'Own', url: upstream.url }));
    const response = await spine.post('/chat/completions', ask('hi', { model: 'own/model', max_tokens: 1, stream }));
    const text = await said(response, stream);
    // One token has at most 128 bytes.
    expect(Buffer.byteLength(text)).toBeGreaterThan(100);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(128);
    const generation = await spine.generation(response.headers.get('x-generation-id'));
    expect(generation).toMatchObject({ flags: ['over_cap'], tokens_completion: 1 });
    expect(generation.cost_micro_usdc).toBe(generation.tokens_prompt + 2);
    // A whole reply has its report, which counts at the operator's own provider. A stream is cut before it.
    if (stream) expect(generation.tokens_prompt).toBeLessThan(5);
    else expect(generation.tokens_prompt).toBe(5);
    expect(await spine.faults()).toEqual([]);
  },
);
