import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { atThisLoad } from '../../support/at-this-load.ts';
import { openBrowser, type TestBrowser, type Visitor } from '../../support/browser.ts';
import { foldersOfMachine } from '../../support/named-programs.ts';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { installStranger } from '../../support/stranger.ts';

/*
 * What the page "Connect" shows, pasted as it is into a shell or a file, by a person with a real browser. What a person
 * does with the program afterwards is in programs-sign-in.test.ts.
 */

const MINUTE_MS = 60_000;
let spine: Spine;
let browser: TestBrowser;
let visitor: Visitor;
/** A home with `bin`, which has the programs by their names and the browser. */
const home = join(tmpdir(), `tollgate-connect-${process.pid}`);
const env = { HOME: home, TERM: 'xterm', PS1: '$ ', BROWSER: join(home, 'bin/xdg-open') };
const PATH = [join(home, 'bin'), ...foldersOfMachine()].join(':');
let opened = Promise.withResolvers<string>();
const desktop = createServer((request, response) => {
  response.end();
  opened.resolve(new URL(request.url!, 'http://x').searchParams.get('url')!);
}).listen(0, '127.0.0.1');

beforeAll(async () => {
  [spine, browser] = await Promise.all([
    startSpine({
      mode: 'development',
      // The documents of these programs are on the internet, where this machine may not look. They register instead.
      toml: `${UNHURRIED}\n[authorization]\nclient_documents = false\n`,
    }),
    openBrowser(),
  ]);
  visitor = await browser.visit({ origin: spine.origin });
  await mkdir(join(home, 'bin'), { recursive: true });
  const { port } = desktop.address() as AddressInfo;
  const open = `fetch("http://127.0.0.1:${port}/?url=" + encodeURIComponent(process.argv[1]))`;
  const scripts = {
    'xdg-open': `'${process.execPath}' -e '${open}' "$1"`,
    claude: `'${process.execPath}' '${scriptOf('claude-code', '@anthropic-ai/claude-code/cli-wrapper.cjs')}' "$@"`,
    codex: `'${process.execPath}' '${scriptOf('codex', '@openai/codex/bin/codex.js')}' "$@"`,
    // What npx would fetch is installed here.
    npx: `'${process.execPath}' '${remote()}' "$3"`,
  };
  for (const [name, line] of Object.entries(scripts))
    await writeFile(join(home, 'bin', name), `#!/bin/sh\nexec ${line}\n`, { mode: 0o755 });
}, 600_000);
afterAll(async () => {
  desktop.closeAllConnections();
  desktop.close();
  await browser.close();
  await spine.stop();
  await rm(home, { recursive: true, force: true });
});

const scriptOf = (name: 'claude-code' | 'codex', path: string) => join(installStranger(name), 'node_modules', path);
const remote = () =>
  createRequire(join(installStranger('mcp-remote'), 'package.json')).resolve('mcp-remote/dist/proxy.js');

/** Opens the tab of a client, and copies what it shows. */
async function copied(client: string, label: string): Promise<string> {
  const { page } = visitor;
  await page.goto('/dashboard/connect');
  await page.getByRole('tab', { name: client, exact: true }).click();
  await page.getByRole('button', { name: `Copy: ${label}` }).click();
  return page.evaluate<string>('navigator.clipboard.readText()');
}

/** Pastes into a shell with a terminal, as a person does. */
function paste(text: string) {
  const shell = spawn('script', ['-qefc', 'bash --norc --noprofile -i', '/dev/null'], {
    cwd: home,
    env: { ...env, PATH },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  let output = '';
  const waiting: { readonly text: RegExp; readonly seen: () => void }[] = [];
  shell.stdout.on('data', (chunk: Buffer) => {
    output += String(chunk);
    for (const { text: wanted, seen } of waiting) if (wanted.test(output)) seen();
  });
  shell.stdin.write(`${text}\n`);
  return {
    output: () => output,
    wrote: (wanted: RegExp) =>
      new Promise<void>((seen) => (wanted.test(output) ? seen() : waiting.push({ text: wanted, seen }))),
    async close() {
      shell.stdin.end('exit\n');
      await once(shell, 'close');
    },
  };
}

/** The person agrees to what the page of the program proposes. */
async function agree(): Promise<void> {
  const page = await visitor.page.context().newPage();
  await page.goto(await opened.promise);
  await page.getByRole('button', { name: 'Allow' }).click();
  await page.waitForURL((url) => url.origin !== spine.origin);
  await page.close();
}

const CLIENTS = {
  'Claude Code': { label: 'What to run', done: /Authenticated with/, shownAs: /^Claude Code/ },
  Codex: { label: 'What to run', done: /Successfully logged in/, shownAs: /^Codex/ },
} as const;

test.each(Object.entries(CLIENTS))(
  '%s is connected within a minute',
  async (name, { label, done, shownAs }) => {
    const begun = performance.now();
    opened = Promise.withResolvers();
    const shell = paste(await copied(name, label));
    await agree();
    await Promise.all([shell.wrote(done), visitor.page.getByText(shownAs).first().waitFor()]);
    const took = performance.now() - begun;
    process.stdout.write(`${name}: ${(took / 1_000).toFixed(1)} s without reading\n`);
    await shell.close();
    expect(took).toBeLessThan(atThisLoad(MINUTE_MS));
  },
  3 * MINUTE_MS,
);

test(
  'a client that starts programs is connected within a minute',
  async () => {
    const begun = performance.now();
    opened = Promise.withResolvers();
    const { mcpServers } = JSON.parse(await copied('Claude Desktop', 'What to run')) as {
      readonly mcpServers: { readonly tollgate: { readonly command: string; readonly args: readonly string[] } };
    };
    const { command, args } = mcpServers.tollgate;
    const child = spawn(command, args, { env: { ...env, PATH }, stdio: ['pipe', 'pipe', 'ignore'] });
    const initialize = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'it', version: '1' } };
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: initialize })}\n`);
    const [, [answer]] = await Promise.all([agree(), once(child.stdout, 'data') as Promise<[Buffer]>]);
    expect(JSON.parse(String(answer))).toMatchObject({ id: 1, result: { serverInfo: { name: 'tollgate' } } });
    const took = performance.now() - begun;
    process.stdout.write(`mcp-remote: ${(took / 1_000).toFixed(1)} s without reading\n`);
    child.kill();
    await once(child, 'exit');
    expect(took).toBeLessThan(atThisLoad(MINUTE_MS));
  },
  3 * MINUTE_MS,
);

test(
  'code with the SDK of OpenAI is connected within a minute',
  async () => {
    const begun = performance.now();
    const { page } = visitor;
    await page.goto('/dashboard/connect');
    await page.getByRole('tab', { name: 'Your own code' }).click();
    await page.getByRole('button', { name: 'Make a key' }).click();
    await page.getByLabel('Name').fill('my agent');
    await page.getByRole('button', { name: 'Create the key' }).click();
    await page.getByRole('button', { name: 'Copy: What to set' }).click();
    const lines = await page.evaluate<string>('navigator.clipboard.readText()');
    await symlink(new URL('../../../node_modules', import.meta.url), join(home, 'node_modules'));
    const program = `import OpenAI from 'openai'; for await (const { id } of await new OpenAI().models.list()) console.log(id)`;
    await writeFile(join(home, 'list.mjs'), program);
    const shell = paste(`${lines}\n'${process.execPath}' list.mjs`);
    await shell.wrote(/^test\/model/m);
    const took = performance.now() - begun;
    process.stdout.write(`OpenAI SDK: ${(took / 1_000).toFixed(1)} s without reading\n`);
    await shell.close();
    expect(took).toBeLessThan(atThisLoad(MINUTE_MS));
  },
  3 * MINUTE_MS,
);
