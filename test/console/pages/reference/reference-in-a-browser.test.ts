import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { atThisLoad } from '../../../support/at-this-load.ts';
import { openBrowser, type TestBrowser, type Visitor } from '../../../support/browser.ts';
import { MODEL, startSpine, UNHURRIED, type Spine } from '../../../support/spine.ts';
import { looksRight } from '../page-holds.ts';

let spine: Spine;
let browser: TestBrowser;
beforeAll(async () => {
  [spine, browser] = await Promise.all([startSpine({ toml: UNHURRIED }), openBrowser()]);
});
afterAll(async () => {
  await browser.close();
  await spine.stop();
});

/** Not every machine has curl. */
const CURL_HERE = `curl() { "${process.execPath}" "${join(import.meta.dirname, '../../../program/cli/curl.ts')}" "$@"; }`;

const CHAT = '/docs#/Chat/createChatCompletion';

async function visit(path: string): Promise<Visitor> {
  const visitor = await browser.visit({ origin: spine.origin });
  await visitor.page.goto(path);
  await visitor.settled();
  return visitor;
}

test('it lists every endpoint of the document, each at the address that it had in Swagger UI', async () => {
  const { page, problems, close } = await visit('/docs');
  const document = (await (await fetch(`${spine.origin}/openapi.json`)).json()) as {
    readonly paths: Record<string, Record<string, { readonly operationId: string; readonly tags: readonly string[] }>>;
  };
  const all = Object.values(document.paths).flatMap((operations) => Object.values(operations));
  expect(all.length).toBeGreaterThan(100);
  const links = page.getByRole('main').locator('section a[href^="#/"]');
  const shown = await links.evaluateAll((found) => found.map((link) => link.getAttribute('href')));
  expect(new Set(shown)).toEqual(new Set(all.map(({ tags, operationId }) => `#/${tags[0]}/${operationId}`)));
  expect(shown).toHaveLength(all.length);
  expect(problems).toEqual([]);
  await close();
});

test('an endpoint with everything unfolded looks right', async () => {
  const visitor = await visit(CHAT);
  const { page, problems, close } = visitor;
  expect(await page.title()).toBe('Create a chat completion · tollgate');
  for (const fold of await page.locator('main summary:visible').all()) await fold.click();
  await page.getByRole('button', { name: /fields of messages/ }).click();
  await page.getByText('role', { exact: true }).first().waitFor();
  await looksRight(visitor);
  expect(problems).toEqual([]);
  await close();
});

test.each([
  ['create api key', 'Create a key'],
  ['refund', 'Refund a call'],
  ['transcribe', 'Transcribe'],
  ['generate picture', 'Generate images'],
  ['list my calls', 'List your calls'],
])('Ctrl-K and the keyboard find "%s"', async (words, name) => {
  const { page, close } = await visit('/docs');
  await page.keyboard.press('Control+k');
  await page.keyboard.type(words);
  // The list of the first words comes before that of all.
  const first = async () => (await page.locator('search li').allTextContents()).slice(0, 3).join();
  await expect.poll(first, { timeout: atThisLoad(5_000) }).toContain(name);
  await page.keyboard.press('ArrowDown');
  const chosen = await page.locator('search a:focus').textContent();
  await page.keyboard.press('Enter');
  await expect.poll(() => page.locator('h1').textContent()).toBe(chosen!.replace(/^(?:GET|POST|PATCH|DEL)/, ''));
  await close();
});

test('a call can be tried with a key, which no other page keeps', async () => {
  const { page, close } = await visit(CHAT);
  await page.getByLabel('API key', { exact: true }).fill(spine.key);
  const body = { model: MODEL, messages: [{ role: 'user', content: 'Hi' }] };
  await page.getByLabel('Body', { exact: true }).fill(JSON.stringify(body));
  await page.getByRole('button', { name: 'Send' }).click();
  const answer = page.getByRole('region', { name: 'Answer' });
  await answer.getByText('chat.completion', { exact: false }).first().waitFor();
  expect(await page.locator('main').innerText()).toMatch(/200 after \d+ ms[^]*x-cost-usd/);
  await page.reload();
  expect(await page.getByLabel('API key', { exact: true }).inputValue()).toBe('');
  await close();
});

test('the code in curl, JavaScript and Python runs as it is shown', async () => {
  const { page, close } = await visit('/docs#/Account/showYourBalance');
  const env = { ...process.env, KEY: spine.key };
  const run = promisify(execFile);
  const code = page.getByRole('region', { name: /^Code for/ });
  const shown = async (tab: string) => {
    await page.getByRole('tab', { name: tab }).click();
    return (await code.innerText()).trim();
  };
  const answers = [
    await run('sh', ['-c', `${CURL_HERE}\n${await shown('curl')}`], { env }),
    await run(process.execPath, ['--input-type=module', '-e', await shown('JavaScript')], { env }),
  ].map(({ stdout }) => stdout);
  for (const answer of answers) expect(answer).toMatch(/"balance/);
  expect(await shown('Python')).toContain(`requests.get(\n    "${spine.origin}/api/v1/session/balance"`);
  await close();
});

test('a visitor loads at most 400 KiB', async () => {
  const { page, close } = await browser.visit({ origin: spine.origin });
  const devtools = await page.context().newCDPSession(page);
  let bytes = 0;
  devtools.on('Network.loadingFinished', ({ encodedDataLength }) => (bytes += encodedDataLength));
  await devtools.send('Network.enable');
  await devtools.send('Network.setCacheDisabled', { cacheDisabled: true });
  await page.goto(CHAT);
  await page.getByRole('heading', { level: 1, name: 'Create a chat completion' }).waitFor();
  await expect.poll(() => bytes).toBeGreaterThan(50_000);
  console.log(`the reference: ${(bytes / 1024).toFixed(0)} KiB`);
  expect(bytes).toBeLessThan(400 * 1024);
  await devtools.detach();
  await close();
});
