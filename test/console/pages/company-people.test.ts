import { afterAll, beforeAll, expect, test } from 'vitest';
import { auth } from '@modelcontextprotocol/client';
import { openBrowser, type TestBrowser, type Visitor } from '../../support/browser.ts';
import { findFreePort } from '../../support/free-port.ts';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { createClientMemory } from '../../gateway/authorization/support/client-memory.ts';
import { type Company, peopleToml, startCompany } from '../../gateway/auth/people/company.ts';
import { pageHolds } from './page-holds.ts';

// The company's people at the pages of the gateway, in a real browser.

const RULES = `
[[people.groups]]
group = "staff"
organisation = "acme"
budget = 5

[[people.groups]]
group = "ops"
admin = ["read", "credit"]
`;

let company: Company;
let spine: Spine;
let browser: TestBrowser;
let visitor: Visitor;
beforeAll(async () => {
  const port = await findFreePort();
  const origin = `http://127.0.0.1:${port}`;
  company = await startCompany(origin);
  company.groups.set('ann', ['staff', 'ops']);
  company.groups.set('eve', []);
  const toml = `[server]\npublic_url = "${origin}"\n[authorization]\nenabled = true\n${UNHURRIED}${peopleToml(company.issuer, RULES)}`;
  [spine, browser] = await Promise.all([startSpine({ port, toml }), openBrowser()]);
  visitor = await browser.visit({ origin });
});
afterAll(async () => {
  await browser.close();
  await spine.stop();
  await company.stop();
});

test('somebody without access reads so, and can try again', async () => {
  const { page } = visitor;
  company.person = 'eve';
  await page.goto('/sign-in');
  await page.getByRole('link', { name: 'Sign in with Acme' }).waitFor();
  await pageHolds(visitor);
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.getByRole('link', { name: 'Sign in with Acme' }).click();
  await page.getByText('You have no access here').waitFor();
  await pageHolds(visitor);
  await page.context().clearCookies();
});

test('a person comes back to the page that asked for the sign-in', async () => {
  const { page } = visitor;
  company.person = 'ann';
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.goto('/dashboard/sessions');
  await page.getByRole('link', { name: 'Sign in', exact: true }).last().click();
  await page.getByRole('link', { name: 'Sign in with Acme' }).click();
  await page.waitForURL('**/dashboard/sessions');
  const row = page.getByRole('row', { name: /This browser/ });
  await row.getByText('127.0.0.0/24', { exact: true }).waitFor();
  await row.getByText('Company', { exact: true }).waitFor();
  await pageHolds(visitor);
});

test('an administrator signs in without a key', async () => {
  const { page } = visitor;
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.goto('/admin?tab=accounts');
  await page.getByRole('table').first().waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('link', { name: 'Sign in with Acme' }).waitFor();
  await pageHolds(visitor);
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.getByRole('link', { name: 'Sign in with Acme' }).click();
  await page.waitForURL('**/admin');
  await page.getByRole('table').first().waitFor();
  await page.getByRole('banner').getByText('read, credit').waitFor();
});

test('a program that signs in is paid by the organisation', async () => {
  const { page } = visitor;
  const callback = `${company.issuer}/no-such-page`;
  const memory = createClientMemory({ name: 'My assistant', callback });
  expect(await auth(memory.provider, { serverUrl: `${spine.origin}/mcp` })).toBe('REDIRECT');
  await page.goto(memory.opened().href);
  const payers = page.getByRole('group', { name: 'Who pays' });
  await payers.waitFor();
  expect(await payers.getByRole('button', { name: 'acme' }).getAttribute('aria-pressed')).toBe('true');
  await pageHolds(visitor);
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.getByRole('button', { name: 'Allow' }).click();
  await page.waitForURL((url) => url.href.startsWith(callback));
  const keys = await fetch(`${spine.origin}/admin/v1/accounts/tollgate:local:acme/keys`, {
    headers: { authorization: `Bearer ${spine.adminKey}` },
  });
  const { data } = (await keys.json()) as {
    readonly data: readonly { readonly client: string; readonly label: string }[];
  };
  expect(data).toMatchObject([{ label: 'My assistant' }]);
});
