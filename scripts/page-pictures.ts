// Makes the pictures of the web pages in docs/images. Starts a development gateway, makes a few calls, and takes
// screenshots in a real browser.
//
//   node scripts/page-pictures.ts
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { openBrowser } from '../test/support/browser.ts';
import { createKeeper } from '../test/support/server-process.ts';

const CHECKOUT = resolve(import.meta.dirname, '..');
const PICTURES = join(CHECKOUT, 'docs', 'images');
const data = mkdtempSync(join(tmpdir(), 'tollgate-pictures-'));
const keeper = createKeeper([data]);
const server = keeper.start({
  file: process.execPath,
  args: [join(CHECKOUT, 'bin', 'tollgate.mjs'), 'start'],
  env: { PATH: process.env['PATH'], HOME: data, PORT: '0', TOLLGATE_DATA: data, OLLAMA_HOST: '127.0.0.1:9' },
});
await server.wrote('Ctrl-C stops it.');
const { base_url: origin = '', api_key: key = '' } = JSON.parse(readFileSync(join(data, 'dev.json'), 'utf8')) as Record<
  string,
  string
>;
await makeCalls();
const browser = await openBrowser();
for (const theme of ['light', 'dark'] as const) {
  await picture(theme, 'marketplace', '/marketplace', 'text=Demo: Tools');
  await picture(theme, 'dashboard', '/dashboard', 'text=Last calls');
  await playground(theme);
}
await browser.close();
await keeper.close();
rmSync(data, { recursive: true, force: true });

async function picture(theme: 'light' | 'dark', name: string, path: string, shown: string): Promise<void> {
  const { page, close } = await browser.visit({ origin, theme, height: 860 });
  await page.goto(path);
  await page.waitForSelector(shown);
  await page.waitForLoadState('networkidle');
  await save(page, name, theme);
  await close();
}

async function playground(theme: 'light' | 'dark'): Promise<void> {
  const { page, close } = await browser.visit({ origin, theme, height: 860 });
  await page.goto('/playground?m=demo/chat');
  await page.getByRole('textbox').last().fill('What does this call cost?');
  await page.keyboard.press('Enter');
  await page.waitForSelector('text=charged');
  await page.getByText('Receipt').click();
  await page.waitForLoadState('networkidle');
  await page.evaluate('scrollTo(0, 0)');
  await save(page, 'playground', theme);
  await close();
}

async function save(
  page: { screenshot(options: object): Promise<unknown> },
  name: string,
  theme: string,
): Promise<void> {
  await page.screenshot({ path: join(PICTURES, `${name}-${theme}.png`), animations: 'disabled' });
  console.log(`docs/images/${name}-${theme}.png`);
}

/** Makes a few calls of each kind, so that the pages have content. */
async function makeCalls(): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const post = (path: string, body: object) =>
    fetch(`${origin}${path}`, { method: 'POST', headers, body: JSON.stringify(body) }).then((answer) => answer.text());
  const asks = ['What is a tollgate?', 'Count to 20', 'What is 6 × 7?', 'What does this cost?', 'Tell me about escrow'];
  for (const content of asks)
    await post('/api/v1/chat/completions', { model: 'demo/chat', messages: [{ role: 'user', content }] });
  const call = {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'roll_dice', arguments: { dice: '2d6' } },
  };
  for (let n = 0; n < 3; n += 1) await post('/mcp/demo/tools', call);
  const message = { messageId: 'first', role: 'user', parts: [{ kind: 'text', text: 'Roll 2d6' }] };
  await post('/a2a/demo/agent', { jsonrpc: '2.0', id: 1, method: 'message/send', params: { message } });
  await post('/api/v1/image/generate', { model: 'demo/image', prompt: 'a tollgate at dawn' });
  await new Promise((wake) => setTimeout(wake, 3000));
}
