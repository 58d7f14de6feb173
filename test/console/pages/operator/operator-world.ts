import { dialIn, type DialledIn, offeredModel } from '../../../support/dial-in.ts';
import { atThisLoad } from '../../../support/at-this-load.ts';
import { openBrowser, type TestBrowser, type Visitor } from '../../../support/browser.ts';
import { ask, modelBlock, type Spine, startSpine, UNHURRIED } from '../../../support/spine.ts';
import { toolBlock } from '../../../mcp/conformance/tool-block.ts';
import { type McpFixture, startMcpFixture } from '../../../support/mcp-fixture.ts';

/* A gateway with what an operator's week has: customers with keys, tags, notes and limits, a service that loses money,
   one that is broken, one that nobody has called, and a provider that dials in. */

export interface OperatorWorld {
  readonly spine: Spine;
  readonly browser: TestBrowser;
  readonly seller: DialledIn;
  readonly acme: { readonly account: string; readonly key: string };
  /** Sends a request to the admin API. */
  admin(method: 'GET' | 'POST' | 'PATCH', path: string, body?: object): Promise<unknown>;
  /** Opens a page of the operator, signed in. `expected`: messages of the browser's console. */
  visit(path: string, options?: { readonly expected?: RegExp }): Promise<Visitor>;
  close(): Promise<void>;
}

const DAY_MS = 86_400_000;

/** `days`: the calls are those of so many days. */
export async function startOperatorWorld({ days = 1 }: { readonly days?: number } = {}): Promise<OperatorWorld> {
  let ahead = (1 - days) * DAY_MS;
  const fixture: McpFixture = await startMcpFixture();
  const own = [
    modelBlock({
      name: 'vendor/chat-large',
      provider: 'Vendor',
      url: '{provider}',
      prompt: 5_000,
      completion: 9_000,
      lines: 'cost = { prompt = 4000, completion = 7000 }',
    }),
    modelBlock({
      name: 'vendor/chat-mini',
      provider: 'Vendor',
      url: '{provider}',
      prompt: 300,
      completion: 600,
      lines: 'cost = { prompt = 330, completion = 660 }',
    }),
    modelBlock({ name: 'gone/chat', provider: 'Gone', url: 'http://127.0.0.1:9/v1' }),
    modelBlock({ name: 'idle/chat', provider: 'Idle', url: '{provider}' }),
    toolBlock('acme/tools', fixture.url),
  ];
  const toml = `${UNHURRIED}\n[analytics]\nevery_ms = 100\n[tunnel]\nproviders = "anyone"\n${own.join('')}`;
  const [spine, browser] = await Promise.all([
    startSpine({ toml, ...(days > 1 && { now: () => Date.now() + ahead }) }),
    openBrowser(),
  ]);
  const admin: OperatorWorld['admin'] = async (method, path, body) => {
    const answer = await fetch(`${spine.origin}/admin/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${spine.adminKey}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return (JSON.parse(text) as { readonly data: unknown }).data;
  };
  const acme = await spine.tenant('acme', '250');
  const globex = await spine.tenant('globex', '40');
  const selling = await spine.tenant('seller', '0');
  const seller = await dialIn({
    router: spine.origin,
    apiKey: selling.key,
    services: offeredModel({
      url: spine.provider.url,
      name: 'seller/chat',
      provider: 'Seller',
      prompt: 800,
      completion: 1_500,
    }),
  });
  await admin('PATCH', '/accounts/tollgate%3Alocal%3Aacme', { label: 'Acme Ltd' });
  await admin('POST', '/accounts/tollgate%3Alocal%3Aacme/keys', { name: 'search in production' });
  await admin('POST', '/accounts/tollgate%3Alocal%3Aacme/credit', { amount_usd: '25', reference: 'SEPA-117' });
  await admin('POST', '/accounts/tollgate%3Alocal%3Aacme/debit', {
    amount_usd: '1.5',
    reference: 'twice-1',
    reason: 'credited twice',
  });
  await admin('POST', '/accounts/tollgate%3Alocal%3Aacme/notes', { text: 'Asked for a higher rate on Monday.' });
  await admin('PATCH', '/accounts/tollgate%3Alocal%3Aacme/limits', {
    budgets: [{ limit_reset: 'monthly', limit: 100 }],
    requests_per_minute: 600,
  });

  const send = async (key: string, model: string, text: string, tags: string) =>
    (
      await spine.post('/chat/completions', ask(text, { model }), {
        authorization: `Bearer ${key}`,
        ...(tags !== '' && { 'x-tollgate-tags': tags }),
      })
    ).text();
  for (let day = 0; day < days; day++) {
    const teams = ['team=search', 'team=support', ''];
    for (let n = 0; n < 3 + ((day * 7) % 5); n++) {
      await send(acme.key, 'vendor/chat-large', `hello ${n}`, teams[n % 3]!);
      await send(acme.key, 'vendor/chat-mini', 'hello', teams[(n + 1) % 3]!);
      await send(globex.key, 'seller/chat', 'hello', '');
    }
    await send(acme.key, 'test/model', '!status:500', 'team=search');
    await send(globex.key, 'gone/chat', 'hello', '');
    if (day < days - 1) ahead += DAY_MS;
  }
  await spine.quiet();
  const counted = async () => {
    const { totals } = (await admin('GET', '/overview?range=30d')) as {
      readonly totals: { readonly requests: number; readonly failed: number };
    };
    return totals.requests + totals.failed;
  };
  const calls = (await spine.locks()).length;
  const until = Date.now() + atThisLoad(30_000);
  while ((await counted()) < calls && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 50));
  return {
    spine,
    browser,
    seller,
    acme,
    admin,
    async visit(path, options) {
      const visitor = await browser.visit({ origin: spine.origin, ...options });
      const { page } = visitor;
      await page.goto(path);
      await page.getByLabel('Admin key').fill(spine.adminKey);
      await page.getByRole('button', { name: 'Sign in as the operator' }).click();
      await page.getByRole('tab', { name: 'Accounts' }).waitFor();
      return visitor;
    },
    async close() {
      seller.kill();
      await browser.close();
      await spine.stop();
      await fixture.close();
    },
  };
}
