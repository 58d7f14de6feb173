import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Browser, type BrowserContext, chromium, type Page, type Request } from 'playwright-core';
import { findChromium } from './find-chromium.ts';

/** A visitor with a browser window of its own: no cookies, nothing stored. */
export interface Visitor {
  readonly page: Page;
  /**
   * Messages of the console, errors of scripts and violations of the policy, in order. A test ends with this empty.
   */
  readonly problems: readonly string[];
  /** Violations of WCAG 2.2 AA that axe finds on the page as it is now, one line each. */
  axe(): Promise<readonly string[]>;
  /** How many pixels the page is wider than the window. */
  overflow(): Promise<number>;
  /** Resolves when the page has its heading, nothing on it is being fetched, and no request is under way. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

interface VisitorOptions {
  /** Of the gateway, such as `http://127.0.0.1:8402`: `page.goto('/marketplace')`. */
  readonly origin: string;
  readonly theme?: 'light' | 'dark';
  /** Pixels; default 1280. */
  readonly width?: number;
  readonly height?: number;
  /** Messages that the page is meant to cause, such as the one of a 404. */
  readonly expected?: RegExp;
  /** Runs in the page before its own scripts: a wallet. */
  readonly script?: string;
}

export interface TestBrowser {
  visit(options: VisitorOptions): Promise<Visitor>;
  close(): Promise<void>;
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

// Text, as the tests know no document.
const TELL_VIOLATIONS = `addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
  console.error('policy: ' + violatedDirective + ' ' + blockedURI))`;
const OVERFLOW = 'Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth)';
const SETTLED = `document.querySelector('main h1') !== null && document.querySelector('.shimmer') === null`;
const TWO_FRAMES = 'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))';
// A colour on its way from one theme to the other is no fault of the page. Through the object model, as the policy allows no style of others.
const NO_TRANSITIONS = `{
  const styles = new CSSStyleSheet();
  styles.replaceSync('*, ::before, ::after { transition: none !important }');
  document.adoptedStyleSheets.push(styles);
}`;
// The violations alone leave the page: the report of all that is well is a hundred times as long.
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

/** A real Chromium, one for all files of a worker: it ends with the worker. */
async function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: await findChromium(),
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  });
}

/** Windows of a real Chromium. One for a test file: each visitor is apart from the others. */
export async function openBrowser(): Promise<TestBrowser> {
  launched ??= launch();
  const browser = await launched;
  /** Contexts that nobody uses, by origin. A new one costs Chromium more than a page does. */
  const idle = new Map<string, BrowserContext[]>();
  const all = new Set<BrowserContext>();
  const contextFor = async (origin: string): Promise<BrowserContext> => {
    const known = idle.get(origin)?.pop();
    if (known !== undefined) return known;
    const context = await browser.newContext({
      baseURL: origin,
      viewport: { width: 1280, height: 900 },
      reducedMotion: 'reduce',
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    all.add(context);
    return context;
  };
  return {
    async visit(options) {
      const { origin } = options;
      const context = await contextFor(origin);
      const visitor = await visit(context, options);
      return {
        ...visitor,
        async close() {
          await visitor.close();
          idle.set(origin, [...(idle.get(origin) ?? []), context]);
        },
      };
    },
    async close() {
      await Promise.all([...all].map((context) => context.close()));
    },
  };
}

async function visit(context: BrowserContext, options: VisitorOptions): Promise<Visitor> {
  const { origin, theme = 'light', width = 1280, height = 900, expected, script } = options;
  const problems: string[] = [];
  const note = (text: string) => {
    if (expected?.test(text) !== true) problems.push(text);
  };
  const page = await context.newPage();
  page.on('console', (message) => note(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => note(`error: ${error.message}`));
  await page.emulateMedia({ colorScheme: theme });
  if (width !== 1280 || height !== 900) await page.setViewportSize({ width, height });
  await page.addInitScript(TELL_VIOLATIONS);
  if (script !== undefined) await page.addInitScript(script);
  return {
    page,
    problems,
    axe: () => axeOf(page),
    overflow: () => page.evaluate<number>(OVERFLOW),
    settled: settling(page),
    async close() {
      // What it leaves is gone before the next visitor comes.
      const devtools = await context.newCDPSession(page);
      await page.goto('about:blank');
      await Promise.all([
        context.clearCookies(),
        devtools.send('Storage.clearDataForOrigin', { origin, storageTypes: 'all' }),
      ]);
      await page.close();
    },
  };
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
    // Twice: an answer may have led to another request.
    while (!((await isSettled()) && (await isSettled())));
  };
}

/** A policy blocks scripts that a page is given, but not those of its debugger. */
async function axeOf(page: Page): Promise<readonly string[]> {
  if (!(await page.evaluate<boolean>('"axe" in globalThis'))) await page.evaluate(`${AXE};${NO_TRANSITIONS}`);
  return page.evaluate<string[]>(RUN_AXE);
}
