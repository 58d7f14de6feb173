import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Company, peopleToml, startCompany } from '../../gateway/auth/people/company.ts';
import { START } from '../../gateway/auth/people/visitor.ts';
import { openBrowser, type TestBrowser, type Visitor } from '../../support/browser.ts';
import { findFreePort } from '../../support/free-port.ts';
import { startGateway, type Gateway } from '../../support/gateway.ts';
import { looksRight } from './page-holds.ts';
import { microUsdIn } from './playground-world.ts';

// Somebody of a company has no money, and tries models, tools and agents with the money of an organisation.

const ACME = 'tollgate:local:acme';
const RULES = '[[people.groups]]\ngroup = "staff"\norganisation = "acme"\nbudget = 5\n';
const PATIENCE_MS = 100_000;

let company: Company;
let gateway: Gateway;
let browser: TestBrowser;
let visitor: Visitor;
beforeAll(async () => {
  const port = await findFreePort();
  const origin = `http://127.0.0.1:${port}`;
  company = await startCompany(origin);
  company.groups.set('ann', ['staff']);
  const toml = `[server]\npublic_url = "${origin}"\n[billing]\ndrain_ms = 300\n${peopleToml(company.issuer, RULES)}`;
  [gateway, browser] = await Promise.all([
    startGateway({ command: 'start', port, toml, timeoutMs: PATIENCE_MS }),
    openBrowser(),
  ]);
  await gateway.openAccount('acme', 5);
  visitor = await browser.visit({ origin });
  visitor.page.setDefaultTimeout(PATIENCE_MS);
});
afterAll(async () => {
  await browser.close();
  await gateway.stop();
  await company.stop();
});

const balance = async (account: string): Promise<number> => {
  const { data } = await gateway.admin('GET', `/accounts/${encodeURIComponent(account)}`);
  return (data as { readonly balance_micro_usdc: number }).balance_micro_usdc;
};
const payers = () => visitor.page.getByRole('group', { name: 'Who pays' });
/** Makes a call on the page, and expects that the organisation pays what the page says. */
async function paidByAcme(call: () => Promise<void>): Promise<void> {
  const before = await balance(ACME);
  await call();
  const charged = visitor.page.getByRole('button', { name: /charged/ });
  await charged.waitFor();
  const shown = microUsdIn(await charged.textContent());
  expect(shown).toBeGreaterThan(0);
  expect(before - (await balance(ACME))).toBe(shown);
  // The receipt is read as the organisation's.
  await visitor.page.getByRole('button', { name: 'Receipt' }).last().click();
  await visitor.page.getByText(/^gen-/).last().waitFor();
}
const open = async (service: string): Promise<void> => {
  await visitor.page.goto(`/playground?m=${encodeURIComponent(service)}`);
  await payers().waitFor();
};

test('the organisation of the group pays without a choice', async () => {
  const { page } = visitor;
  company.person = 'ann';
  await page.goto(`${START}?to=${encodeURIComponent('/playground?m=demo/chat')}`);
  await payers().waitFor();
  expect(await payers().getByRole('button', { name: 'acme' }).getAttribute('aria-pressed')).toBe('true');
  await page.getByRole('link', { name: /^Balance ?\$5(?:\.0+)?$/ }).waitFor();
  await looksRight(visitor);
  await page.setViewportSize({ width: 1280, height: 900 });
  await paidByAcme(async () => {
    await page.getByRole('textbox', { name: 'Message to demo/chat' }).fill('Count to 20');
    await page.keyboard.press('Enter');
  });
});

test('a tool', async () => {
  await open('mcp/demo/tools/weigh_words');
  await paidByAcme(async () => {
    await visitor.page.getByLabel('text').fill('a tollgate in the morning');
    await visitor.page.getByRole('button', { name: 'Run – $0.001' }).click();
  });
});

test('an agent, with the calls under it', async () => {
  await open('demo/agent');
  await paidByAcme(async () => {
    await visitor.page.getByRole('button', { name: 'Roll 2d6' }).click();
    await visitor.page.getByText('Completed').waitFor();
  });
});

test('the own account has nothing to pay with, and the choice stays for the tab', async () => {
  const { page } = visitor;
  await open('demo/echo');
  const before = await balance(ACME);
  await payers().getByRole('button', { name: 'My own account' }).click();
  await page.getByRole('link', { name: /^Balance ?\$0(?:\.0+)?$/ }).waitFor();
  await page.reload();
  await payers().waitFor();
  expect(await payers().getByRole('button', { name: 'My own account' }).getAttribute('aria-pressed')).toBe('true');
  await page.getByRole('textbox').fill('hello');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByRole('link', { name: 'Add money' }).waitFor();
  expect(await balance(ACME)).toBe(before);
});

test('the calls stand under the key of the playground, which says whose it is, and the books are right', async () => {
  const { data } = await gateway.admin('GET', `/accounts/${encodeURIComponent(ACME)}/keys`);
  const own = (data as readonly { name: string; member: string; usage: number }[]).filter(({ member }) => member);
  expect(own).toMatchObject([{ name: 'Playground', member: expect.stringMatching(/:ann$/) }]);
  expect(5_000_000 - Math.round(own[0]!.usage * 1e6)).toBe(await balance(ACME));
  expect(await gateway.admin('GET', '/audit')).toMatchObject({ data: { ok: true } });
  expect(visitor.problems.filter((problem) => !/402|424/.test(problem))).toEqual([]);
});
