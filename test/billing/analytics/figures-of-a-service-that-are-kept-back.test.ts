import { afterEach, describe, expect, test } from 'vitest';
import { ENGINES } from '../../support/engines.ts';
import { openFigures, TODAY, type FiguresWorld } from './figures-world.ts';

interface Day {
  readonly date: string;
  readonly requests: number;
  readonly suppressed?: boolean;
}
interface Listing {
  readonly data: {
    readonly by_day: readonly Day[];
    readonly providers: readonly Readonly<Record<string, unknown>>[];
    readonly [name: string]: unknown;
  };
}
interface Listings {
  readonly data: readonly { readonly service: string; readonly requests: number; readonly attempts: number }[];
}

const OTHER = 'tollgate:local:other';

describe.each(ENGINES)('the figures of one service, %s', (engine) => {
  let world: FiguresWorld;
  afterEach(() => world.stop());
  const listingOf = async (name: string) => (await world.read<Listing>(`/analytics/service/model/${name}`)).body.data;

  test('users_min: a day that few users of the service called is in no figure of it', async () => {
    world = await openFigures(engine, { toml: 'users_min = 2' });
    // On each day there are two users; of the service, on the second alone.
    const lonely = { service: 'a/b', firstByteMs: 4_000, durationMs: 8_000 };
    const shared = { service: 'a/b', firstByteMs: 100, durationMs: 100 };
    await world.calls(TODAY - 1, lonely, { ...lonely, end: 'release' }, { service: 'c/d', account: OTHER });
    await world.calls(TODAY, shared, { ...shared, account: OTHER });
    await world.count();
    await world.attempt(TODAY - 1, 'model/p1:a/b', 1, 1);
    await world.attempt(TODAY, 'model/p1:a/b', 2, 0);

    const data = await listingOf('a/b');
    expect(data).toMatchObject({ requests: 2, failed: 0, volume: 200 });
    expect(data.by_day.slice(-2)).toEqual([
      { date: '2026-11-20', requests: 0, failed: 0, volume: 0, tokens: 0, suppressed: true },
      { date: '2026-11-21', requests: 2, failed: 0, volume: 200, tokens: 30 },
    ]);
    const [own] = data.providers;
    expect(own).toMatchObject({ requests: 2, attempts: 2, failures: 0 });
    const { first_byte_ms: firstByte, duration_ms: duration } = own as unknown as Record<string, { p95: number }>;
    expect([firstByte!.p95, duration!.p95].every((ms) => ms < 200)).toBe(true);

    const { data: all } = (await world.read<Listings>('/analytics/service')).body;
    expect(all).toHaveLength(1);
    expect(all[0]).toMatchObject({ service: 'a/b', requests: 2, attempts: 2 });
    const { body: market } = await world.read<Record<string, unknown>>('/analytics/public');
    expect(market).toMatchObject({ total_requests: 4, top_services: [{ service: 'a/b', requests: 2 }] });
    expect(JSON.stringify(market)).not.toContain('c/d');
    expect((await listingOf('c/d')).by_day.at(-2)).toMatchObject({ requests: 0, suppressed: true });
  });

  test('times of the development account count in development alone', async () => {
    world = await openFigures(engine, { mode: 'production' });
    const slow = { account: 'tollgate:local:dev', service: 'a/b', firstByteMs: 4_000, durationMs: 8_000 };
    await world.calls(TODAY, slow, slow, slow, { service: 'a/b', firstByteMs: 100, durationMs: 100 });
    await world.count();
    const [own] = (await listingOf('a/b')).providers;
    expect(own).toMatchObject({ requests: 1 });
    const { first_byte_ms: firstByte, duration_ms: duration } = own as unknown as Record<string, { p95: number }>;
    expect([firstByte!.p95, duration!.p95].every((ms) => ms < 200)).toBe(true);
  });

  test('names that nobody knows keep nobody from the figures', async () => {
    world = await openFigures(engine);
    await world.calls(TODAY, { service: 'a/b' });
    await world.count();
    const unknown = Array.from({ length: 80 }, (_, index) => world.read(`/analytics/service/model/no/such-${index}`));
    const known = [world.read('/analytics/service/model/a/b'), world.read('/analytics/public')];
    expect(new Set((await Promise.all(unknown)).map(({ status }) => status))).toEqual(new Set([404]));
    expect((await Promise.all(known)).map(({ status }) => status)).toEqual([200, 200]);
  });
});
