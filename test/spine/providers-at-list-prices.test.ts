import { afterAll, beforeAll, expect, it } from 'vitest';
import { newDataDirectory } from '../support/data-directory.ts';
import { type ListingProvider, startListingProvider } from '../support/listing-provider.ts';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// A provider that the file names in two lines: its models are called and billed at their list prices, a jump of a price
// has the usual notice, and nothing that a consumer writes makes a call dearer for the operator than for the consumer.

const KEY = 'sk-canary-of-the-provider';
const NAME = 'openai/gpt-4.1-mini';
const NOTICE_MS = 60_000;

let provider: ListingProvider;
let spine: Spine;
let dataDir: string;
let clock = Date.parse('2026-11-26T12:00:00Z');
const file = (more = '') =>
  `${UNHURRIED}[tunnel]\nprice_notice_ms = ${NOTICE_MS}\n[[providers]]\nuse = "openai"\n${more}`;
const start = (more: string) =>
  startSpine({
    toml: file(more),
    dataDir,
    credit: '100',
    env: { OPENAI_API_KEY: KEY, OPENAI_BASE_URL: provider.url },
    now: () => clock,
  });

beforeAll(async () => {
  provider = await startListingProvider(['gpt-4.1-mini', 'gpt-99']);
  dataDir = newDataDirectory();
  spine = await start('markup = "10%"');
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  expect(spine.logs.join('\n')).not.toContain(KEY);
  await spine.stop();
  await provider.stop();
});

const ask = (more: object = {}) =>
  spine.post('/chat/completions', { model: NAME, messages: [{ role: 'user', content: 'hello' }], ...more });
const costOf = async (response: Response) => {
  const body = (await response.json()) as { usage: { cost: number } };
  expect(response.status, JSON.stringify(body)).toBe(200);
  return body.usage.cost;
};
async function reload(more: string) {
  spine.writeFile(file(more));
  const response = await fetch(`${spine.origin}/admin/v1/reload`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.adminKey}` },
  });
  const body = (await response.json()) as { data: { services: Record<string, string[]> } };
  expect(response.status, JSON.stringify(body)).toBe(200);
  return body.data.services;
}

interface Listed {
  readonly id: string;
  readonly context_length: number;
  readonly pricing: { readonly prompt: string };
}
const models = async () => ((await (await spine.get('/models')).json()) as { data: Listed[] }).data;

it('is billed at the list price with the markup', async () => {
  provider.bill({
    prompt_tokens: 1_000,
    completion_tokens: 100,
    total_tokens: 1_100,
    prompt_tokens_details: { cached_tokens: 400 },
  });
  // 0.4, 0.1 and 1.6 USD for 1M tokens + 10 %: 600 x 0.44 + 400 x 0.11 + 100 x 1.76.
  expect(await costOf(await ask({ messages: [{ role: 'user', content: 'word '.repeat(1_000) }] }))).toBe(0.000484);
  expect(provider.chats.at(-1)).toMatchObject({ model: 'gpt-4.1-mini' });
});

it('is listed with its context and its price; a model without a price is not', async () => {
  const listed = await models();
  expect(listed.find(({ id }) => id === NAME)).toMatchObject({
    context_length: 1_000_000,
    pricing: { prompt: '0.00000044' },
  });
  expect(listed.map(({ id }) => id)).not.toContain('openai/gpt-99');
  expect((await ask({ model: 'openai/gpt-99' })).status).toBe(404);
});

it('nothing that costs the operator more reaches the provider', async () => {
  const dear = {
    service_tier: 'priority',
    prediction: { type: 'content', content: 'x'.repeat(1_000) },
    search_parameters: { mode: 'on' },
    speed: 'fast',
    anything: { else: true },
  };
  await costOf(await ask({ ...dear, temperature: 0.5 }));
  const sent = provider.chats.at(-1)!;
  expect(sent).toMatchObject({ temperature: 0.5 });
  for (const field of Object.keys(dear)) expect(sent, field).not.toHaveProperty(field);
});

it('a call without a limit locks no more than an answer of the model can be', async () => {
  await costOf(await ask());
  expect(provider.chats.at(-1)).toMatchObject({ max_completion_tokens: 32_768 });
});

it('a model that the provider lists later is offered after a reload, and one that is gone is not', async () => {
  provider.list({ json: { data: [{ id: 'gpt-4.1-mini' }, { id: 'gpt-5' }] } });
  expect(await reload('markup = "10%"')).toMatchObject({ added: ['model openai/gpt-5 of openai'], removed: [] });
  provider.list({ json: { data: [{ id: 'gpt-4.1-mini' }] } });
  expect(await reload('markup = "10%"')).toMatchObject({ added: [], removed: ['model openai/gpt-5 of openai'] });
});

it('a provider that does not answer keeps its models', async () => {
  provider.list({ status: 503, json: {} });
  expect(await reload('markup = "10%"')).toEqual({ added: [], changed: [], removed: [] });
  provider.list({ json: { data: [{ id: 'gpt-4.1-mini' }] } });
});

it('a file with a mistake changes nothing', async () => {
  spine.writeFile(file('markup = "10"'));
  const response = await fetch(`${spine.origin}/admin/v1/reload`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.adminKey}` },
  });
  expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('providers[0].markup')]);
  await costOf(await ask());
});

it('a price that more than doubles is accepted by name for a while, on a restart too', async () => {
  expect(await reload('markup = "10%"')).toEqual({ added: [], changed: [], removed: [] });
  // A raise by less needs no notice.
  await reload('markup = "50%"');
  await costOf(await ask());

  // The same jump that an update of the list of prices may bring.
  await reload('markup = "400%"');
  const refused = await ask();
  expect([refused.status, await refused.text()]).toEqual([
    422,
    expect.stringContaining('raised the price of openai/gpt-4.1-mini'),
  ]);
  expect(await costOf(await ask({ max_cost: 1 }))).toBeGreaterThan(0);

  await spine.stop();
  spine = await start('markup = "400%"');
  expect((await ask()).status).toBe(422);
  clock += NOTICE_MS;
  await costOf(await ask());
});

it('a model that comes back within a day is compared with its last price', async () => {
  await reload('markup = "0%"');
  await reload('except = ["*"]');
  clock += NOTICE_MS + 1;
  await reload('markup = "900%"');
  expect((await ask()).status).toBe(422);
  clock += NOTICE_MS;
  await costOf(await ask());
});

it("the operator's own blocks have no notice, as before", async () => {
  const own = (price: number) =>
    `only = ["none"]\n[[models]]\nname = "own/model"\npricing = { prompt = ${price}, completion = 1 }\n` +
    `params = { model = "m", api_base = "${provider.url}" }\n`;
  await reload(own(1));
  await reload(own(100));
  await costOf(await ask({ model: 'own/model' }));
});
