import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packageManifest, readManifest } from '../../scripts/release/manifest.ts';
import { stageProvider } from '../../scripts/release/provider-package.ts';
import { stripped, stripSources } from '../../scripts/release/strip-sources.ts';
import { createKeeper } from '../support/server-process.ts';

const CHECKOUT = resolve(import.meta.dirname, '../..');
let root: string;

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'tollgate-package-'));
  stripSources(join(CHECKOUT, 'src'), join(root, 'src'));
  cpSync(join(CHECKOUT, 'bin'), join(root, 'bin'), { recursive: true });
  symlinkSync(join(CHECKOUT, 'node_modules'), join(root, 'node_modules'));
  writeFileSync(join(root, 'package.json'), JSON.stringify(packageManifest(readManifest(CHECKOUT))));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

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

it('leaves no TypeScript, and no name of a TypeScript file in code', () => {
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' });
  expect(files.filter((name) => name.endsWith('.ts'))).toEqual([]);
  const naming = files.filter(
    (name) =>
      name.endsWith('.js') &&
      /(?:from|import\(|URL\()\s*['"][^'"]+\.ts['"]/.test(readFileSync(join(root, 'src', name), 'utf8')),
  );
  expect(naming).toEqual([]);
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
    'network',
    'provide',
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
