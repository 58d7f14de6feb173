import { afterAll, beforeAll, expect, test } from 'vitest';
import { newDataDirectory } from '../../support/data-directory.ts';
import { dialIn, type DialledIn } from '../../support/dial-in.ts';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { solanaWallet } from '../../support/wallets.ts';
import { startVendor } from './vendor-upstream.ts';

// Prices by length of the prompt and by service tier travel with a registration, and are kept with it.

const MODEL = 'acme/tiered';
const PRICING = `
prompt = 2
completion = 10
internal_reasoning = 20
image = 0.001
tiers = [{ above = 2000, prompt = 4 }, { above = 3000, completion = 15, image = 0.5 }]
service_tiers = { flex = { prompt = 1, completion = 5, internal_reasoning = 10 } }`;
const wallet = solanaWallet();

const services = (url: string, pricing: string) => `
[[models]]
name = "${MODEL}"
display_name = "Acme: Tiered"
input_modalities = ["text", "image"]
provider_name = "Acme"
context_length = 100000
max_output_tokens = 4096
[models.pricing]${pricing}
[models.params]
model = "m"
api_base = "${url}"
hidden_reasoning_max = 100
`;

let vendor: Awaited<ReturnType<typeof startVendor>>;
let spine: Spine;
let proxy: DialledIn;
let dataDir: string;
const start = () => startSpine({ toml: `${UNHURRIED}[tunnel]\nproviders = "anyone"\n`, credit: '100', dataDir });
beforeAll(async () => {
  vendor = await startVendor();
  dataDir = newDataDirectory();
  spine = await start();
  proxy = await dialIn({ router: spine.origin, services: services(vendor.url, PRICING), wallet });
});
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await proxy.close();
    await spine.stop();
    await vendor.stop();
  }
});

const usage = (prompt: number, completion: number, reasoning = 0) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
  completion_tokens_details: { reasoning_tokens: reasoning },
});

async function call(length: number, more: object = {}) {
  const messages = [{ role: 'user', content: 'a'.repeat(length) }];
  const answer = await spine.post('/chat/completions', { model: MODEL, max_tokens: 50, messages, ...more });
  const body = (await answer.json()) as { usage?: { cost: number }; error?: { message: string } };
  return { status: answer.status, cost: Math.round((body.usage?.cost ?? 0) * 1e6), error: body.error?.message };
}

test.each([
  [1_500, {}, usage(1_400, 10), undefined, 2_800 + 100],
  [2_500, {}, usage(2_400, 10), undefined, 9_600 + 100],
  [3_500, {}, usage(3_400, 10), undefined, 13_600 + 150],
  [1_500, { service_tier: 'flex' }, usage(1_400, 10), 'flex', 1_400 + 50],
  // The service tier has no tiers of its own.
  [3_500, { service_tier: 'flex' }, usage(3_400, 10), 'priority', 3_400 + 50],
  [1_500, {}, usage(1_400, 40, 30), undefined, 2_800 + 100 + 600],
  // A claim of more reasoning than was declared is cut: 12 bytes of text, 32 tokens around it, and 100.
  [1_500, { max_tokens: 1_000 }, usage(1_400, 900, 900), undefined, 2_800 + 144 * 20],
])('%i bytes with %j and the claim %j (%s) cost %i', async (length, more, claim, tier, cost) => {
  vendor.reply = { usage: claim, tier };
  expect(await call(length, more)).toEqual({ status: 200, cost, error: undefined });
});

test('are compared with max_price at the length of the call', async () => {
  vendor.reply = { usage: usage(1_400, 10) };
  const provider = { max_price: { prompt: 3, completion: 20 } };
  expect(await call(1_500, { provider })).toMatchObject({ status: 200, cost: 2_900 });
  expect(await call(2_500, { provider })).toMatchObject({
    status: 422,
    error: expect.stringContaining('provider.max_price.prompt is 3 USD per 1M tokens') as string,
  });
  // The reasoning of any call costs 20.
  expect(await call(1_500, { provider: { max_price: { completion: 15 } } })).toMatchObject({
    status: 422,
    error: expect.stringContaining('internal_reasoning of this call may cost 20') as string,
  });
});

test('of pictures are compared with max_price, too', async () => {
  vendor.reply = { usage: usage(1_400, 10) };
  const picture = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } };
  const asked = (length: number) => ({
    messages: [{ role: 'user', content: [{ type: 'text', text: 'a'.repeat(length) }, picture] }],
    provider: { max_price: { image: 0.01 } },
  });
  // A picture may have 2,048 tokens.
  expect(await call(0, asked(100))).toMatchObject({ status: 200 });
  expect(await call(0, asked(3_500))).toMatchObject({
    status: 422,
    error: expect.stringContaining(
      'max_price.image is 0.01 USD per image, but image of this call may cost 0.5',
    ) as string,
  });
});

test('are listed as OpenRouter names them, and in full on the page of the service', async () => {
  const { data } = (await (await spine.get(`/models`)).json()) as { data: { id: string; pricing: object }[] };
  expect(data.find(({ id }) => id === MODEL)!.pricing).toEqual({
    prompt: '0.000002',
    completion: '0.00001',
    image: '0.001',
    internal_reasoning: '0.00002',
    overrides: [
      {
        min_prompt_tokens: 2_001,
        prompt: '0.000004',
        completion: '0.00001',
        image: '0.001',
        internal_reasoning: '0.00002',
      },
      {
        min_prompt_tokens: 3_001,
        prompt: '0.000004',
        completion: '0.000015',
        image: '0.5',
        internal_reasoning: '0.00002',
      },
    ],
  });
  const page = (await (await spine.get(`/services/model/${MODEL}`)).json()) as { data: { pricing: object } };
  expect(page.data.pricing).toEqual({
    prompt: 2,
    completion: 10,
    image: 0.001,
    internal_reasoning: 20,
    tiers: [
      { above: 2_000, prompt: 4, completion: 10, image: 0.001, internal_reasoning: 20 },
      { above: 3_000, prompt: 4, completion: 15, image: 0.5, internal_reasoning: 20 },
    ],
    service_tiers: { flex: { prompt: 1, completion: 5, image: 0.001, internal_reasoning: 10 } },
  });
});

test('survive a restart of the gateway', async () => {
  await proxy.close();
  await spine.stop();
  spine = await start();
  proxy = await dialIn({ router: spine.origin, services: services(vendor.url, PRICING), wallet });
  vendor.reply = { usage: usage(2_400, 10) };
  expect(await call(2_500)).toMatchObject({ status: 200, cost: 9_700 });
});

test('that rise for long prompts have a notice period, which names the length', async () => {
  await proxy.reload(services(vendor.url, PRICING.replace('prompt = 4', 'prompt = 9')));
  vendor.reply = { usage: usage(2_400, 10) };
  const refused = await call(2_500);
  expect(refused.status).toBe(422);
  expect(refused.error).toContain('prompt from 4 to 9 USD per 1M tokens for prompts of more than 2000 tokens');
  expect(await call(2_500, { max_cost: 1 })).toMatchObject({ status: 200, cost: 2_400 * 9 + 100 });
});
