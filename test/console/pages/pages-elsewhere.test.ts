import { expect, test } from 'vitest';
import { UNHURRIED } from '../../support/spine.ts';
import { spineOfFile } from '../../support/of-file.ts';

// An operator whose marketplace and accounts are pages of another site.

const MARKET = 'https://market.example/services';
const ACCOUNT = 'https://account.example/';

const spine = spineOfFile(() => {
  const env = { TOLLGATE_MARKETPLACE_URL: MARKET, TOLLGATE_DASHBOARD_URL: ACCOUNT };
  return { toml: UNHURRIED, env };
});

const get = (path: string) => fetch(spine.origin + path, { redirect: 'manual' });

test.each([
  ['/marketplace', MARKET],
  ['/marketplace?kind=tool', MARKET],
  ['/dashboard', ACCOUNT],
  ['/dashboard/keys', ACCOUNT],
])('%s leads there', async (path, url) => {
  const answer = await get(path);
  expect(answer.status).toBe(302);
  expect(answer.headers.get('location')).toBe(url);
});

test('what is told of the pages names them, and the other pages stay', async () => {
  expect(await (await get('/llms.txt')).text()).toContain(`People look at \`${MARKET}\``);
  const page = await get('/providers');
  expect(page.status).toBe(200);
  expect(JSON.parse(/id="boot">([^<]*)</.exec(await page.text())![1]!)).toMatchObject({
    elsewhere: ['/marketplace', '/dashboard'],
  });
});
