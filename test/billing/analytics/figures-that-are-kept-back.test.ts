import { afterEach, expect, test } from 'vitest';
import { newDataDirectory } from '../../support/data-directory.ts';
import { ACCOUNTS, openFigures, TODAY, type FiguresWorld } from './figures-world.ts';

interface Point {
  readonly date: string;
  readonly value: number;
  readonly suppressed?: boolean;
}
type Market = Readonly<Record<string, unknown>>;

const worlds: FiguresWorld[] = [];
const open = async (analytics: string, more: Parameters<typeof openFigures>[1] = {}) => {
  const world = await openFigures('sqlite', { ...more, toml: analytics });
  worlds.push(world);
  return world;
};
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.stop();
});

const warnings = ({ spine }: FiguresWorld) => spine.logs.filter((line) => line.includes('what few users pay'));

test('off: the routes for everybody answer 404', async () => {
  const world = await open('public = "off"');
  for (const path of ['/analytics/public', '/analytics/service/model/test/model']) {
    const { status, body } = await world.read<{ error: { message: string } }>(path);
    expect({ path, status }).toEqual({ path, status: 404 });
    expect(body.error.message).toBe('This gateway does not publish its figures');
  }
});

test('delayed: today and yesterday are in no figure', async () => {
  const world = await open('public = "delayed"');
  await world.calls(TODAY - 2, { charge: 1 });
  await world.calls(TODAY - 1, { charge: 10, account: 'tollgate:local:other' });
  await world.calls(TODAY, { charge: 100, service: 'new/model' });
  await world.count();
  const { body } = await world.read<Market>('/analytics/public?start_date=2026-11-19');
  expect(body).toMatchObject({ total_requests: 1, total_volume: 1, total_active_users: 1, total_active_services: 1 });
  expect(body['volume_over_time']).toEqual([
    { date: '2026-11-19', value: 1 },
    { date: '2026-11-20', value: 0, suppressed: true },
    { date: '2026-11-21', value: 0, suppressed: true },
  ]);
  expect(JSON.stringify(body)).not.toContain('new/model');
});

test('users_min: a day with fewer users is in no figure', async () => {
  const world = await open('users_min = 2');
  await world.calls(TODAY - 2, { charge: 1_000 }, { charge: 1_000, end: 'release' });
  await world.calls(TODAY, { charge: 1 }, { charge: 2, account: 'tollgate:local:other' });
  await world.count();
  const { body } = await world.read<Market>('/analytics/public?start_date=2026-11-19');
  expect(body).toMatchObject({ total_requests: 2, total_volume: 3, total_failed: 0, total_active_users: 2 });
  expect(body['volume_over_time']).toEqual([
    { date: '2026-11-19', value: 0, suppressed: true },
    { date: '2026-11-20', value: 0 },
    { date: '2026-11-21', value: 3 },
  ]);
  expect(body['users_over_time']).toContainEqual({ date: '2026-11-19', value: 0, suppressed: true } satisfies Point);
});

test('calls of the development account count in development alone', async () => {
  const world = await open('', { mode: 'development' });
  await world.calls(TODAY, { account: 'tollgate:local:dev', charge: 5 });
  await world.count();
  const { body } = await world.read<Market>('/analytics/public');
  expect(body).toMatchObject({ total_requests: 1, total_volume: 5, total_active_users: 1 });
});

test('no account, key or label is in a public figure', async () => {
  const world = await open('');
  const { hash } = await world.spine.tenant('secret-label', '1');
  await world.calls(TODAY, ...ACCOUNTS.map((account) => ({ account, key: hash })));
  await world.count();
  for (const path of ['/analytics/public', '/analytics/service/model/test/model']) {
    const text = JSON.stringify((await world.read(path)).body);
    for (const name of [...ACCOUNTS, '0xabc', 'tester', hash, 'secret-label']) expect(text).not.toContain(name);
  }
});

test.each([
  ['few users in production', { production: true, users: 2, toml: '' }, 1],
  ['nobody yet', { production: true, users: 0, toml: '' }, 0],
  ['few users, whose days are kept back', { production: true, users: 2, toml: 'users_min = 3' }, 0],
  ['few users in development', { production: false, users: 2, toml: '' }, 0],
])('a start warns, or not: %s', async (_what, { production, users, toml }, warned) => {
  const dataDir = newDataDirectory();
  const mode = production ? 'production' : 'development';
  const before = await open(toml, { dataDir, mode });
  await before.calls(
    TODAY,
    ...ACCOUNTS.filter((name) => !name.endsWith('dev'))
      .slice(0, users)
      .map((account) => ({ account })),
  );
  await before.count();
  await before.stop();
  worlds.length = 0;
  const after = await open(toml, { dataDir, mode });
  expect(warnings(after)).toHaveLength(warned);
});
