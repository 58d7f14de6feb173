import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RAW_CALLBACK, registerRaw } from '../../gateway/authorization/support/raw-client.ts';
import { openBrowser, type TestBrowser } from '../../support/browser.ts';
import { startSpine, type Spine } from '../../support/spine.ts';
import { pageHolds } from './page-holds.ts';

// Each page on which people sign in, let programs in, connect them and sign them out, with all that holds for a page.

/** The program's own page, where the browser ends. */
const program = createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'text/html' }).end('<title>Program</title>Let in');
}).listen(0, '127.0.0.1');
let spine: Spine;
let browser: TestBrowser;
beforeAll(async () => {
  if (!program.listening) await once(program, 'listening');
  [spine, browser] = await Promise.all([startSpine({ mode: 'development' }), openBrowser()]);
});
afterAll(async () => {
  await browser.close();
  await spine.stop();
  program.closeAllConnections();
  program.close();
});

const path = (address: string) => async (page: Page) => void (await page.goto(address));
const click = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const signOut = async (page: Page) => {
  await page.goto('/dashboard/connect');
  await click(page, 'Sign out');
  await page.waitForURL(/\/sign-in/);
};
const asked = async (page: Page, metadata: object = {}, changes: Readonly<Record<string, string>> = {}) => {
  const client = await registerRaw(spine.origin, { client_name: 'A program', ...metadata });
  await page.goto(client.authorizeUrl(changes));
};
const ELSEWHERE = 'https://assistant.example/a/rather/long/path/of/a/callback';

/** How each is opened. */
const PAGES: Readonly<Record<string, (page: Page) => Promise<void>>> = {
  'sign-in': path('/sign-in'),
  'sign-in, after signing out': signOut,
  'consent to a program of this computer': (page) => asked(page),
  'consent to a program of another host': (page) =>
    asked(page, { redirect_uris: [ELSEWHERE], client_name: 'W'.repeat(64) }, { redirect_uri: ELSEWHERE }),
  'consent, with all limits open': async (page) => {
    await asked(page);
    await page.getByText('Name, approvals, tags').click();
  },
  'consent, before signing in': async (page) => {
    await signOut(page);
    await asked(page);
    await page.getByText('Sign in to answer').waitFor();
  },
  ...Object.fromEntries(
    ['claude', 'chatgpt', 'claude-code', 'codex', 'vscode', 'desktop', 'other', 'code'].map((client) => [
      `connect: ${client}`,
      path(`/dashboard/connect?client=${client}`),
    ]),
  ),
  'connect: code, with a key': async (page) => {
    await page.goto('/dashboard/connect?client=code');
    await click(page, 'Make a key');
    await page.getByLabel('Name').fill('my agent');
    await click(page, 'Create the key');
    await page.getByText('Copy it now.', { exact: false }).waitFor();
  },
  'grants, with keys': path('/dashboard/keys'),
  'a grant, to change': async (page) => {
    const redirect = RAW_CALLBACK.replace('7878', String((program.address() as AddressInfo).port));
    await asked(page, { client_name: 'An assistant' }, { redirect_uri: redirect });
    await click(page, 'Allow');
    await page.getByText('Let in').waitFor();
    await page.goto('/dashboard/keys');
    await click(page, 'Change An assistant');
    await page.getByRole('dialog').waitFor();
  },
  sessions: path('/dashboard/sessions'),
  approvals: path('/dashboard/approvals'),
};

test.each(Object.entries(PAGES))('%s', async (_name, open) => {
  const visitor = await browser.visit({ origin: spine.origin });
  await open(visitor.page);
  await pageHolds(visitor);
  await visitor.close();
});

test('a sign-in that is over', async () => {
  const visitor = await browser.visit({ origin: spine.origin, expected: /404/ });
  await visitor.page.goto('/authorize/nobody');
  await visitor.page.getByText(/This sign-in is over/).waitFor();
  await pageHolds(visitor);
  await visitor.close();
});

test('a key that was made on the page is in what to copy, and calls', async () => {
  const { page, close } = await browser.visit({ origin: spine.origin });
  await page.goto('/dashboard/connect?client=code');
  await click(page, 'Make a key');
  await page.getByLabel('Name').fill('another agent');
  await click(page, 'Create the key');
  await click(page, 'Copy: What to set');
  const copied = () => page.evaluate<string>('navigator.clipboard.readText()');
  const WHAT_TO_SET = /^export OPENAI_BASE_URL=(\S+)\nexport OPENAI_API_KEY=(\S+)$/;
  await expect.poll(copied).toMatch(WHAT_TO_SET);
  const [, base, key] = WHAT_TO_SET.exec(await copied())!;
  expect(base).toBe(spine.url);
  const answer = await fetch(`${base}/key`, { headers: { authorization: `Bearer ${key}` } });
  expect(await answer.json()).toMatchObject({ data: { label: 'another agent' } });
  await close();
});
