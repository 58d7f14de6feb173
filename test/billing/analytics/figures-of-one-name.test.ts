import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createPriceBook } from '#billing/compose';
import { priceId } from '#billing/amounts';
import { ENGINES } from '../../support/engines.ts';
import { MODEL } from '../../support/spine.ts';
import { openFigures, TODAY, type FiguresWorld } from './figures-world.ts';

interface Day {
  readonly date: string;
  readonly [name: string]: unknown;
}
interface Listing {
  readonly data: {
    readonly by_day: readonly Day[];
    readonly providers: readonly {
      readonly provider: string;
      readonly by_day: readonly Day[];
      readonly prices: readonly unknown[];
      readonly [name: string]: unknown;
    }[];
    readonly [name: string]: unknown;
  };
}

const OLD = 'p-that-went';
const EARLIER = { prompt: 500_000n };

describe.each(ENGINES)('GET /analytics/service, %s', (engine) => {
  let world: FiguresWorld;
  let provider: string;
  beforeAll(async () => {
    world = await openFigures(engine, {
      toml: `
[[tools]]
name = "test/tools"
display_name = "Tools"
provider_name = "Test"
endpoint = "{provider}/mcp"
[tools.pricing]
per_call = 0.001
[tools.pricing.tools]
dear = 0.01`,
    });
    provider = world.spine.app.catalog.offers('model')[0]!.provider.id;
    world.clock.now -= 1_000;
    const version = { id: priceId(provider, MODEL, EARLIER), provider, service: MODEL, rates: EARLIER };
    await createPriceBook(world.spine.app.database, () => world.clock.now - 86_400_000).remember([version]);
    const here = { service: MODEL, provider };
    await world.calls(TODAY - 40, here);
    await world.calls(
      TODAY - 29,
      ...Array.from({ length: 19 }, () => ({ ...here, firstByteMs: 100, durationMs: 1_000, completion: 50 })),
      { ...here, firstByteMs: 4_000, durationMs: 9_000, completion: 50 },
    );
    await world.calls(TODAY, { ...here, provider: OLD, reasoning: 2 }, { ...here, end: 'release' });
    const attempt = (day: number, successes: number, failures: number) =>
      world.attempt(day, `model/${provider}:${MODEL}`, successes, failures);
    await attempt(TODAY - 40, 100, 100);
    await attempt(TODAY - 29, 20, 0);
    await attempt(TODAY, 0, 5);
    await world.count();
  });
  afterAll(() => world.stop());

  const read = async (path: string) =>
    (await world.read<Listing>(`/analytics/service/${path}`, { authorization: '' })).body.data;

  test('has 30 days of sums, and each provider', async () => {
    const data = await read(`model/${MODEL}`);
    expect(data).toMatchObject({
      primitive: 'model',
      service: MODEL,
      date_range: { start_date: '2026-10-23', end_date: '2026-11-21' },
      requests: 21,
      failed: 1,
      volume: 2_100,
      volume_usd: 0.0021,
      prompt_tokens: 210,
      completion_tokens: 1_005,
      tokens: 1_215,
      reasoning_tokens: 2,
      images: 0,
      as_of: '2026-11-21T00:00:01.000Z',
    });
    expect(data.by_day).toHaveLength(30);
    expect(data.by_day[0]).toEqual({ date: '2026-10-23', requests: 20, failed: 0, volume: 2_000, tokens: 1_200 });
    expect(data.by_day[1]).toEqual({ date: '2026-10-24', requests: 0, failed: 0, volume: 0, tokens: 0 });
    expect(data.by_day[29]).toEqual({ date: '2026-11-21', requests: 1, failed: 1, volume: 100, tokens: 15 });
    expect(data.providers.map((each) => each.provider)).toEqual([provider, OLD]);
  });

  test('of a provider: attempts with uptime, times, throughput and prices', async () => {
    const [own, gone] = (await read(`model/${MODEL}`)).providers;
    expect(own).toMatchObject({ name: 'Test', requests: 20, attempts: 25, failures: 5, uptime: 0.8 });
    const { first_byte_ms: firstByte, duration_ms: duration } = own as unknown as Record<
      string,
      { p50: number; p95: number }
    >;
    // Nineteen of twenty took as long; the slowest is beyond the 95 %.
    for (const [value, is] of [
      [firstByte!.p50, 100],
      [firstByte!.p95, 100],
      [duration!.p50, 1_000],
      [duration!.p95, 1_000],
    ] as const)
      expect(Math.abs(value / is - 1)).toBeLessThan(0.1);
    expect(own!['throughput']).toBe(35.7);
    expect(own!.by_day[0]).toEqual({ date: '2026-10-23', requests: 20, attempts: 20, failures: 0, uptime: 1 });
    expect(own!.by_day[1]).toEqual({ date: '2026-10-24', requests: 0, attempts: 0, failures: 0, uptime: null });
    expect(own!.by_day[29]).toEqual({ date: '2026-11-21', requests: 0, attempts: 5, failures: 5, uptime: 0 });
    expect(own!.prices).toEqual([
      { from: '2026-11-20T00:59:59.000Z', pricing: { prompt: 0.5 }, current: false, of: null },
      {
        from: expect.any(String) as string,
        pricing: { prompt: 1, completion: 2, image: 0.001 },
        current: true,
        of: null,
      },
    ]);
    expect(gone).toMatchObject({ name: null, requests: 1, attempts: 0, uptime: null, prices: [] });
  });

  test('a list has each that was called or tried, without the days before', async () => {
    const { body } = await world.read<{ data: readonly unknown[]; date_range: unknown }>('/analytics/service');
    expect(body.date_range).toEqual({ start_date: '2026-10-23', end_date: '2026-11-21' });
    expect(body.data).toEqual([
      {
        primitive: 'model',
        service: MODEL,
        requests: 21,
        volume: 2_100,
        volume_usd: 0.0021,
        tokens: 1_215,
        attempts: 25,
        failures: 5,
        uptime: 0.8,
      },
    ]);
  });

  test('many old prices, also of another provider, hide no current one', async () => {
    const book = createPriceBook(world.spine.app.database, () => world.clock.now - 40 * 86_400_000);
    const before = (await read(`model/${MODEL}`)).providers[0]!.prices;
    const other = 'p-with-many-prices';
    await book.remember(
      [other, provider].flatMap((of) =>
        Array.from({ length: 1_001 }, (_, at) => {
          const rates = { prompt: BigInt(10_000_000 + at) };
          return { id: priceId(of, MODEL, rates), provider: of, service: MODEL, rates };
        }),
      ),
    );
    // A new call, so that the figures are not those that were read before.
    await world.calls(TODAY - 40, { service: MODEL, provider });
    await world.count();
    const { prices } = (await read(`model/${MODEL}`)).providers[0]!;
    expect(prices.slice(-before.length)).toEqual(before);
    expect(prices).toHaveLength(1_000);
  });

  test('a price of a part of the service names the part', async () => {
    const { providers } = await read('tool/test/tools');
    expect(providers[0]!.prices).toHaveLength(2);
    expect(providers[0]!.prices).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ pricing: { call: 0.001 }, current: true, of: null }),
        expect.objectContaining({ pricing: { call: 0.01 }, current: true, of: 'dear' }),
      ]),
    );
  });

  test.each([['a/b c'], ['plain'], ['ä/ö%2F'], ['a:8b/x.y']])(
    'a name can be written in the address: %s',
    async (service) => {
      await world.calls(TODAY, { service, primitive: 'agent' });
      await world.count();
      for (const written of [encodeURIComponent(service), service.split('/').map(encodeURIComponent).join('/')])
        expect(await read(`agent/${written}`)).toMatchObject({ service, primitive: 'agent', requests: 1 });
    },
  );

  test('what is unknown is told', async () => {
    const of = (path: string) => world.read<{ error: Record<string, unknown> }>(`/analytics/service/${path}`);
    expect(await of('model/no/such')).toMatchObject({
      status: 404,
      body: { error: { message: 'No model has the name no/such' } },
    });
    expect(await of(`tool/${MODEL}`)).toMatchObject({ status: 404 });
    expect(await of(`models/${MODEL}`)).toMatchObject({ status: 400, body: { error: { param: 'primitive' } } });
    expect(await world.spine.faults()).toEqual([]);
  });
});
