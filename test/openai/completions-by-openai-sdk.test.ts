import OpenAI from 'openai';
import { beforeAll, expect, test } from 'vitest';
import { MODEL, UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// The older Completions API by OpenAI's SDK as it is on npm. Payments in place are tested with those of messages.

let client: OpenAI;
const spine = spineOfFile(() => ({ toml: UNHURRIED }));
beforeAll(() => {
  client = new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 });
});

const asked = { model: MODEL, prompt: 'hello !tokens:4', max_tokens: 20, temperature: 0.5, stop: ['END'] };
type Costs = { readonly cost: number; readonly prompt_tokens: number; readonly completion_tokens: number };

test('a prompt is a message of the user, and is charged as chat is', async () => {
  const before = await spine.balance();
  const { data, response } = await client.completions.create(asked).withResponse();
  expect(data).toMatchObject({
    object: 'text_completion',
    model: MODEL,
    choices: [{ index: 0, finish_reason: 'stop', logprobs: null }],
  });
  expect(data.id).toBe(`cmpl-${response.headers.get('x-generation-id')!.slice('gen-'.length)}`);
  expect(spine.provider.log.at(-1)!.body).toMatchObject({
    messages: [{ role: 'user', content: asked.prompt }],
    max_tokens: 20,
    temperature: 0.5,
    stop: ['END'],
  });
  const { cost, prompt_tokens: prompt, completion_tokens: completion } = data.usage as unknown as Costs;
  expect(completion).toBe(4);
  await spine.quiet();
  const charged = before.available - (await spine.balance()).available;
  expect(charged).toBe(BigInt(prompt + 2 * completion));
  expect(Math.round(cost * 1e6)).toBe(Number(charged));
});

test('a stream says the same, with its use at the end', async () => {
  const whole = await client.completions.create({ ...asked, prompt: [asked.prompt] });
  const chunks = await Array.fromAsync(await client.completions.create({ ...asked, stream: true }));
  expect(chunks.map(({ choices }) => choices[0]!.text).join('')).toBe(whole.choices[0]!.text);
  expect(chunks.map(({ choices }) => choices[0]!.finish_reason).filter((reason) => reason !== null)).toEqual(['stop']);
  expect((chunks.at(-1)!.usage as unknown as Costs).cost).toBe((whole.usage as unknown as Costs).cost);
  expect(new Set(chunks.map(({ id, object }) => `${id} ${object}`)).size).toBe(1);
  const raw = await (await spine.post('/completions', { ...asked, stream: true })).text();
  expect(raw.endsWith('data: [DONE]\n\n')).toBe(true);
});

test('a repeat with its key is answered alike and costs nothing', async () => {
  const headers = { 'idempotency-key': 'once' };
  const first = await (await spine.post('/completions', asked, headers)).text();
  await spine.quiet();
  const [before, calls] = [await spine.balance(), spine.provider.log.length];
  expect(await (await spine.post('/completions', asked, headers)).text()).toBe(first);
  expect((await spine.post('/completions', { ...asked, prompt: 'other' }, headers)).status).toBe(409);
  expect([await spine.balance(), spine.provider.log.length]).toEqual([before, calls]);
});

test('a failure is free, and an error as chat has it', async () => {
  const before = await spine.balance();
  for (const stream of [false, true]) {
    const response = await spine.post('/completions', { ...asked, prompt: 'x !status:500', stream });
    expect(response.status).toBe(500);
    expect(await response.json()).toMatchObject({ error: { type: 'provider_unavailable', code: 500 } });
  }
  await spine.quiet();
  expect((await spine.balance()).available).toBe(before.available);
});

test('an account without money gets 402 with the terms', async () => {
  const { key } = await spine.tenant('poor', '0.000001');
  const response = await spine.post('/completions', asked, { authorization: `Bearer ${key}` });
  expect(response.status).toBe(402);
  expect(await response.json()).toMatchObject({ x402Version: 2, error: { type: 'insufficient_balance' } });
});
