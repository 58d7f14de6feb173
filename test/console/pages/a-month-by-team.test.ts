import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { monthName } from '../../../web/src/ui/months.ts';
import { formatMicroUsd } from '../../../web/src/ui/usd.ts';
import { openBrowser, type TestBrowser } from '../../support/browser.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { looksRight } from './page-holds.ts';

// What the last month cost by team, and which key spends most: from the page Activity alone.

let spine: Spine;
let browser: TestBrowser;
let key: string;
let month: string;
const costs: number[] = [];
beforeAll(async () => {
  const today = new Date();
  const before = Date.UTC(today.getUTCFullYear(), today.getUTCMonth() - 1, 15, 12);
  month = new Date(before).toISOString().slice(0, 7);
  let ahead = before - Date.now();
  [spine, browser] = await Promise.all([
    startSpine({
      toml: `${UNHURRIED}\n[analytics]\nevery_ms = 100\n`,
      mode: 'development',
      now: () => Date.now() + ahead,
      elapsed: () => performance.now(),
      wall: () => Date.now() + ahead,
    }),
    openBrowser(),
  ]);
  // The local developer is signed in by itself.
  ({ key } = await spine.tenant('dev', '1'));
  for (const tags of ['team=search, feature=summary', 'team=support', '', 'team=search']) {
    const call = await spine.post('/chat/completions', ask(`hello ${tags}`), {
      authorization: `Bearer ${key}`,
      'x-tollgate-tags': tags,
    });
    await call.text();
    costs.push((await spine.generation(call.headers.get('x-generation-id'), key)).cost_micro_usdc);
  }
  ahead = 0;
  const figures = async () => {
    const answer = await spine.get(`/analytics/own?start_date=${month}-15&end_date=${month}-15`, {
      authorization: `Bearer ${key}`,
    });
    return ((await answer.json()) as { totals: { requests: number } }).totals.requests;
  };
  await vi.waitFor(async () => expect(await figures()).toBe(costs.length), { timeout: 60_000, interval: 50 });
});
afterAll(async () => {
  await browser.close();
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
});

test('the groups of a month by team are its calls, on the page and in the file', async () => {
  const visitor = await browser.visit({ origin: spine.origin });
  const { page } = visitor;
  await page.goto('/dashboard/activity');
  await page.getByLabel('Month').selectOption(monthName(month));
  await page.getByRole('group', { name: 'Grouped by' }).getByRole('button', { name: 'Tag' }).click();
  await page.getByLabel('Tag', { exact: true }).selectOption('team');
  const rowOf = (name: string) => page.getByRole('table', { name: 'Figures of each group' }).getByRole('row', { name });
  const spendOf = (name: string) => rowOf(name).getByRole('cell').last().textContent();
  const [first, second, third, fourth] = costs as [number, number, number, number];
  await rowOf('search').waitFor();
  expect([await spendOf('search'), await spendOf('support'), await spendOf('Without this tag')]).toEqual(
    [first + fourth, second, third].map(formatMicroUsd),
  );
  await looksRight(visitor);

  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'CSV' }).click()]);
  const lines = (await readFile(await file.path(), 'utf8')).trim().split(/\r?\n/);
  const columns = lines[0]!.split(',');
  const sum = lines
    .slice(1)
    .reduce((all, line) => all + Number(line.split(',')[columns.indexOf('cost_micro_usdc')]), 0);
  expect(sum).toBe(costs.reduce((all, one) => all + one, 0));

  await page.getByLabel('Tag', { exact: true }).selectOption('feature');
  await rowOf('search').waitFor({ state: 'detached' });
  expect([await spendOf('summary'), await spendOf('Without this tag')]).toEqual(
    [first, sum - first].map(formatMicroUsd),
  );
  await page.getByRole('group', { name: 'Grouped by' }).getByRole('button', { name: 'Key' }).click();
  await page.getByRole('columnheader', { name: 'Key' }).waitFor();
  await page.getByRole('group', { name: 'Days' }).getByRole('button', { name: '7 days' }).click();
  await page.getByText('No call in these days').waitFor();
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});
