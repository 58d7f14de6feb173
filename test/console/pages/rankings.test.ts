import { afterAll, beforeAll, expect, test } from 'vitest';
import { csvOf } from '../../../web/src/pages/rankings/csv.ts';
import { openBrowser, type TestBrowser, type Visitor } from '../../support/browser.ts';
import { MODEL, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { looksRight } from './page-holds.ts';

// Charts and tables of figures. The figures are given here, so that each value is known.

let spine: Spine;
let browser: TestBrowser;
beforeAll(async () => {
  [spine, browser] = await Promise.all([startSpine({ toml: UNHURRIED }), openBrowser()]);
});
afterAll(async () => {
  await browser.close();
  await spine.stop();
});

const DAY_MS = 86_400_000;
const dayOf = (date: string, after: number) => new Date(Date.parse(date) + after * DAY_MS).toISOString().slice(0, 10);

function figuresOf(start: string, end: string) {
  const count = (Date.parse(end) - Date.parse(start)) / DAY_MS + 1;
  const series = (value: number) =>
    Array.from({ length: count }, (_, index) =>
      index === 1
        ? { date: dayOf(start, index), value: 0, suppressed: true }
        : { date: dayOf(start, index), value: value + index },
    );
  const sums = { requests: 1_234, failed: 12, volume: 5_600_000, tokens: 900_000 };
  return {
    total_requests: 1_234,
    total_volume: 5_600_000,
    total_tokens: 900_000,
    total_active_providers: 3,
    total_active_services: 7,
    total_active_users: 41,
    registered_users: 120,
    total_failed: 12,
    requests_over_time: series(1_000),
    volume_over_time: series(2_500_000),
    users_over_time: series(40),
    providers_over_time: series(2),
    date_range: { start_date: start, end_date: end },
    by_primitive: (['model', 'tool', 'agent', 'image', 'video'] as const).map((primitive) => ({ primitive, ...sums })),
    top_services: [{ primitive: 'model' as const, service: MODEL, ...sums }],
    other_services: { services: 2, ...sums },
    as_of: '2026-11-15T09:21:05.120Z',
  };
}

async function visit(): Promise<Visitor> {
  const visitor = await browser.visit({ origin: spine.origin });
  await visitor.page.route(/\/api\/v1\/analytics\/public/, (route) => {
    const query = new URL(route.request().url()).searchParams;
    return route.fulfill({ json: figuresOf(query.get('start_date')!, query.get('end_date')!) });
  });
  return visitor;
}

test('charts with a table each, ranges in the address', async () => {
  const visitor = await visit();
  const { page } = visitor;
  await page.goto('/rankings');
  await expect.poll(() => page.locator('main canvas').count()).toBe(4);
  await page.getByRole('button', { name: '30 days' }).click();
  await expect.poll(() => new URL(page.url()).search).toBe('?days=30');
  await page.getByText('Show as a table').first().click();
  const rows = page.locator('figure').first().locator('tbody tr');
  await expect.poll(() => rows.count()).toBe(30);
  expect(await rows.nth(0).locator('td').textContent()).toBe('1,000');
  // A day that is kept back is no zero.
  expect(await rows.nth(1).locator('td').textContent()).toBe('–');
  await page.getByRole('link', { name: MODEL }).waitFor();
  await looksRight(visitor);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('a gateway that keeps its figures back says so, and asks for none', async () => {
  const closed = await startSpine({ toml: '[analytics]\npublic = "off"\n' });
  const visitor = await browser.visit({ origin: closed.origin });
  await visitor.page.goto('/rankings');
  await visitor.page.getByText('This gateway shows no figures.').waitFor();
  expect(await visitor.axe()).toEqual([]);
  for (const path of ['/marketplace', `/models/${MODEL}`]) {
    await visitor.page.goto(path);
    await visitor.settled();
  }
  expect(visitor.problems).toEqual([]);
  await visitor.close();
  await closed.stop();
});

test('the series are saved as CSV', async () => {
  const visitor = await visit();
  const { page } = visitor;
  await page.goto('/rankings');
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Save as CSV' }).click(),
  ]);
  expect(download.suggestedFilename()).toMatch(/^tollgate-\d{4}-\d\d-\d\d-\d{4}-\d\d-\d\d\.csv$/);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('a line of the CSV for each day, empty where a day is kept back', () => {
  expect(csvOf(figuresOf('2026-11-01', '2026-11-03'))).toBe(
    [
      'date,requests,volume_micro_usd,active_users,active_providers',
      '2026-11-01,1000,2500000,40,2',
      '2026-11-02,,,,',
      '2026-11-03,1002,2500002,42,4',
      '',
    ].join('\r\n'),
  );
});
