import { rmSync } from 'node:fs';
import fc from 'fast-check';
import { inject, expect, onTestFinished, test } from 'vitest';
import { newDataDirectory } from '../support/data-directory.ts';
import { ENGINES } from '../support/engines.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { startProvider } from '../support/provider.ts';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { answerWith, imageBlock, pngThatSays, startImageProvider } from './support/image-provider.ts';

// For any prices and any call, the quote is the charge: also of a gateway that was started anew with other prices.

const IMAGE = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const micros = fc.integer({ min: 10, max: 3_000_000 });
const pricesOf = fc.record({ generation: micros, two: micros, high: micros, edit: micros, input: micros });
type Prices = typeof pricesOf extends fc.Arbitrary<infer T> ? T : never;

const callOf = fc.record({
  n: fc.integer({ min: 1, max: 5 }),
  inputs: fc.integer({ min: 0, max: 3 }),
  resolution: fc.constantFrom('1K', '2K'),
  quality: fc.constantFrom(undefined, 'high'),
});
type Asked = typeof callOf extends fc.Arbitrary<infer T> ? T : never;

/** USD, exact. */
const usd = (amount: number) => (amount / 1e6).toFixed(6);

const blockOf = (url: string, { generation, two, high, edit, input }: Prices) =>
  imageBlock({
    url,
    params: 'edits = true',
    lines: 'resolutions = ["1K", "2K"]',
    generation: generation / 1e6,
    pricing: `resolutions = { "2K" = "${usd(two)}" }
variants = { "2K/high" = "${usd(high)}", "edit/2K" = "${usd(two)}", "edit/1K/high" = "${usd(high)}" }
edit = "${usd(edit)}"
input_image = "${usd(input)}"`,
  });

/** Micro-USD, from the rules of docs/use/images.md. */
function expected({ generation, two, high, edit, input }: Prices, { n, inputs, resolution, quality }: Asked): number {
  const [large, best] = [resolution === '2K', quality === 'high'];
  if (inputs === 0) return n * (large ? (best ? high : two) : generation);
  return n * (large ? two : best ? high : edit) + inputs * input;
}

const bodyOf = ({ n, inputs, resolution, quality }: Asked) => ({
  model: 'test/paint',
  prompt: 'A',
  n,
  resolution,
  ...(quality ? { quality } : {}),
  ...(inputs > 0 ? { images: Array.from({ length: inputs }, () => IMAGE) } : {}),
});

test.each(ENGINES)('on %s', async (engine) => {
  const dataDir = newDataDirectory();
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  const fresh = engine === 'postgres' ? await freshDatabase(inject('postgresUrl')) : null;
  if (fresh) onTestFinished(fresh.drop);
  const [painter, provider] = [await startImageProvider(), await startProvider()];
  painter.answer((request, response) => {
    const b64 = pngThatSays(2_048, 2_048).toString('base64');
    return answerWith(...Array.from({ length: Number(request.body['n'] ?? 1) }, () => ({ b64_json: b64 })))(
      request,
      response,
    );
  });
  onTestFinished(() => painter.close());
  onTestFinished(() => provider.stop());
  const start = (prices: Prices) =>
    startSpine({
      dataDir,
      provider,
      credit: '1000000',
      toml: UNHURRIED + blockOf(painter.url, prices),
      ...(fresh ? { databaseUrl: fresh.url } : {}),
    });

  const pathOf = ({ inputs }: Asked) => (inputs > 0 ? '/image/edit' : '/image/generate');
  const quote = async (spine: Spine, call: Asked) =>
    (await (await spine.post(`${pathOf(call)}/quote`, bodyOf(call))).json()) as {
      quote_id: string;
      price_micro_usdc: number;
    };
  const charge = async (spine: Spine, call: Asked, id: string, amount: number) => {
    const before = await spine.balance();
    // A cap that the quote is within, also where today's price is not.
    const capped = { 'x-max-cost': (amount / 1e6).toFixed(6) };
    const response = await spine.post(pathOf(call), { ...bodyOf(call), quote_id: id }, capped);
    expect([response.status, (await response.text()).slice(0, 200)]).toEqual([200, expect.any(String)]);
    return Number(before.available - (await spine.balance()).available);
  };

  const cases = fc.sample(fc.tuple(pricesOf, pricesOf, fc.array(callOf, { minLength: 6, maxLength: 6 })), 2);
  const raised = async (prices: Prices, later: Prices, calls: readonly Asked[]): Promise<void> => {
    const first = await start(prices);
    const quotes: { id: string; amount: number; call: Asked }[] = [];
    for (const call of calls) {
      const { quote_id: id, price_micro_usdc: amount } = await quote(first, call);
      expect(amount).toBe(expected(prices, call));
      quotes.push({ id, amount, call });
    }
    const half = quotes.length / 2;
    for (const { id, amount, call } of quotes.slice(0, half)) {
      expect(await charge(first, call, id, amount)).toBe(amount);
    }
    expect(await first.faults()).toEqual([]);
    await first.stop();

    const second = await start(later);
    for (const { id, amount, call } of quotes.slice(half)) {
      expect(await charge(second, call, id, amount)).toBe(amount);
    }
    const now = quotes[0]!.call;
    expect((await quote(second, now)).price_micro_usdc).toBe(expected(later, now));
    expect(await second.faults()).toEqual([]);
    await second.stop();
  };
  for (const [prices, later, calls] of cases) {
    await raised(prices, later, calls);
  }
});
