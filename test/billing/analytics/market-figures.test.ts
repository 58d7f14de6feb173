import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ENGINES } from '../../support/engines.ts';
import { openFigures, TODAY, type FiguresWorld } from './figures-world.ts';

interface Point {
  readonly date: string;
  readonly value: number;
  readonly suppressed?: boolean;
}
interface Market {
  readonly requests_over_time: readonly Point[];
  readonly [name: string]: unknown;
}

describe.each(ENGINES)('GET /analytics/public, %s', (engine) => {
  let world: FiguresWorld;
  beforeAll(async () => {
    world = await openFigures(engine);
    await world.calls(
      TODAY - 9,
      { account: 'eip155:0xabc', charge: 1_000_000, service: 'old/model' },
      { account: 'eip155:0xabc', primitive: 'video', service: 'v/one', charge: 7 },
    );
    await world.calls(
      TODAY - 7,
      { reasoning: 3 },
      { account: 'eip155:0xabc', provider: 'p2' },
      { primitive: 'tool', service: 'test/model', prompt: 0, completion: 0, charge: 0 },
      { end: 'release' },
      { end: 'run' },
      { account: 'tollgate:local:dev', charge: 999 },
    );
    await world.calls(
      TODAY,
      {},
      { primitive: 'image', service: 'i/one', provider: 'p3', charge: 40_000 },
      { end: 'continue' },
    );
    await world.count();
  });
  afterAll(() => world.stop());

  test('has the members of the contract, and without dates today and the 7 days before', async () => {
    const { status, body } = await world.read<Market>('/analytics/public', { authorization: '' });
    expect(status).toBe(200);
    expect(body).toEqual({
      total_requests: 5,
      total_volume: 40_300,
      total_volume_usd: 0.0403,
      total_active_providers: 3,
      total_active_services: 3,
      total_active_users: 2,
      // Those that called, and the one with a key.
      registered_users: 2,
      wallet_users: 1,
      total_tokens: 60,
      total_prompt_tokens: 40,
      total_completion_tokens: 20,
      total_reasoning_tokens: 3,
      requests_over_time: points({ '2026-11-14': 3, '2026-11-21': 2 }),
      volume_over_time: points({ '2026-11-14': 200, '2026-11-21': 40_100 }),
      providers_over_time: points({ '2026-11-14': 2, '2026-11-21': 2 }),
      users_over_time: points({ '2026-11-14': 2, '2026-11-21': 1 }),
      date_range: { start_date: '2026-11-14', end_date: '2026-11-21' },
      total_failed: 1,
      total_cached_tokens: 0,
      by_primitive: [
        { primitive: 'model', requests: 3, failed: 1, volume: 300, volume_usd: 0.0003, tokens: 45 },
        { primitive: 'tool', requests: 1, failed: 0, volume: 0, volume_usd: 0, tokens: 0 },
        { primitive: 'agent', requests: 0, failed: 0, volume: 0, volume_usd: 0, tokens: 0 },
        { primitive: 'image', requests: 1, failed: 0, volume: 40_000, volume_usd: 0.04, tokens: 15 },
        { primitive: 'video', requests: 0, failed: 0, volume: 0, volume_usd: 0, tokens: 0 },
      ],
      top_services: [
        { primitive: 'image', service: 'i/one', requests: 1, volume: 40_000, volume_usd: 0.04, tokens: 15 },
        { primitive: 'model', service: 'test/model', requests: 3, volume: 300, volume_usd: 0.0003, tokens: 45 },
        { primitive: 'tool', service: 'test/model', requests: 1, volume: 0, volume_usd: 0, tokens: 0 },
      ],
      other_services: { services: 0, requests: 0, volume: 0, volume_usd: 0, tokens: 0 },
      as_of: '2026-11-21T00:00:01.000Z',
    });
  });

  function points(values: Readonly<Record<string, number>>): readonly Point[] {
    return Array.from({ length: 8 }, (_, index) => `2026-11-${14 + index}`).map((date) => ({
      date,
      value: values[date] ?? 0,
    }));
  }

  test.each([
    ['both days are in the range', 'start_date=2026-11-12&end_date=2026-11-14', '2026-11-12', '2026-11-14', [2, 0, 3]],
    ['one day', 'start_date=2026-11-21&end_date=2026-11-21', '2026-11-21', '2026-11-21', [2]],
    [
      'ISO 8601 with a zone is the UTC day',
      'start_date=2026-11-13T23:30:00-01:00&end_date=2026-11-14',
      '2026-11-14',
      '2026-11-14',
      [3],
    ],
    [
      'an end alone has the 7 days before it',
      'end_date=2026-11-14',
      '2026-11-07',
      '2026-11-14',
      [0, 0, 0, 0, 0, 2, 0, 3],
    ],
  ])('%s', async (_what, query, start, end, requests) => {
    const { status, body } = await world.read<Market>(`/analytics/public?${query.replace('+', '%2B')}`);
    expect(status).toBe(200);
    expect(body['date_range']).toEqual({ start_date: start, end_date: end });
    expect(body.requests_over_time.map(({ value }) => value)).toEqual(requests);
  });

  test.each([
    ['a start after the end', 'start_date=2026-11-15&end_date=2026-11-14', 'start_date'],
    ['367 days', 'start_date=2025-11-20&end_date=2026-11-21', 'start_date'],
    ['no date', 'end_date=yesterday', 'end_date'],
    ['a day that does not exist', 'start_date=2026-02-30', 'start_date'],
    ['a date twice', 'start_date=2026-11-15&start_date=2026-11-16', 'start_date'],
  ])('%s is refused', async (_what, query, param) => {
    const { status, body } = await world.read<{ error: Record<string, unknown> }>(`/analytics/public?${query}`);
    expect(status).toBe(400);
    expect(body.error).toMatchObject({ type: 'invalid_request', param });
  });

  test('366 days are given', async () => {
    const { body } = await world.read<Market>('/analytics/public?start_date=2025-11-21&end_date=2026-11-21');
    expect(body.requests_over_time).toHaveLength(366);
    expect(body['total_volume']).toBe(1_040_307);
  });

  test('an unchanged answer is not sent again, and a changed one is', async () => {
    const first = await world.spine.get('/analytics/public');
    const etag = first.headers.get('etag')!;
    expect(first.headers.get('cache-control')).toBe('public, max-age=30');
    expect((await world.spine.get('/analytics/public', { 'if-none-match': etag })).status).toBe(304);
    await world.calls(TODAY, { service: 'late/model', charge: 1 });
    await world.count();
    const changed = await world.spine.get('/analytics/public', { 'if-none-match': etag });
    expect(changed.status).toBe(200);
    expect(((await changed.json()) as Market)['total_volume']).toBe(40_301);
    expect(await world.spine.faults()).toEqual([]);
  });
});
