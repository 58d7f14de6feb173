import { afterAll, beforeAll, expect, test } from 'vitest';
import { dialIn, type DialledIn } from '../../../support/dial-in.ts';
import { startSpine, UNHURRIED, type Spine } from '../../../support/spine.ts';
import { startStrictOpenAi, type StrictOpenAi } from '../../../support/strict-openai.ts';

// What a provider's file says of the cap reaches the gateway with its registration. What it does not say is learnt,
// as of the gateway's own models.

let upstream: StrictOpenAi;
let spine: Spine;
let provider: DialledIn;
beforeAll(async () => {
  upstream = await startStrictOpenAi({
    reasoner: { takes: ['max_completion_tokens'], outputMax: 4096, reasons: true },
    uncapped: { takes: [], outputMax: 4096 },
  });
  spine = await startSpine({ toml: UNHURRIED });
  const block = (name: string, model: string, more = '') =>
    `\n[[models]]\nname = "dialled/${name}"\npricing = { prompt = 1, completion = 2 }\nparams = { model = "${model}", api_base = "${upstream.url}"${more} }\n`;
  provider = await dialIn({
    router: spine.origin,
    services:
      block('least', 'reasoner') +
      block('said', 'reasoner', ', cap = "max_completion_tokens", max_output_tokens = 4096') +
      block('none', 'uncapped', ', cap = "none"'),
  });
});
afterAll(async () => {
  await provider.close();
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  await upstream.stop();
});

const ask = (name: string, more: object = {}) =>
  spine.post('/chat/completions', {
    model: `dialled/${name}`,
    messages: [{ role: 'user', content: 'hello there' }],
    ...more,
  });
const askedSince = (seen: number) =>
  upstream.asked
    .slice(seen)
    .map(({ body: { max_tokens, max_completion_tokens }, status }) => [status, max_tokens, max_completion_tokens]);

test('a file with the required keys alone works, and what its service refuses is asked once', async () => {
  const seen = upstream.asked.length;
  expect((await ask('least')).status).toBe(200);
  for (let call = 0; call < 2; call++) {
    const response = await ask('least', { max_tokens: 32_000 });
    expect([response.status, response.headers.get('x-max-tokens')]).toEqual([200, '4096']);
  }
  expect(askedSince(seen)).toEqual([
    [200, undefined, undefined],
    [400, 32_000, undefined],
    [400, undefined, 32_000],
    [200, undefined, 4096],
    [200, undefined, 4096],
  ]);
});

test('a file that says all of it is never refused', async () => {
  const seen = upstream.asked.length;
  for (const more of [{}, { max_tokens: 7 }, { max_tokens: 32_000 }])
    expect((await ask('said', more)).status).toBe(200);
  expect(askedSince(seen)).toEqual([
    [200, undefined, 4096],
    [200, undefined, 7],
    [200, undefined, 4096],
  ]);
});

test('a service that takes no cap gets none; it earns what was cut, and no flag', async () => {
  const seen = upstream.asked.length;
  const response = await ask('none', { max_completion_tokens: 3 });
  const reply = (await response.json()) as { choices: { message: { content: string }; finish_reason: string }[] };
  expect(reply.choices).toMatchObject([{ message: { content: 'word0 word1 ' }, finish_reason: 'length' }]);
  expect(askedSince(seen)).toEqual([[200, undefined, undefined]]);
  await spine.quiet();
  expect(await spine.generation(response.headers.get('x-generation-id'))).toMatchObject({
    tokens_completion: 3,
    flags: [],
    provider: provider.id,
  });
});
