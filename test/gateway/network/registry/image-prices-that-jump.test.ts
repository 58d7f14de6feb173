import { expect, test } from 'vitest';
import type { MicroUsd, Rates } from '#billing/amounts';
import type { ImageService } from '../../../../src/server/config/service.ts';
import { rejectPriceIncrease } from '../../../../src/gateway/call/cost-cap.ts';
import { imageVariants } from '../../../../src/server/config/blocks/image-block.ts';
import { priceAsListed } from '../../../../src/media/image-price.ts';
import { nextPastPrices, withRaises } from '../../../../src/gateway/network/registry/registered-services.ts';
import { offerOfTunnel } from '../../../../src/gateway/network/registry/listing.ts';

// An image without a price of its own costs as much as a more general kind of image. A raise is compared with that.

interface Pricing {
  readonly generation: MicroUsd;
  readonly resolutions?: Readonly<Record<string, MicroUsd>>;
  readonly variants?: Readonly<Record<string, MicroUsd>>;
  readonly edit?: MicroUsd;
}

const service = ({ generation, resolutions = {}, variants = {}, edit }: Pricing): ImageService => ({
  primitive: 'image',
  name: 'a/paint',
  displayName: 'Paint',
  providerName: 'Acme',
  description: '',
  rates: { image: generation } satisfies Rates,
  variants: imageVariants({ generation, resolutions, variants, edit: edit ?? null, inputImage: null, prompt: null }),
  media: {
    upstreamModel: 'paint',
    supportedParams: [],
    aspectRatios: [],
    formats: [],
    resolutions: ['1K', '4K'],
    durations: [],
  },
});

const NOTICE = { now: 1_000, noticeMs: 60_000 };
type Ask = Parameters<typeof priceAsListed>[0];
const ask = (resolution: string, quality: string | null, edits = false) =>
  ({ resolution, quality, size: null, edit: edits ? { count: 1 } : null }) as unknown as Ask;

/** Whether a call at the new prices is refused, and the price before that the refusal names. */
function refused(before: Pricing, after: Pricing, call: Ask): string | null {
  const past = nextPastPrices([], [{ service: service(before), createdAt: 0 }], [service(after)], NOTICE);
  const [registered] = withRaises([{ service: service(after), createdAt: 0 }], past);
  const offer = offerOfTunnel(registered!, 'p');
  const price = (of: typeof offer) => priceAsListed(call, of);
  try {
    rejectPriceIncrease(
      offer,
      { price, priceBefore: price, preferences: { maxPrice: null } as never },
      price(offer).rates,
      () => NOTICE.now,
    );
    return null;
  } catch (error) {
    return /image from (\S+) to/.exec((error as Error).message)![1]!;
  }
}

const CENT = 10_000_000_000n;
const tier = { '1K': CENT };

test.each<[string, Pricing, Pricing, Ask]>([
  [
    'a quality of a tier that is cheaper than other images',
    { generation: 100n * CENT, resolutions: tier },
    { generation: 100n * CENT, resolutions: tier, variants: { '1K/high': 100n * CENT } },
    ask('1K', 'high'),
  ],
  [
    'a further quality of such a tier',
    { generation: 100n * CENT, resolutions: tier, variants: { '1K/low': CENT } },
    { generation: 100n * CENT, resolutions: tier, variants: { '1K/low': CENT, '1K/high': 100n * CENT } },
    ask('1K', 'high'),
  ],
  [
    'edits in such a tier',
    { generation: 100n * CENT, resolutions: tier },
    { generation: 100n * CENT, resolutions: tier, edit: 100n * CENT },
    ask('1K', null, true),
  ],
])('the first own price of %s is compared with what they cost before', (_name, before, after, call) => {
  expect(refused(before, after, call)).toBe('0.01');
  expect(refused(before, before, call)).toBeNull();
});

test('the first own price of a quality needs no notice if its tier cost as much', () => {
  const before = { generation: CENT, resolutions: { '4K': 100n * CENT }, variants: { '4K/low': 50n * CENT } };
  const after = { ...before, variants: { ...before.variants, '4K/high': 120n * CENT } };
  expect(refused(before, after, ask('4K', 'high'))).toBeNull();
  const past = nextPastPrices([], [{ service: service(before), createdAt: 0 }], [service(after)], NOTICE);
  expect(withRaises([{ service: service(after), createdAt: 0 }], past)[0]).not.toHaveProperty('raised');
});

test('the lowest price of a notice counts for every kind of image', () => {
  const first = service({ generation: 100n * CENT, resolutions: tier });
  const second = service({ generation: 100n * CENT, resolutions: tier, variants: { '1K/high': 3n * CENT } });
  const third = service({ generation: 100n * CENT, resolutions: tier, variants: { '1K/high': 5n * CENT } });
  const one = nextPastPrices([], [{ service: first, createdAt: 0 }], [second], NOTICE);
  const two = nextPastPrices(one, [{ service: second, createdAt: 0 }], [third], NOTICE);
  expect(two[0]!.prices.variants['1K/high']).toEqual({ image: CENT });
});
