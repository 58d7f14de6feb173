import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseUsd } from '#billing/amounts';
import { ask, modelBlock, startSpine, type Generation, type Spine } from '../support/spine.ts';

// What a call cost can be computed again by hand: from the lines of its record, and from the price that it names.

interface Priced extends Generation {
  readonly price: string;
  readonly cost_lines: readonly {
    readonly meter: string;
    readonly units: number;
    readonly usd_per_unit: string;
    readonly amount_usd: string;
  }[];
}
interface ShownPrice {
  readonly id: string;
  readonly provider: string;
  readonly service: string;
  readonly rates: Readonly<Record<string, string>>;
  readonly tiers: readonly { readonly above: number; readonly rates: Readonly<Record<string, string>> }[];
}

let spine: Spine;
beforeAll(async () => {
  const pricing = '[[models.pricing.tiers]]\nabove = 3\nprompt = 0.35\ncompletion = 7\n';
  spine = await startSpine({
    toml: modelBlock({ name: 'tiered/model', provider: 'Tiered', url: '{provider}', prompt: 0.15, pricing }),
  });
});
afterAll(() => spine.stop());

async function called(model: string): Promise<Priced> {
  const answer = await spine.post('/chat/completions', ask('hello there, you', { model }));
  expect(answer.status).toBe(200);
  await answer.text();
  return (await spine.generation(answer.headers.get('x-generation-id'))) as Priced;
}
const priceOf = async (id: string) => {
  const answer = await fetch(`${spine.url}/prices/${id}`);
  return { status: answer.status, body: (await answer.json()) as { readonly data: ShownPrice } };
};
/** A decimal as a whole number of 10^-12 USD. */
const picoUsd = (usd: string) =>
  parseUsd(usd.slice(0, usd.indexOf('.') + 7)) * 1_000_000n + BigInt((usd.split('.')[1] ?? '').slice(6).padEnd(6, '0'));

test.each(['test/model', 'tiered/model'])('the lines of a call of %s are its charge, rounded up', async (model) => {
  const call = await called(model);
  const { status, body } = await priceOf(call.price);
  expect([status, body.data.id, body.data.provider]).toEqual([200, call.price, call.provider]);
  const tier = body.data.tiers.findLast(({ above }) => call.tokens_prompt > above);
  expect(tier === undefined).toBe(model === 'test/model');
  let sum = 0n;
  for (const line of call.cost_lines) {
    expect(line.usd_per_unit).toBe((tier ?? body.data).rates[line.meter]);
    expect(picoUsd(line.amount_usd)).toBe(picoUsd(line.usd_per_unit) * BigInt(line.units));
    sum += picoUsd(line.amount_usd);
  }
  expect(call.cost_lines.map(({ meter }) => meter)).toEqual(['prompt', 'completion']);
  expect((sum + 999_999n) / 1_000_000n).toBe(BigInt(call.cost_micro_usdc));
  expect(await spine.faults()).toEqual([]);
});

test('a price that never was is not found', async () => {
  expect((await priceOf('price-00000000000000000000000000000000')).status).toBe(404);
});
