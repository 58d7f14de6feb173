/**
 * `node bench/pages.ts`: the time until a page shows its largest content (LCP) on a slow machine and connection: a
 * processor that is four times slower, 1.6 Mbit/s, 150 ms latency, empty cache. `--fast` removes these limits.
 * `--waterfall` also prints when each file was requested and received. `--url` names a running gateway. With two of
 * them, both are measured in turns.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { chromium, type Browser } from 'playwright-core';
import { findChromium } from '../test/support/find-chromium.ts';
import { startProgram } from './program.ts';

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));
const PAGES = ['/marketplace', '/models/demo/sage', '/tools/demo/toolbox', '/agents/demo/croupier', '/providers'];
const KBPS = 1_600;
const LATENCY_MS = 150;
const SLOWER = 4;
/** Larger content may still appear after the page is quiet. */
const SETTLE_MS = 400;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    width: { type: 'string', default: '1280' },
    page: { type: 'string', multiple: true },
    url: { type: 'string', multiple: true },
    waterfall: { type: 'boolean', default: false },
    fast: { type: 'boolean', default: false },
  },
});

interface Seen {
  readonly lcp: number;
  readonly element: string;
  readonly shift: number;
  readonly files: readonly {
    readonly name: string;
    readonly start: number;
    readonly end: number;
    readonly size: number;
  }[];
}

const LOOK = `(() => {
  globalThis.seen = { lcp: 0, element: '', shift: 0 };
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      seen.lcp = entry.startTime;
      seen.element = entry.element ? entry.element.tagName + ' ' + entry.element.textContent.slice(0, 60) : '';
    }
  }).observe({ type: 'largest-contentful-paint', buffered: true });
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) seen.shift += entry.value;
  }).observe({ type: 'layout-shift', buffered: true });
})()`;
const TWO_FRAMES = 'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))';
const TELL = `({ ...seen, files: [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
  .map((entry) => ({ name: new URL(entry.name).pathname, start: entry.startTime, end: entry.responseEnd, size: entry.encodedBodySize })) })`;

async function look(browser: Browser, url: string): Promise<Seen> {
  const context = await browser.newContext({ viewport: { width: Number(values.width), height: 900 } });
  try {
    const page = await context.newPage();
    await page.addInitScript(LOOK);
    if (!values.fast) {
      const devtools = await context.newCDPSession(page);
      await devtools.send('Network.enable');
      await devtools.send('Network.emulateNetworkConditions', {
        offline: false,
        latency: LATENCY_MS,
        downloadThroughput: (KBPS * 1_000) / 8,
        uploadThroughput: (KBPS * 1_000) / 8,
      });
      await devtools.send('Emulation.setCPUThrottlingRate', { rate: SLOWER });
    }
    await page.goto(url, { waitUntil: 'networkidle' });
    // A slow processor may still be busy when the network is quiet.
    await page.locator('#root > footer').waitFor();
    await page.evaluate(TWO_FRAMES);
    await page.waitForTimeout(SETTLE_MS);
    return await page.evaluate<Seen>(TELL);
  } finally {
    await context.close();
  }
}

const middle = (all: readonly number[]): number => all.toSorted((a, b) => a - b)[all.length >> 1]!;

const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-'));
const gateway = values.url
  ? null
  : startProgram([MAIN, 'start'], {
      cwd: folder,
      env: { TOLLGATE_DATA: folder, PORT: '0', OLLAMA_HOST: '127.0.0.1:9' },
    });
const { file: executablePath, env } = await findChromium();
const browser = await chromium.launch({
  executablePath,
  env,
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
});
try {
  const origins = values.url ?? [await gateway!.until(addressOf, 'it listened')];
  const pages = origins.flatMap((origin) => (values.page ?? PAGES).map((page) => origin + page));
  const found = new Map<string, Seen[]>(pages.map((page) => [page, []]));
  // The first visit builds and compresses the files.
  for (const page of pages) await look(browser, page);
  for (let round = 0; round < Number(values.rounds); round += 1)
    for (const page of pages) found.get(page)!.push(await look(browser, page));
  for (const [page, seen] of found) {
    const lcp = seen.map((each) => each.lcp);
    const last = seen.at(-1)!;
    process.stdout.write(
      `${page}: LCP ${middle(lcp).toFixed(0)} ms (best ${Math.min(...lcp).toFixed(0)}), shift ${middle(seen.map(({ shift }) => shift)).toFixed(3)}, ${last.files.length} requests, ${last.element}\n`,
    );
    if (values.waterfall)
      for (const { name, start, end, size } of last.files)
        process.stdout.write(
          `  ${start.toFixed(0).padStart(5)}–${end.toFixed(0).padStart(5)} ms ${(size / 1024).toFixed(1).padStart(6)} KiB ${name}\n`,
        );
  }
} finally {
  await browser.close();
  await gateway?.stop();
  rmSync(folder, { recursive: true, force: true });
}

function addressOf(): string | null {
  try {
    return (JSON.parse(readFileSync(join(folder, 'dev.json'), 'utf8')) as { readonly base_url: string }).base_url;
  } catch {
    return null;
  }
}
