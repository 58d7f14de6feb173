import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Browser, chromium, type Page } from 'playwright-core';
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
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

// Text, as the tests know no document.
const TELL_VIOLATIONS = `addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
  console.error('policy: ' + violatedDirective + ' ' + blockedURI))`;
const OVERFLOW = 'Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth)';

/** A real Chromium. One for a test file: each visitor is apart from the others. */
export async function openBrowser(): Promise<TestBrowser> {
  const browser = await chromium.launch({
    executablePath: await findChromium(),
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  });
  return { visit: (options) => visit(browser, options), close: () => browser.close() };
}

async function visit(browser: Browser, options: VisitorOptions): Promise<Visitor> {
  const { origin, theme = 'light', width = 1280, height = 900, expected, script } = options;
  const context = await browser.newContext({
    baseURL: origin,
    viewport: { width, height },
    colorScheme: theme,
    reducedMotion: 'reduce',
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  const problems: string[] = [];
  const note = (text: string) => {
    if (expected?.test(text) !== true) problems.push(text);
  };
  const page = await context.newPage();
  page.on('console', (message) => note(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => note(`error: ${error.message}`));
  await page.addInitScript(TELL_VIOLATIONS);
  if (script !== undefined) await page.addInitScript(script);
  return {
    page,
    problems,
    axe: () => axeOf(page),
    overflow: () => page.evaluate<number>(OVERFLOW),
    close: () => context.close(),
  };
}

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly help: string;
    readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
  }[];
}

/** A policy blocks scripts that a page is given, but not those of its debugger. */
async function axeOf(page: Page): Promise<readonly string[]> {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(
    (rules) =>
      (globalThis as unknown as { axe: { run(options: object): Promise<AxeResult> } }).axe.run({
        runOnly: { type: 'tag', values: rules },
      }),
    RULES,
  );
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(
      ({ html, failureSummary }) => `${id}: ${help}: ${html.slice(0, 200)} ${failureSummary.replaceAll('\n', ' ')}`,
    ),
  );
}
