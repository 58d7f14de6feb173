import { parseRates, priceId } from '#billing/amounts';
import type { Offer } from '../../../../src/server/catalog/offers.ts';
import type { Primitive } from '../../../../src/server/config/names.ts';

interface OfferFacts {
  readonly provider: string;
  readonly service?: string;
  readonly primitive?: Primitive;
  /** USD per 1M, prompt and completion alike. */
  readonly price?: number;
  readonly pricing?: Readonly<Record<string, number>>;
}

/** An offer with what a test says of it. The provider's id is its name behind `id-`. */
export function offer({
  provider,
  service = 'acme/small',
  primitive = 'model',
  price = 1,
  pricing = { prompt: price, completion: price },
}: OfferFacts): Offer {
  const id = `id-${provider}`;
  const rates = parseRates(pricing);
  return {
    id: `${primitive}/${id}:${service}`,
    service,
    primitive,
    provider: { id, name: provider },
    price: { id: priceId(id, service, rates), rates },
    variants: {},
    priceCap: null,
    endpoint: { kind: 'direct', baseUrl: 'http://127.0.0.1:9/v1', headers: {} },
    displayName: service,
    description: '',
    createdAt: 0,
    model:
      primitive === 'model'
        ? {
            upstreamModel: service,
            contextLength: 1000,
            maxOutputTokens: null,
            inputModalities: ['text'],
            outputModalities: ['text'],
          }
        : null,
    agent: null,
    media: null,
  };
}

export const names = (offers: readonly Offer[]): string[] => offers.map(({ provider }) => provider.name);

/** Numbers in [0, 1) that are the same in every run (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A clock that a test moves. */
export function clock(start = 1_700_000_000_000): { (): number; advance(ms: number): void } {
  let time = start;
  return Object.assign(() => time, { advance: (ms: number) => void (time += ms) });
}
