import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Browser, type BrowserContext, chromium, type Page, type Request } from 'playwright-core';
import { findChromium } from './find-chromium.ts';

/** A visitor with its own browser window, without cookies or stored data. */
export interface Visitor {
  readonly page: Page;
  /** Console messages, script errors and policy violations, in order. A test must end with none of these. */
  readonly problems: readonly string[];
  /** Violations of WCAG 2.2 AA that axe finds on the current page, one line each. */
  axe(): Promise<readonly string[]>;
  /** By how many pixels the page is wider than the window. */
  overflow(): Promise<number>;
  /** Resolves when the page has its heading, nothing on it is loading, and no request is running. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

interface VisitorOptions {
  /** The gateway's origin, such as `http://127.0.0.1:8402`. Then `page.goto('/marketplace')` works. */
  readonly origin: string;
  readonly theme?: 'light' | 'dark';
  /** Width of the window in pixels. Default 1280. */
  readonly width?: number;
  readonly height?: number;
  /** Messages that the page is expected to cause, such as the one of a 404. */
  readonly expected?: RegExp;
  /** Adds a test wallet to the window. The window isn't reused for other visitors. */
  readonly wallet?: boolean;
}

export interface TestBrowser {
  visit(options: VisitorOptions): Promise<Visitor>;
  close(): Promise<void>;
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

// These scripts are text because they run in the browser: the tests have no `document` type.
const TELL_VIOLATIONS = `addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
  console.error('policy: ' + violatedDirective + ' ' + blockedURI))`;
const OVERFLOW = 'Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth)';
const SETTLED = `document.querySelector('main h1') !== null && document.querySelector('.shimmer') === null`;
const TWO_FRAMES = 'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))';
// A colour in the middle of a transition would be reported as an error. The policy forbids style elements, so a
// constructed style sheet is used.
const NO_TRANSITIONS = `{
  const styles = new CSSStyleSheet();
  styles.replaceSync('*, ::before, ::after { transition: none !important }');
  document.adoptedStyleSheets.push(styles);
}`;
// Returns only the violations, because the full report is a hundred times as long.
const RUN_AXE = `axe
  .run({
    runOnly: { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] },
    resultTypes: ['violations'],
  })
  .then(({ violations }) =>
    violations.flatMap(({ id, help, nodes }) =>
      nodes.map(
        ({ html, failureSummary }) =>
          id + ': ' + help + ': ' + html.slice(0, 200) + ' ' + failureSummary.replaceAll('\\n', ' '),
      ),
    ),
  )`;

let launched: Promise<Browser> | undefined;

/** One Chromium for all files of a worker. It ends with the worker. If it crashed, a new one is started. */
async function sharedChromium(): Promise<Browser> {
  const known = await launched?.catch(() => undefined);
  if (known?.isConnected() === true) return known;
  launched = findChromium().then(({ file, env }) =>
    chromium.launch({
      executablePath: file,
      env,
      // Over http, a name other than localhost is not a secure context.
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-dev-shm-usage',
        '--host-resolver-rules=MAP plain.test 127.0.0.1',
      ],
    }),
  );
  return launched;
}

/** Opens windows in a real Chromium. Use one per test file. The visitors are isolated from each other. */
export async function openBrowser(): Promise<TestBrowser> {
  const browser = await sharedChromium();
  /** Unused pages, by origin. They are reused because a new page costs Chromium more than the content it shows. */
  const idle = new Map<string, Page[]>();
  const contexts = new Set<BrowserContext>();
  const newPage = async (origin: string): Promise<Page> => {
    const context = await browser.newContext({
      baseURL: origin,
      reducedMotion: 'reduce',
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    contexts.add(context);
    const page = await context.newPage();
    // On a machine that is busy with other tests.
    page.setDefaultTimeout(100_000);
    await page.addInitScript(TELL_VIOLATIONS);
    return page;
  };
  return {
    async visit(options) {
      const { origin, wallet = false } = options;
      const page = (wallet ? undefined : idle.get(origin)?.pop()) ?? (await newPage(origin));
      return {
        ...(await visit(page, options)),
        async close() {
          if (wallet) return page.close();
          await forget(page, origin);
          idle.set(origin, [...(idle.get(origin) ?? []), page]);
        },
      };
    },
    async close() {
      await Promise.all([...contexts].map((context) => context.close()));
    },
  };
}

async function visit(page: Page, options: VisitorOptions): Promise<Omit<Visitor, 'close'>> {
  const { theme = 'light', width = 1280, height = 900, expected } = options;
  const problems: string[] = [];
  const note = (text: string) => {
    if (expected?.test(text) !== true) problems.push(text);
  };
  page.on('console', (message) => note(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => note(`error: ${error.message}`));
  await page.emulateMedia({ colorScheme: theme });
  await page.setViewportSize({ width, height });
  return {
    page,
    problems,
    axe: () => axeOf(page),
    overflow: () => page.evaluate<number>(OVERFLOW),
    settled: settling(page),
  };
}

/** Removes a visitor's data and everything that the test has changed on the page. */
async function forget(page: Page, origin: string): Promise<void> {
  page.removeAllListeners();
  await page.unrouteAll();
  if (page.url().startsWith(origin)) await page.evaluate('sessionStorage.clear()');
  await page.goto('about:blank');
  const devtools = await page.context().newCDPSession(page);
  await Promise.all([
    page.context().clearCookies(),
    devtools.send('Storage.clearDataForOrigin', { origin, storageTypes: 'all' }),
  ]);
  await devtools.detach();
}

function settling(page: Page): () => Promise<void> {
  const underWay = new Set<Request>();
  page.on('request', (request) => underWay.add(request));
  for (const event of ['requestfinished', 'requestfailed'] as const)
    page.on(event as 'requestfinished', (request) => underWay.delete(request));
  return async () => {
    await page.locator('main h1').waitFor();
    const isSettled = async () => {
      await page.evaluate(TWO_FRAMES);
      return underWay.size === 0 && (await page.evaluate<boolean>(SETTLED));
    };
    // Checks twice, because an answer may have started another request.
    while (!((await isSettled()) && (await isSettled())));
  };
}

/** The page's policy blocks added scripts, but not scripts of the debugger. */
async function axeOf(page: Page): Promise<readonly string[]> {
  if (!(await page.evaluate<boolean>('"axe" in globalThis'))) await page.evaluate(`${AXE};${NO_TRANSITIONS}`);
  return page.evaluate<string[]>(RUN_AXE);
}
