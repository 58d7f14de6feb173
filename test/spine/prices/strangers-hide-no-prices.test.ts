import { afterAll, beforeAll, expect, test } from 'vitest';
import { dialIn, offeredModel, type DialledIn } from '../../support/dial-in.ts';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { startVendor } from './vendor-upstream.ts';

// A stranger whose price looks low gets no calls that cost much more than the operator's own offer.

const HIDDEN = {
  'a tier that nearly every prompt is in': 'tiers = [{ above = 1, prompt = 9000, completion = 9000 }]',
  'a price of reasoning': 'internal_reasoning = 9000',
  'a price of pictures that nobody asked for': 'image_output = 9000',
};

let vendor: Awaited<ReturnType<typeof startVendor>>;
let spine: Spine;
const proxies: DialledIn[] = [];
const modelOf = (index: number) => `acme/model-${index}`;
beforeAll(async () => {
  vendor = await startVendor();
  const names = Object.keys(HIDDEN).map((_, index) => modelOf(index));
  spine = await startSpine({
    credit: '1000',
    toml:
      `${UNHURRIED}[tunnel]\nproviders = "anyone"\nshared_names = ${JSON.stringify(names)}\n` +
      names.map((name) => modelBlock({ name, provider: 'Acme', url: vendor.url, prompt: 2, completion: 10 })).join(''),
  });
  for (const [index, pricing] of Object.values(HIDDEN).entries())
    proxies.push(
      await dialIn({
        router: spine.origin,
        services: offeredModel({
          url: vendor.url,
          name: modelOf(index),
          provider: `Stranger ${index}`,
          prompt: 0.01,
          completion: `0.01\n${pricing}`,
        }),
      }),
    );
});
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    for (const proxy of proxies) await proxy.close();
    await spine.stop();
    await vendor.stop();
  }
});

test.each(Object.keys(HIDDEN).map((name, index) => [name, modelOf(index)]))('%s', async (_name, model) => {
  vendor.reply = { usage: { prompt_tokens: 60, completion_tokens: 10, total_tokens: 70 } };
  for (const more of [{}, { provider: { sort: 'price' } }])
    for (let i = 0; i < 5; i++) {
      const answer = await spine.post('/chat/completions', {
        model,
        max_tokens: 50,
        messages: [{ role: 'user', content: 'a'.repeat(100) }],
        ...more,
      });
      const body = (await answer.json()) as { provider: string; usage: { cost: number } };
      expect(body).toMatchObject({ provider: 'Acme', usage: { cost: 0.00022 } });
    }
});
