import { afterAll, beforeAll, test } from 'vitest';
import { openBrowser, type TestBrowser, type Visitor } from '../../support/browser.ts';
import { MODEL, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { pageHolds } from './page-holds.ts';

// Pages that everybody sees, each with all that holds for a page.

const PAGES = [
  '/',
  '/marketplace',
  `/models/${MODEL}`,
  '/providers',
  '/rankings',
  '/playground',
  '/docs',
  '/docs#/Chat/createChatCompletion',
  '/sign-in',
  '/dashboard',
];

let spine: Spine;
let browser: TestBrowser;
let visitor: Visitor;
beforeAll(async () => {
  [spine, browser] = await Promise.all([startSpine({ toml: UNHURRIED }), openBrowser()]);
  visitor = await browser.visit({ origin: spine.origin });
});
afterAll(async () => {
  await browser.close();
  await spine.stop();
});

test.each(PAGES)('%s', async (path) => {
  await visitor.page.goto(path);
  await pageHolds(visitor);
});
