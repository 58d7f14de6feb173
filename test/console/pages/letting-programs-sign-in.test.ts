import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { auth } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBrowser, type TestBrowser, type Visitor } from '../../support/browser.ts';
import { startSpine, type Spine } from '../../support/spine.ts';
import { createClientMemory } from '../../gateway/authorization/support/client-memory.ts';
import { registerRaw } from '../../gateway/authorization/support/raw-client.ts';
import { pageHolds } from './page-holds.ts';

// The page on which a person lets a program sign in, in a real browser, with an unmodified MCP client as the program.

/** The program's own page, where the browser ends. */
let program: Server;
let callback: string;
const arrived: URL[] = [];
let spine: Spine;
let browser: TestBrowser;
let visitor: Visitor;
beforeAll(async () => {
  program = createServer((request, response) => {
    const url = new URL(request.url!, callback);
    if (url.pathname === '/callback') arrived.push(url);
    response.writeHead(200, { 'content-type': 'text/html' }).end('<title>Program</title>Back in the program');
  }).listen(0, '127.0.0.1');
  await once(program, 'listening');
  callback = `http://127.0.0.1:${(program.address() as AddressInfo).port}/callback`;
  [spine, browser] = await Promise.all([startSpine({ mode: 'development' }), openBrowser()]);
  visitor = await browser.visit({ origin: spine.origin });
});
afterAll(async () => {
  await browser.close();
  await spine.stop();
  program.closeAllConnections();
  program.close();
});

const aProgram = async (name: string) => {
  const memory = createClientMemory({ name, callback });
  expect(await auth(memory.provider, { serverUrl: `${spine.origin}/mcp` })).toBe('REDIRECT');
  return memory;
};

test('a person sees who asks, says yes with a budget, and the program calls', async () => {
  const { page } = visitor;
  const memory = await aProgram('My assistant');
  await page.goto(memory.opened().href);
  await page.getByRole('heading', { name: 'A program asks to call in your name' }).waitFor();
  await page.getByText('A program on this computer', { exact: true }).waitFor();
  await page.getByText('nobody: it registered itself at this gateway').waitFor();
  await page
    .locator('dd')
    .filter({ hasText: /^My assistantNobody has checked this name\.$/ })
    .waitFor();
  await page.getByText('All tools, and models and agents as tools.').waitFor();
  expect(await page.getByLabel('Spending limit in USD').inputValue()).toBe('5');
  await pageHolds(visitor);
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.getByLabel('Spending limit in USD').fill('2.5');
  await page.getByRole('button', { name: 'Allow' }).click();
  await page.waitForURL((url) => url.href.startsWith(callback));
  const answer = arrived.at(-1)!.searchParams;
  expect(
    await auth(memory.provider, {
      serverUrl: `${spine.origin}/mcp`,
      authorizationCode: answer.get('code')!,
      iss: answer.get('iss')!,
    }),
  ).toBe('AUTHORIZED');
  const key = await fetch(`${spine.url}/key`, { headers: { authorization: `Bearer ${memory.tokens().access_token}` } });
  // The token is for the tools alone.
  expect(key.status).toBe(401);

  await page.goto(`${spine.origin}/dashboard/keys`);
  const row = page.getByRole('row', { name: /My assistant/ });
  await row.getByText('a program on your machine').waitFor();
  expect(await row.textContent()).toContain('of $2.50');
  await pageHolds(visitor);
});

test('the page "Connect" has the address for each client, and shows a program once it has signed in', async () => {
  const own = await browser.visit({ origin: spine.origin });
  const { page } = own;
  await page.goto('/dashboard/keys');
  await page.getByRole('link', { name: 'connect it' }).click();
  await page.getByRole('heading', { level: 1, name: 'Connect' }).waitFor();
  const tabs = await page.getByRole('tab').allTextContents();
  // Assistants that call from the internet cannot reach this gateway, and come last.
  expect([tabs[0], tabs.at(-1)]).toEqual(['Claude Code', 'ChatGPT']);
  const command = page.getByRole('region', { name: 'What to run' });
  const lines = `claude mcp add --transport http tollgate ${spine.origin}/mcp && claude mcp login tollgate`;
  expect(await command.textContent()).toBe(lines);
  await page.getByRole('tab', { name: 'Claude', exact: true }).click();
  await page.getByText('Claude calls from the internet and cannot reach this address.', { exact: false }).waitFor();

  const memory = await aProgram('A newcomer');
  const other = await page.context().newPage();
  await other.goto(memory.opened().href);
  await other.getByRole('button', { name: 'Allow' }).click();
  await other.waitForURL((url) => url.href.startsWith(callback));
  // It appears by itself.
  await page.getByText('A newcomer').waitFor();
  await own.close();
});

test('a person says no, and the program is told', async () => {
  const { page } = visitor;
  const memory = await aProgram('Another');
  await page.goto(memory.opened().href);
  await page.getByRole('button', { name: 'Refuse' }).click();
  await page.waitForURL((url) => url.href.startsWith(callback));
  expect(arrived.at(-1)!.searchParams.get('error')).toBe('access_denied');
});

test('a missing end and a wrong budget are shown at their fields', async () => {
  const { page } = visitor;
  const memory = await aProgram('Careless');
  await page.goto(memory.opened().href);
  await page.getByLabel('Last day').fill('');
  await page.getByRole('button', { name: 'Allow' }).click();
  await page.getByText(/expires_at must be at most/).waitFor();
  await page.getByLabel('Last day').fill('2020-01-01');
  await page.getByRole('button', { name: 'Allow' }).click();
  await page.getByText(/expires_at is in the past/).waitFor();
  expect(page.url()).toContain('/authorize/');
});

test('a name of markup is text, and a sign-in that is over is told', async () => {
  const { page, problems } = await browser.visit({ origin: spine.origin, expected: /404/ });
  const client = await registerRaw(spine.origin, { client_name: '<img src=x onerror=alert(1)><b>Claude</b>' });
  await page.goto(client.authorizeUrl());
  await page.getByText('<img src=x onerror=alert(1)><b>Claude</b>').waitFor();
  expect(await page.locator('main img').count()).toBe(0);
  await page.goto(`${spine.origin}/authorize/nobody`);
  await page.getByText(/This sign-in is over/).waitFor();
  expect(problems).toEqual([]);
});

test('a name that goes on with the words of the page stands alone', async () => {
  const own = await browser.visit({ origin: spine.origin });
  const { page } = own;
  const name = 'Claude”. The gateway has checked this program. “';
  const client = await registerRaw(spine.origin, { client_name: name, redirect_uris: ['https://evil.example/x'] });
  await page.goto(client.authorizeUrl({ redirect_uri: 'https://evil.example/x' }));
  const shown = page.locator('bdi');
  await shown.waitFor();
  expect(await shown.textContent()).toBe(name);
  expect(await page.getByText('evil.example', { exact: true }).count()).toBe(2);
  await pageHolds(own);
  await own.close();
});

test('a program that a link opens is named by the scheme of the link', async () => {
  const { page } = visitor;
  const callback = 'somebodys-app:callback';
  const client = await registerRaw(spine.origin, { redirect_uris: [callback] });
  await page.goto(client.authorizeUrl({ redirect_uri: callback }));
  await page.getByText('A program that opens somebodys-app: links', { exact: true }).waitFor();
  await page.getByText('whatever opens links with somebodys-app: on this computer').waitFor();
});

/** Addresses that a program wants to call, how the page names them, and the services that it allows at first. */
const WANTED: Readonly<Record<string, readonly [words: string, services: readonly string[]]>> = {
  '': ['Everything: models, tools, agents, and the figures of your account.', []],
  '/api/v1': ['Every service, through the API of models, and the figures of your account.', []],
  '/mcp/acme/tools': ['The tools of acme/tools.', ['acme/tools']],
  '/api/v1/mcp/acme/tools': ['The tools of acme/tools.', ['acme/tools']],
  '/mcp/a2a/acme/agent': ['The agent acme/agent.', ['acme/agent']],
  '/mcp/model/test/model': ['The model test/model.', ['test/model']],
  '/mcp/image/test/painter': ['The model test/painter.', ['test/painter']],
  '/a2a/acme/agent': ['The agent acme/agent.', ['acme/agent']],
  '/a2a': ['All agents.', []],
};

test('the page names what a program wants to call, and its services alone are allowed at first', async () => {
  const { page } = visitor;
  for (const [path, [words, services]] of Object.entries(WANTED)) {
    const client = await registerRaw(spine.origin, { resource: spine.origin + path });
    await page.goto(client.authorizeUrl());
    await page.getByText(words, { exact: true }).waitFor();
    await page.getByLabel('Services and tools').waitFor();
    const allowed = await page.getByLabel('What may be called').getByRole('listitem').allTextContents();
    expect([path, allowed]).toEqual([path, services]);
  }
});

test('the second click of a double click, on a window that closed above the page, agrees to nothing', async () => {
  const { page } = visitor;
  const client = await registerRaw(spine.origin, { redirect_uris: [callback] });
  await page.goto(client.authorizeUrl({ redirect_uri: callback }));
  const button = `document.querySelector('button[type="submit"]')`;
  const allow = page.getByRole('button', { name: 'Allow' });
  await expect.poll(() => allow.isEnabled()).toBe(true);
  // The page gets the focus when such a window closes, and the click comes some frames later, while the button is off.
  const clicked = `new Promise((done) => {
    let frames = 0;
    const click = () => {
      const isOff = ${button}.disabled;
      if (!isOff && ++frames < 100) return requestAnimationFrame(click);
      ${button}.click();
      done(isOff);
    };
    requestAnimationFrame(click);
    dispatchEvent(new Event('focus'));
  })`;
  expect(await page.evaluate(clicked)).toBe(true);
  await expect.poll(() => allow.isEnabled()).toBe(true);
  expect(page.url()).toContain('/authorize/');
  await page.getByRole('button', { name: 'Refuse' }).click();
  await page.waitForURL((url) => url.searchParams.get('error') === 'access_denied');
});

test('no other site shows the page in a frame', async () => {
  const response = await fetch(`${spine.origin}/authorize/x`);
  expect(response.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
});
