import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { GATEWAY } from '../../scripts/release/bundle.ts';
import { packageManifest, readManifest } from '../../scripts/release/manifest.ts';
import { versionsOf } from '../../scripts/release/prune-modules.ts';
import { stageSources } from '../../scripts/release/stage-sources.ts';
import { startProvider } from '../support/provider.ts';
import { createKeeper } from '../support/server-process.ts';
import { CHECKOUT, linkPackage, loadedModules, namedFiles, notingLoads, placeInSource, runBroken } from './staged.ts';

let root: string;
let bundle: Awaited<ReturnType<typeof stageSources>>;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'tollgate-package-'));
  bundle = await stageSources(CHECKOUT, root, GATEWAY);
  cpSync(join(CHECKOUT, 'bin'), join(root, 'bin'), { recursive: true });
  symlinkSync(join(CHECKOUT, 'node_modules'), join(root, 'node_modules'));
  const versions = versionsOf(join(CHECKOUT, 'node_modules'), bundle.external);
  writeFileSync(join(root, 'package.json'), JSON.stringify(packageManifest(readManifest(CHECKOUT), versions)));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

function emptyFile(name: string): string {
  writeFileSync(join(root, name), '');
  return join(root, name);
}

it('leaves no TypeScript, and has each program and each file that a module names', () => {
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' });
  expect(files.filter((name) => name.endsWith('.ts'))).toEqual([]);
  const named = namedFiles(root, bundle.files);
  expect(named).toContain('src/foundation/store/sqlite-worker.js');
  expect(named).toContain('src/billing/sql/ledger.sql');
  expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

it('has the licence of each package in the bundle, and no package twice', () => {
  const licences = readFileSync(join(root, 'THIRD_PARTY_LICENSES'), 'utf8');
  for (const name of ['fastify', 'undici', 'ws', 'pino', 'prom-client', 'avvio']) {
    expect(bundle.bundled).toContain(`node_modules/${name}`);
    expect(licences).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+\n(?:MIT|Apache-2\\.0|BSD-3-Clause)\n`, 'm'));
  }
  expect(bundle.external).toContain('viem');
  expect(bundle.bundled.filter((folder) => bundle.external.includes(folder.replace('node_modules/', '')))).toEqual([]);
});

// The most files that a start may load. A checkout's start loads 811 and 251.
const OWN_MOST = 79;
const PACKAGES_MOST = 6;

it('loads few files at a start, and nothing that only some gateways need', async () => {
  const keeper = createKeeper([]);
  const loads = join(root, 'loads');
  try {
    const server = keeper.start({
      file: process.execPath,
      args: [join(root, 'bin', 'tollgate.mjs'), 'serve', '--config', emptyFile('serve.toml')],
      cwd: root,
      env: {
        PATH: process.env['PATH'],
        HOME: root,
        PORT: '0',
        TOLLGATE_DATA: join(root, 'served'),
        ...notingLoads(loads),
      },
    });
    await server.wrote('"listening"');
    server.signal('SIGTERM');
    await server.exited;
  } finally {
    await keeper.close();
  }
  const files = loadedModules(loads);
  const packages = files.filter((url) => url.includes('/node_modules/'));
  expect(files.length - packages.length).toBeLessThanOrEqual(OWN_MOST);
  expect(packages.length).toBeLessThanOrEqual(PACKAGES_MOST);
  const loaded = files.join('\n');
  for (const later of ['chains/chains', 'solana', 'evm-chain', 'postgres', 'redis', 'ajv', 'opentelemetry', 'viem'])
    expect(loaded, later).not.toMatch(new RegExp(`/(?:gateway|node_modules/@?)${later}`));
});

it('names the source and its line in stack traces, of the process and of its threads', () => {
  const { stderr } = runBroken(root, [join(root, 'bin', 'tollgate.mjs'), '--version']);
  expect(stderr).toContain('Error: no folder');
  expect(stderr).toContain(placeInSource(root, 'src/program/cli/command-line.ts', 'process.cwd()'));

  const thread = JSON.stringify(join(root, 'src/foundation/wire/reply/reading-worker.js'));
  const started = `new (require('node:worker_threads').Worker)(${thread}).on('error', (e) => console.log(e.stack))`;
  const { stdout } = runBroken(root, ['-e', started]);
  expect(stdout).toContain('Error: no priority');
  expect(stdout).toContain(placeInSource(root, 'src/foundation/wire/reply/reading-worker.ts', 'setPriority(NICENESS)'));
});

it('runs: a development gateway answers calls, with its threads, its demo and a package of the AI SDK', async () => {
  const keeper = createKeeper([]);
  const upstream = await startProvider();
  linkPackage('@ai-sdk/openai-compatible', join(root, 'selling'));
  writeFileSync(
    join(root, 'selling', 'start.toml'),
    `[[models]]
name = "mine/by-package"
pricing = { prompt = 1, completion = 2 }
[models.params]
model = "test/model"
sdk = "@ai-sdk/openai-compatible"
sdk_settings = { name = "test", baseURL = "${upstream.url}", includeUsage = true }
`,
  );
  try {
    const server = keeper.start({
      file: process.execPath,
      args: [join(root, 'bin', 'tollgate.mjs'), 'start', '--config', join(root, 'selling', 'start.toml')],
      cwd: root,
      env: {
        PATH: process.env['PATH'],
        HOME: root,
        PORT: '0',
        TOLLGATE_DATA: join(root, 'data'),
        OLLAMA_HOST: '127.0.0.1:9',
      },
    });
    await server.wrote('Ctrl-C stops it.');
    const { base_url: url, api_key: key } = JSON.parse(readFileSync(join(root, 'data', 'dev.json'), 'utf8')) as Record<
      string,
      string
    >;
    for (const model of ['demo/chat', 'mine/by-package']) {
      const answer = await fetch(`${url}/api/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] }),
      });
      expect(answer.status, model).toBe(200);
      expect(await answer.json()).toMatchObject({ object: 'chat.completion', usage: { cost: expect.any(Number) } });
    }
  } finally {
    await keeper.close();
    await upstream.stop();
  }
});
