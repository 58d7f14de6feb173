import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Visitor } from '../../../support/browser.ts';
import { pageHolds } from '../page-holds.ts';
import { type OperatorWorld, startOperatorWorld } from './operator-world.ts';

// The operator's pages with what a week brings, in a browser: each holds, the keyboard alone is enough, and a slow line
// shows what is there. The deep run asks all of it of all pages.

const isDeep = process.env['TOLLGATE_DEEP'] === '1';
/** Some of the pages, or all of them. */
const some = () => Object.values(pages).slice(0, isDeep ? Infinity : 3);

interface Call {
  readonly id: string;
}

let world: OperatorWorld;
let visitor: Visitor;
let pages: Readonly<Record<string, string>>;
beforeAll(async () => {
  world = await startOperatorWorld();
  const calls = async (query: string) =>
    (await world.admin('GET', `${ACME}/calls?limit=1&${query}`)) as readonly Call[];
  const [failed] = await calls('failed=true');
  const [served] = await calls('failed=false');
  const offers = (await world.admin('GET', '/services')) as readonly { service: string; provider: string }[];
  const providerOf = (name: string) => offers.find(({ service }) => service === name)!.provider;
  await world.admin('POST', `/calls/${served!.id}/refund`, { reason: 'the answer was wrong' });
  pages = {
    'home of 30 days': '/admin?range=30d',
    accounts: '/admin?tab=accounts',
    'an account': ACME_PAGE,
    'an account by tag, its failed calls': `${ACME_PAGE}&by=tag&tag=team&state=failed`,
    'an account in a month': `${ACME_PAGE}&by=key&time=${new Date().toISOString().slice(0, 7)}`,
    'a refunded call': `${ACME_PAGE}&call=${served!.id}`,
    'a failed call by its id alone': `/admin?tab=accounts&call=${failed!.id}`,
    'usage by account': '/admin?tab=usage',
    'usage by tag': '/admin?tab=usage&by=tag&tag=team',
    'usage by key': '/admin?tab=usage&by=key',
    services: '/admin?tab=services',
    'services that lose money': '/admin?tab=services&only=losing',
    providers: '/admin?tab=providers',
    'a provider that is down': `/admin?tab=providers&provider=${providerOf('gone/chat')}`,
    'a provider that dialled in': `/admin?tab=providers&provider=${providerOf('seller/chat')}`,
    gateways: '/admin?tab=gateways',
    changes: '/admin?tab=changes',
  };
  visitor = await world.visit('/admin');
});
afterAll(async () => {
  const faults = await world.spine.faults();
  await world.close();
  expect(faults).toEqual([]);
});

const ACME = '/accounts/tollgate%3Alocal%3Aacme';
const ACME_PAGE = '/admin?tab=accounts&account=tollgate%3Alocal%3Aacme';

test('each page holds', async () => {
  for (const path of Object.values(pages)) {
    await visitor.page.goto(path);
    await pageHolds(visitor);
  }
});

test('the dialogs of changes hold', async () => {
  const { page } = visitor;
  for (const [path, button] of [
    [ACME_PAGE, 'Change the limits'],
    [ACME_PAGE, 'Credit'],
    [ACME_PAGE, 'Change'],
    ['/admin?tab=services', 'Test vendor/chat-mini'],
  ] as const) {
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.goto(path);
    await page.getByRole('button', { name: button, exact: true }).click();
    await page.getByRole('dialog').waitFor();
    await pageHolds(visitor);
  }
});

test('a page says what is wrong with a service, and what the call had', async () => {
  const { page } = visitor;
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.goto('/admin?tab=services');
  const gone = page.getByRole('row', { name: /gone\/chat/ });
  // Down while it rests, and failing once it may be called again.
  await gone.getByText(/^(?:Down|Failing)$/).waitFor();
  await gone.getByText('the provider refused the connection').waitFor();
  // It was called once, and failed: neither healthy nor untried.
  await page
    .getByRole('row', { name: /test\/model/ })
    .getByText('Failing')
    .waitFor();
  await page
    .getByRole('row', { name: /idle\/chat/ })
    .getByText('Idle', { exact: true })
    .last()
    .waitFor();
  await gone.getByRole('link', { name: 'its call' }).click();
  await page.getByText('The call failed').waitFor();
  await page.getByRole('link', { name: /globex$/ }).click();
  await page.getByRole('heading', { name: 'globex' }).waitFor();
});

test('the usage of all accounts is the sum of its rows, and a row leads to the account', async () => {
  const { page } = visitor;
  await page.setViewportSize({ width: 1280, height: 900 });
  const all = (await world.admin('GET', '/usage?group_by=account')) as readonly { cost_micro_usdc: number }[];
  await page.goto('/admin?tab=usage');
  const rows = page.getByRole('table', { name: 'Usage' }).getByRole('row');
  await rows.filter({ hasText: 'tollgate:local:acme' }).waitFor();
  expect(await rows.count()).toBe(all.length + 1);
  const saved = page.waitForEvent('download');
  await page.getByRole('button', { name: 'CSV' }).click();
  expect((await saved).suggestedFilename()).toBe('usage-all-by-account.csv');
  await page.getByRole('button', { name: 'Tag' }).click();
  await page.getByRole('table', { name: 'Usage' }).getByRole('columnheader', { name: 'team' }).waitFor();
  // Keys of two accounts may have one name.
  await page.getByRole('button', { name: 'Key', exact: true }).click();
  await rows
    .filter({ has: page.getByRole('link', { name: 'Acme Ltd' }) })
    .first()
    .waitFor();
  await rows
    .filter({ has: page.getByRole('link', { name: 'globex' }) })
    .first()
    .waitFor();
  await page.goto('/admin?tab=usage&by=tag');
  await rows.filter({ hasText: 'tollgate:local:acme' }).getByRole('link').click();
  await page.getByRole('heading', { name: 'acme' }).waitFor();
});

test('a provider that answered nothing stands first at home, with why', async () => {
  const { page } = visitor;
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.goto('/admin');
  await page.getByText(/^Gone answered none of \d+ attempts?\. \S/).waitFor();
  const rows = page.getByRole('table', { name: 'Providers' }).getByRole('row');
  const row = rows.filter({ has: page.getByRole('link', { name: 'Gone' }) });
  await row.getByText(/No answer to \d+ attempts?: \S/).waitFor();
  // Those that answered come after all that did not.
  const texts = (await rows.allTextContents()).slice(1);
  const failing = texts.filter((text) => text.includes('No answer to'));
  expect(texts.slice(0, failing.length)).toEqual(failing);
  expect(texts.length).toBeGreaterThan(failing.length);
});

test('the keyboard alone finds a failed call and opens its refund', async () => {
  const { page } = visitor;
  await page.goto('/admin');
  await visitor.settled();
  const focused = () =>
    page.evaluate<string>("document.activeElement.textContent || document.activeElement.ariaLabel || ''");
  const tabTo = async (text: RegExp) => {
    for (let n = 0; n < 80; n++) {
      await page.keyboard.press('Tab');
      if (text.test(await focused())) return;
    }
    throw new Error(`Tab never reached ${String(text)}`);
  };
  await tabTo(/^Home$/);
  await page.keyboard.press('ArrowRight');
  expect(await focused()).toBe('Accounts');
  await page.getByRole('link', { name: 'Acme Ltd' }).waitFor();
  await tabTo(/^Acme Ltd$/);
  await page.keyboard.press('Enter');
  await visitor.settled();
  await page.getByRole('table', { name: 'Calls' }).waitFor();
  await tabTo(/^Settled$/);
  await page.keyboard.press('Enter');
  await visitor.settled();
  await tabTo(/^vendor\/chat/);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Money' }).waitFor();
  await visitor.settled();
  expect(new URL(page.url()).searchParams.get('call')).toMatch(/^gen-/);
});

test('the keyboard reaches everything that can be pressed or filled, on each page', async () => {
  const { page } = visitor;
  await page.setViewportSize({ width: 1280, height: 900 });
  for (const path of some()) {
    await page.goto(path);
    await visitor.settled();
    const count = await page.evaluate<number>(`${REACHABLE}.length`);
    for (let n = 0; n < count + 20; n++) {
      await page.keyboard.press('Tab');
      await page.evaluate('(window.reached ??= new Set()).add(document.activeElement)');
    }
    const missing = await page.evaluate<readonly string[]>(
      `${REACHABLE}.filter((each) => !window.reached.has(each)).map((each) => each.outerHTML.slice(0, 200))`,
    );
    expect(missing, path).toEqual([]);
  }
});

/** What the Tab key stops at. Of a group of radio buttons it is one. */
const REACHABLE = `[...document.querySelectorAll('a[href], button, input:not([type=radio]), select, textarea, summary')]
  .filter((each) => !each.disabled && each.tabIndex >= 0 && each.checkVisibility({ visibilityProperty: true }))`;

test('on a phone a service has its price, and can be tested', async () => {
  const { page } = visitor;
  await page.setViewportSize({ width: 390, height: 800 });
  await page.goto('/admin?tab=services');
  const mini = page.getByRole('row', { name: /vendor\/chat-mini/ });
  await mini
    .getByText(/^\$300/)
    .filter({ visible: true })
    .waitFor();
  const test = mini.getByRole('button', { name: 'Test vendor/chat-mini' });
  const { x, width } = (await test.boundingBox())!;
  expect(x + width).toBeLessThanOrEqual(390);
  await test.click();
  await page
    .getByRole('dialog')
    .getByText(/^A short question to vendor\/chat-mini/)
    .waitFor();
  await page.keyboard.press('Escape');
});

test('a name or an id in the search leads to its page', async () => {
  const { page } = visitor;
  await page.goto('/admin');
  const search = page.getByRole('search', { name: 'Find an account or a call' }).getByRole('searchbox');
  await search.fill('acme');
  await search.press('Enter');
  await page.getByRole('heading', { name: 'Acme Ltd' }).waitFor();
  const [call] = (await world.admin('GET', `${ACME}/calls?limit=1`)) as readonly Call[];
  await search.fill(call!.id);
  await search.press('Enter');
  await page.getByRole('link', { name: 'Acme Ltd' }).waitFor();
});

test('on a slow line a page has its frame at once, and then its figures', async () => {
  const { page } = visitor;
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Network.enable');
  const line = (latency: number, throughput: number) =>
    devtools.send('Network.emulateNetworkConditions', {
      offline: false,
      latency,
      downloadThroughput: throughput,
      uploadThroughput: throughput,
    });
  await line(300, 50_000);
  try {
    const frame = Promise.withResolvers<void>();
    const figures = '**/admin/v1/services*';
    await page.route(figures, async (route) => {
      await frame.promise;
      await route.continue();
    });
    await page.goto('/admin?tab=services', { waitUntil: 'commit' });
    await page.getByRole('tab', { name: 'Services' }).waitFor();
    await page.getByRole('status').first().waitFor();
    frame.resolve();
    await page.unroute(figures);
    await page.getByRole('row', { name: /vendor\/chat-large/ }).waitFor();
    for (const path of some()) {
      await page.goto(path, { waitUntil: 'commit' });
      await page.getByRole('tab', { name: 'Services' }).waitFor();
      await visitor.settled();
      expect(visitor.problems, path).toEqual([]);
    }
    await page.getByRole('tab', { name: 'Home' }).click();
    await page.getByRole('heading', { name: 'Money at rest' }).waitFor();
  } finally {
    await line(0, -1);
    await devtools.detach();
  }
});
