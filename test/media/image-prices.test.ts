import fc from 'fast-check';
import { expect, test } from 'vitest';
import { UNHURRIED } from '../support/spine.ts';
import { imageBlock, type Images, pngThatSays, startImageProvider } from './support/image-provider.ts';
import { ofFile, spineOfFile } from '../support/of-file.ts';

// What an image costs can be read from /models, and is what is locked and charged.

const QUALITIES = ['low', 'medium', 'high'];
/** Micro-USD of an image. */
const amount = fc.integer({ min: 10, max: 200_000 });
const usd = (micro: number) => (micro / 1e6).toFixed(6);

const pricing = fc.record({
  generation: amount,
  resolutions: fc.dictionary(fc.constantFrom('1K', '2K', '4K'), amount),
  variants: fc.dictionary(
    fc.tuple(fc.constantFrom('1K', '2K', '4K'), fc.constantFrom(...QUALITIES)).map((both) => both.join('/')),
    amount,
  ),
});
type Pricing = typeof pricing extends fc.Arbitrary<infer P> ? P : never;

const tomlOf = (prices: Readonly<Record<string, number>>) =>
  `{ ${Object.entries(prices)
    .map(([name, micro]) => `"${name}" = "${usd(micro)}"`)
    .join(', ')} }`;

/** Made once: a price is part of the configuration. */
const SAMPLES: readonly Pricing[] = fc.sample(pricing, { numRuns: 12, seed: 16 });

const provider = ofFile(startImageProvider, (one) => one.close());
const spine = spineOfFile(() => {
  provider.answer((request, response) => {
    const [width = 64, height = 64] = String(request.body['size'] ?? '64x64')
      .split('x')
      .map(Number);
    const one = { b64_json: pngThatSays(width, height).toString('base64') };
    const data = Array.from({ length: Number(request.body['n']) }, () => one);
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data }));
  });
  const blocks = SAMPLES.map(({ generation, resolutions, variants }, index) =>
    imageBlock({
      url: provider.url,
      name: `test/p${index}`,
      pricing: `resolutions = ${tomlOf(resolutions)}\nvariants = ${tomlOf(variants)}`,
    }).replace('generation = 0.04', `generation = "${usd(generation)}"`),
  );
  return { toml: UNHURRIED + blocks.join('') };
});

interface Listed {
  readonly id: string;
  readonly pricing: {
    readonly generation: number;
    readonly resolutions?: Readonly<Record<string, number>>;
    readonly variants?: Readonly<Record<string, number>>;
  };
}

test('the charge follows from the listed prices, for any tier, quality and number', async () => {
  const { image_models: listed } = (await (await spine.get('/models?type=image')).json()) as { image_models: Listed[] };
  const request = fc.record({
    index: fc.nat(SAMPLES.length - 1),
    n: fc.integer({ min: 1, max: 10 }),
    tier: fc.constantFrom(null, '1K', '2K', '4K'),
    quality: fc.constantFrom(null, 'auto', ...QUALITIES),
  });
  await fc.assert(
    fc.asyncProperty(request, async ({ index, n, tier, quality }) => {
      const { pricing: prices } = listed.find(({ id }) => id === `test/p${index}`)!;
      const { generation, resolutions = {}, variants = {} } = prices;
      const tiers = [
        ...new Set([...Object.keys(resolutions), ...Object.keys(variants).map((name) => name.slice(0, 2))]),
      ];
      const qualities = Object.keys(variants).map((name) => name.slice(3));
      const named = quality === 'auto' ? null : quality;
      const response = await spine.post('/image/generate', {
        model: `test/p${index}`,
        prompt: 'A',
        n,
        resolution: tier,
        quality,
      });
      if ((tier !== null && !tiers.includes(tier)) || (named !== null && !qualities.includes(named))) {
        expect(response.status).toBe(422);
        return;
      }
      const { usage } = (await response.json()) as Images;
      const asked = tier ?? (tiers.includes('1K') ? '1K' : tiers[0]);
      const each =
        (named === null ? undefined : variants[`${asked}/${named}`]) ?? resolutions[asked ?? ''] ?? generation;
      expect(Math.round(usage.cost * 1e6)).toBe(n * Math.round(each * 1e6));
    }),
    { numRuns: 60 },
  );
  expect(await spine.faults()).toEqual([]);
});
