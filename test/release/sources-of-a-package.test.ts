import { execFileSync, spawnSync } from 'node:child_process';
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
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packageManifest, readManifest } from '../../scripts/release/manifest.ts';
import { stageProvider } from '../../scripts/release/provider-package.ts';
import { versionsOf } from '../../scripts/release/prune-modules.ts';
import { stageSources } from '../../scripts/release/stage-sources.ts';
import { stripped } from '../../scripts/release/strip-sources.ts';
import { createKeeper } from '../support/server-process.ts';

const CHECKOUT = resolve(import.meta.dirname, '../..');
let root: string;
let bundle: Awaited<ReturnType<typeof stageSources>>;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'tollgate-package-'));
  bundle = await stageSources(CHECKOUT, root);
  cpSync(join(CHECKOUT, 'bin'), join(root, 'bin'), { recursive: true });
  symlinkSync(join(CHECKOUT, 'node_modules'), join(root, 'node_modules'));
  const versions = versionsOf(join(CHECKOUT, 'node_modules'), bundle.external);
  writeFileSync(join(root, 'package.json'), JSON.stringify(packageManifest(readManifest(CHECKOUT), versions)));
}, 60_000);
afterAll(() => rmSync(root, { recursive: true, force: true }));

function emptyFile(name: string): string {
  writeFileSync(join(root, name), '');
  return join(root, name);
}

it('names modules by the files of the package, and keeps lines and columns', () => {
  const source =
    "import type { A } from './a.ts';\nimport { b } from '../b.ts';\nconst w: URL = new URL('./w.ts', import.meta.url);\nthrow b;\n";
  const lines = stripped(source).split('\n');
  expect(lines).toEqual([
    '',
    "import { b } from '../b.js';",
    "const w      = new URL('./w.js', import.meta.url);",
    'throw b;',
    '',
  ]);
});

it('leaves no TypeScript, and has each program and each file that a module names', () => {
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' });
  expect(files.filter((name) => name.endsWith('.ts'))).toEqual([]);
  const named = bundle.files.flatMap((file) => {
    const code = readFileSync(join(root, file), 'utf8');
    // A module names a file with its own address: new URL('./worker.js', new URL('../../store/thread.js', …).href).
    const own = '\\(?new URL\\("(\\.[^"\\n]+)", import\\.meta\\.url\\)\\.href';
    const found = [
      ...[...code.matchAll(new RegExp(`"(\\.[^"\\n]+)",\\s*${own}`, 'g'))].map(([, name, at]) => [at!, name!] as const),
      ...[...code.matchAll(new RegExp(`${own},\\s*"(\\.[^"\\n]+)"`, 'g'))].map(([, at, name]) => [at!, name!] as const),
    ];
    return found.map(([at, name]) => join(dirname(join(dirname(file), at)), name));
  });
  expect(named).toContain('src/store/sqlite-worker.js');
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

// The most files that a start may load. A checkout's start loads 685 and 251.
const OWN_MOST = 55;
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
        NODE_OPTIONS: `--import=${new URL('../cli/note-loads.mjs', import.meta.url).href}`,
        LOADS: loads,
      },
    });
    await server.wrote('"listening"');
    server.signal('SIGTERM');
    await server.exited;
  } finally {
    await keeper.close();
  }
  const files = readFileSync(loads, 'utf8')
    .split('\n')
    .filter((url) => url.startsWith('file:') && !url.endsWith('.json'));
  const packages = files.filter((url) => url.includes('/node_modules/'));
  expect(files.length - packages.length).toBeLessThanOrEqual(OWN_MOST);
  expect(packages.length).toBeLessThanOrEqual(PACKAGES_MOST);
  const loaded = files.join('\n');
  for (const later of ['chains/chains', 'solana', 'evm-chain', 'postgres', 'redis', 'ajv', 'opentelemetry', 'viem'])
    expect(loaded, later).not.toMatch(new RegExp(`/(?:gateway|node_modules/@?)${later}`));
});

it('names the source and its line in stack traces, of the process and of its threads', () => {
  writeFileSync(
    join(root, 'break.mjs'),
    `import os from 'node:os';
import { syncBuiltinESMExports } from 'node:module';
import { isMainThread } from 'node:worker_threads';
if (isMainThread) process.cwd = () => { throw new Error('no folder'); };
os.setPriority = () => { throw new Error('no priority'); };
syncBuiltinESMExports();`,
  );
  const broken = (...args: string[]) =>
    spawnSync(process.execPath, ['--import', join(root, 'break.mjs'), ...args], { cwd: root, encoding: 'utf8' });
  const place = (path: string, text: string) => {
    const lines = readFileSync(join(CHECKOUT, path), 'utf8').split('\n');
    return `${root}/${path}:${lines.findIndex((line) => line.includes(text)) + 1}:`;
  };

  const { stderr } = broken(join(root, 'bin', 'tollgate.mjs'), '--version');
  expect(stderr).toContain('Error: no folder');
  expect(stderr).toContain(place('src/cli/command-line.ts', 'process.cwd()'));

  const thread = JSON.stringify(join(root, 'src/wire/reply/reading-worker.js'));
  const started = `new (require('node:worker_threads').Worker)(${thread}).on('error', (e) => console.log(e.stack))`;
  const { stdout } = broken('-e', started);
  expect(stdout).toContain('Error: no priority');
  expect(stdout).toContain(place('src/wire/reply/reading-worker.ts', 'setPriority(NICENESS)'));
});

it('runs: a development gateway answers a call, with its threads and its demo', async () => {
  const keeper = createKeeper([]);
  try {
    const server = keeper.start({
      file: process.execPath,
      args: [join(root, 'bin', 'tollgate.mjs'), 'start'],
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
    const answer = await fetch(`${url}/api/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'demo/sage', messages: [{ role: 'user', content: 'hi' }] }),
    });
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ object: 'chat.completion', usage: { cost: expect.any(Number) } });
  } finally {
    await keeper.close();
  }
});

it("has a package for a provider's proxy alone: its commands, and no gateway", async () => {
  const stage = join(root, 'provider');
  const { packages } = stageProvider(CHECKOUT, stage, readManifest(CHECKOUT));
  expect(readdirSync(join(stage, 'src')).toSorted()).toEqual([
    'billing',
    'cli',
    'config',
    'errors.js',
    'json-rpc',
    'network',
    'provide',
    'security',
    'store',
    'version.js',
    'wire',
  ]);
  expect(readdirSync(join(stage, 'src/store'))).toEqual(['database-name.js']);
  for (const name of ['pg', 'fastify', 'ioredis', '@solana/kit'])
    expect(packages.filter((one) => one.startsWith(`${name}@`))).toEqual([]);

  const run = (...args: string[]) =>
    execFileSync(process.execPath, [join(stage, 'bin/tollgate-provide.mjs'), ...args], {
      cwd: root,
      encoding: 'utf8',
      stdio: 'pipe',
    });
  expect(run('keygen', '--chain', 'evm', '--out', 'wallet.hex')).toContain('eip155:');
  const signed = run('siwx', '--keypair', 'wallet.hex', '--chain-id', 'eip155:8453', '--domain', 'gateway.example');
  expect(signed.trim()).toMatch(/^[\w+/=-]+$/);

  // The name `tollgate` on the registry is somebody else's, so its hints name the program that is run.
  for (const help of [['--help'], ['provide', '--help'], ['keygen', '--help'], ['siwx', '--help']])
    expect(run(...help), help.join(' ')).not.toMatch(/\btollgate (?:keygen|provide|siwx|<command>)/);
  writeFileSync(
    join(root, 'provider.toml'),
    '[router]\nurl = "https://gateway.example"\n[router.siwx]\nchain_id = "eip155:8453"\nkeypair_file = "none.hex"\n',
  );
  const validated = spawnSync(
    process.execPath,
    [join(stage, 'bin/tollgate-provide.mjs'), 'provide', '--config', 'provider.toml', '--validate'],
    { cwd: root, encoding: 'utf8' },
  );
  expect(validated.stdout).toMatch(/Make one: node \S*tollgate-provide\.mjs keygen --chain solana\|evm --out/);
  expect(validated.status).toBe(1);
});
