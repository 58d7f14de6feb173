import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBrowser, type TestBrowser } from '../../support/browser.ts';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { pageHolds } from './page-holds.ts';

// The tab with the last comparison with each vendor's bill.

let spine: Spine;
let browser: TestBrowser;
beforeAll(async () => {
  [spine, browser] = await Promise.all([startSpine({ toml: UNHURRIED }), openBrowser()]);
});
afterAll(async () => {
  await browser.close();
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
});

const keep = (body: object) =>
  fetch(`${spine.origin}/admin/v1/reconciliation/results`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
const RESULT = {
  vendor: 'openai',
  first_day: '2026-11-01',
  last_day: '2026-11-27',
  bound: 0.01,
  difference: 0.25,
  beyond: true,
  models: [
    {
      model: 'gpt-4.1-mini',
      difference: 0.25,
      beyond: true,
      requests: 3,
      billed_requests: 4,
      cost_micro_usd: 504,
      billed_micro_usd: null,
      charged_micro_usdc: 555,
      margin_micro_usd: 51,
    },
  ],
  reasons: [{ kind: 'requests', text: 'The vendor has 1 request more than calls were served here.' }],
};

test('says what to do before the first comparison, and then which bill differs and why', async () => {
  const visitor = await browser.visit({ origin: spine.origin });
  const { page } = visitor;
  await page.goto('/admin?tab=vendors');
  await page.getByLabel('Admin key').fill(spine.adminKey);
  await page.getByRole('button', { name: 'Sign in as the operator' }).click();
  await page.getByText('No bill of a vendor has been compared yet').waitFor();

  expect((await keep(RESULT)).status).toBe(200);
  const agreed = { ...RESULT, vendor: 'Acme', difference: 0, beyond: false, models: [], reasons: [] };
  expect((await keep(agreed)).status).toBe(200);
  await page.reload();
  await page.getByText('differs', { exact: true }).waitFor();
  await page.getByText('agrees', { exact: true }).waitFor();
  const row = page.getByRole('row', { name: /gpt-4\.1-mini/ });
  expect((await row.innerText()).split(/\s+/)).toEqual(
    expect.arrayContaining(['gpt-4.1-mini', '3', '4', '$0.000504', '–', '$0.000555', '$0.000051', '25.0%']),
  );
  await page.getByText('The vendor has 1 request more than calls were served here.').waitFor();
  await pageHolds(visitor);
});

test('a result with an unknown field, or of no vendor, is refused and names it', async () => {
  for (const [body, field] of [
    [{ ...RESULT, vendor: '' }, 'vendor'],
    [{ ...RESULT, difference: 2 }, 'difference'],
    [{ ...RESULT, first_day: 'June' }, 'first_day'],
  ] as const) {
    const answer = await keep(body);
    expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining(field)]);
  }
});
