import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { startSpine } from '../../support/spine.ts';

const run = promisify(execFile);
const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];
const QUIET = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
];

async function findBrowser(): Promise<string> {
  for (const name of NAMES) if (await run(name, ['--version']).catch(() => null)) return name;
  throw new Error(`None of ${NAMES.join(', ')} is installed. On Debian: apt-get install -y chromium`);
}

test('/docs shows every chapter in a real browser, under its own content security policy', async () => {
  const browser = await findBrowser();
  const spine = await startSpine();
  onTestFinished(() => spine.stop());
  const profile = await mkdtemp(join(tmpdir(), 'tollgate-browser-'));
  onTestFinished(() => rm(profile, { recursive: true, force: true }));
  const args = [
    ...QUIET,
    `--user-data-dir=${profile}`,
    '--enable-logging=stderr',
    '--virtual-time-budget=10000',
    '--dump-dom',
    `${spine.origin}/docs`,
  ];
  const { stdout, stderr } = await run(browser, args, { maxBuffer: 64 * 1024 * 1024 });
  const { tags } = (await (await fetch(`${spine.origin}/openapi.json`)).json()) as {
    readonly tags: readonly { readonly name: string }[];
  };
  for (const { name } of tags) expect(stdout, name).toContain(`data-tag="${name}"`);
  expect(stderr).not.toMatch(/Content Security Policy|Uncaught/);
});
