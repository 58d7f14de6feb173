import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readManifest } from '../../scripts/release/manifest.ts';
import { stageProvider } from '../../scripts/release/provider-package.ts';
import { startProvider, type TestProvider } from '../support/provider.ts';
import { createKeeper } from '../support/server-process.ts';
import { type RouterEnd, startTunnelRouter, type TunnelRouter } from '../support/tunnel-router.ts';
import { CHECKOUT, linkPackage, loadedModules, namedFiles, notingLoads, placeInSource, runBroken } from './staged.ts';

// The package stands apart from the checkout, where it would find the packages of the checkout.
const work = mkdtempSync(join(tmpdir(), 'tollgate-provider-'));
const stage = join(work, 'package');
const program = join(stage, 'bin', 'tollgate-provide.mjs');
/** The provider's id of each wallet, by its file. */
const providerIds = new Map<string, string>();
let bundle: Awaited<ReturnType<typeof stageProvider>>;
let router: TunnelRouter;
let upstream: TestProvider;

beforeAll(async () => {
  [bundle, router, upstream] = await Promise.all([
    stageProvider(CHECKOUT, stage, readManifest(CHECKOUT)),
    startTunnelRouter(),
    startProvider(),
  ]);
  for (const [chain, file] of [
    ['solana', 'wallet.json'],
    ['evm', 'wallet.hex'],
  ] as const) {
    const made = run('keygen', '--chain', chain, '--out', file);
    providerIds.set(file, /^ *provider +(\S+)$/m.exec(made)![1]!);
  }
  linkPackage('@ai-sdk/openai-compatible', work);
});
afterAll(async () => {
  await Promise.all([router.stop(), upstream.stop()]);
  rmSync(work, { recursive: true, force: true });
});

function run(...args: string[]): string {
  return execFileSync(process.execPath, [program, ...args], { cwd: work, encoding: 'utf8', stdio: 'pipe' });
}

const end = (...args: string[]) => spawnSync(process.execPath, [program, ...args], { cwd: work, encoding: 'utf8' });

function writeProviderFile(name: string, keypair: string, price = 1): void {
  writeFileSync(
    join(work, name),
    `[router]
url = "${router.url}"
[router.siwx]
chain_id = "${keypair.endsWith('.hex') ? 'eip155:8453' : 'solana:mainnet'}"
keypair_file = "${keypair}"
[[models]]
name = "mine/one"
pricing = { prompt = ${price}, completion = 2 }
params = { model = "test/model", api_base = "${upstream.url}" }
[[models]]
name = "mine/by-package"
pricing = { prompt = ${price}, completion = 2 }
[models.params]
model = "test/model"
sdk = "@ai-sdk/openai-compatible"
sdk_settings = { name = "test", baseURL = "${upstream.url}", includeUsage = true }
`,
  );
}

/** Runs `then` while a proxy is dialled in. Returns the files of the package that the proxy loaded. */
async function whileItProvides(
  keypair: string,
  then: (gateway: RouterEnd) => Promise<void>,
): Promise<readonly string[]> {
  writeProviderFile('provider.toml', keypair);
  const keeper = createKeeper([]);
  const loads = join(work, 'loads');
  try {
    const child = keeper.start({
      file: process.execPath,
      args: [program, 'provide', '--config', 'provider.toml'],
      cwd: work,
      env: { PATH: process.env['PATH'], HOME: work, ...notingLoads(loads) },
    });
    const gateway = await router.next();
    await gateway.accept(providerIds.get(keypair));
    await child.wrote('ready: calls can come');
    await then(gateway);
    child.signal('SIGTERM');
    await child.exited;
    expect(child.exitCode, child.output()).toBe(0);
  } finally {
    await keeper.close();
  }
  return loadedModules(loads).map((url) => relative(stage, new URL(url).pathname));
}

it('has the modules of a proxy and its packages, and nothing of a gateway', () => {
  const sources = globSync('src/**/*.map', { cwd: stage }).flatMap((map) => {
    const { sources: named } = JSON.parse(readFileSync(join(stage, map), 'utf8')) as { readonly sources: string[] };
    return named.map((source) => join(dirname(map), source));
  });
  const folders = sources.flatMap((path) => /^src\/([^/]+(?:\/[^/]+(?=\/))?)/.exec(path)?.[1] ?? []);
  expect([...new Set(folders)].toSorted()).toEqual([
    'billing/prices',
    'foundation',
    'foundation/security',
    'foundation/store',
    'foundation/wire',
    'gateway/json-rpc',
    'gateway/network',
    'mcp/shapes',
    'program/cli',
    'providers/ai-sdk',
    'providers/list-prices',
    'providers/proxy',
    'server/config',
  ]);
  expect(sources.filter((path) => path.startsWith('src/foundation/store/'))).toEqual([
    'src/foundation/store/database-name.ts',
  ]);
  expect(sources.filter((path) => !existsSync(join(CHECKOUT, path)))).toEqual([]);
  expect(bundle.bundled).toEqual(
    expect.arrayContaining(['commander', 'undici', 'viem', 'ws'].map((name) => `node_modules/${name}`)),
  );
  for (const name of ['pg', 'fastify', 'ioredis', '@solana/kit', 'pino'])
    expect(bundle.bundled).not.toContain(`node_modules/${name}`);
});

it('needs no package beside it, and has the licence of each package in it', () => {
  const manifest = JSON.parse(readFileSync(join(stage, 'package.json'), 'utf8')) as Record<string, unknown>;
  expect(manifest).not.toHaveProperty('dependencies');
  expect(bundle.external).toEqual([]);
  expect(namedFiles(stage, bundle.files).filter((path) => !existsSync(join(stage, path)))).toEqual([]);
  expect(readdirSync(stage)).not.toContain('node_modules');
  const licences = readFileSync(join(stage, 'THIRD_PARTY_LICENSES'), 'utf8');
  for (const folder of bundle.bundled)
    expect(licences).toMatch(
      new RegExp(`^${folder.replace('node_modules/', '')} \\d+\\.\\d+\\.\\d+\n(?:MIT|BSD-3-Clause|Unlicense)\n`, 'm'),
    );
});

it('dials in with a wallet of each chain, and passes calls', async () => {
  for (const keypair of ['wallet.json', 'wallet.hex']) {
    await whileItProvides(keypair, async (gateway) => {
      const reply = await gateway.call(
        { ':path': '/model/mine%2Fone/chat/completions' },
        JSON.stringify({ model: 'test/model', messages: [{ role: 'user', content: 'hello' }] }),
      );
      expect(reply.status).toBe(200);
      expect(JSON.parse(reply.body.toString())).toMatchObject({ object: 'chat.completion' });
    });
  }
});

it('runs a package of the AI SDK that is installed beside its file', async () => {
  await whileItProvides('wallet.json', async (gateway) => {
    const reply = await gateway.call(
      { ':path': '/model/mine%2Fby-package/chat/completions', 'content-type': 'application/json' },
      JSON.stringify({ model: 'test/model', messages: [{ role: 'user', content: 'hello' }] }),
    );
    expect(reply.status, reply.body.toString()).toBe(200);
    expect(JSON.parse(reply.body.toString())).toMatchObject({ object: 'chat.completion' });
  });
});

// The most files of a dial. File by file it loaded 105, and 53 of packages.
const DIAL_MOST = 22;

it('loads few files when it dials in, and nothing of other commands', async () => {
  const loaded = await whileItProvides('wallet.json', async () => {});
  expect(loaded.length).toBeLessThanOrEqual(DIAL_MOST);
  for (const later of ['accounts', 'checks', 'discovery', 'service-report'])
    expect(loaded).not.toContain(`src/bundle/provider/${later}.js`);
});

it('takes new prices while it runs, and says where none runs', async () => {
  await whileItProvides('wallet.json', async (gateway) => {
    writeProviderFile('provider.toml', 'wallet.json', 3);
    const reload = new Promise<string>((resolve, reject) => {
      const asked = createKeeper([]);
      const child = asked.start({
        file: process.execPath,
        args: [program, 'provide', '--config', 'provider.toml', '--reload'],
        cwd: work,
        env: { PATH: process.env['PATH'], HOME: work },
      });
      child.exited.then(() => resolve(child.output()), reject).finally(() => void asked.close());
    });
    await gateway.heard();
    gateway.say({ type: 'registered', revision: 2, services: ['mine/one'] });
    expect(await reload).toContain('mine/one');
  });
  const { status, stderr } = end('provide', '--config', 'provider.toml', '--reload');
  expect(status).toBe(1);
  expect(stderr).toContain('provider.toml');
});

it('checks its file and tries each service', async () => {
  writeProviderFile('provider.toml', 'wallet.hex');
  const keeper = createKeeper([]);
  try {
    const child = keeper.start({
      file: process.execPath,
      args: [program, 'provide', '--config', 'provider.toml', '--validate'],
      cwd: work,
      env: { PATH: process.env['PATH'], HOME: work },
    });
    await child.exited;
    expect(child.output()).toMatch(/✓ wallet +eip155:8453 .*this provider is 0x/);
    expect(child.output()).toMatch(/✓ tunnel .*a WebSocket gets through/);
    expect(child.output()).toMatch(/✓ model +mine\/one +\d+ ms +answers, usage \d+ \+ \d+ tokens/);
    expect(child.output()).toMatch(/✓ model +mine\/one, streamed +\d+ ms +streams/);
  } finally {
    await keeper.close();
  }
});

it('signs in, for a domain and for the gateway of a data directory', () => {
  const header = /^[\w+/=-]+\n$/;
  for (const [keypair, chain] of [
    ['wallet.json', 'solana:mainnet'],
    ['wallet.hex', 'eip155:8453'],
  ] as const)
    expect(run('siwx', '--keypair', keypair, '--chain-id', chain, '--domain', 'gateway.example')).toMatch(header);
  const { status, stderr } = end('siwx', '--keypair', 'wallet.hex', '--chain-id', 'eip155:8453', '--data', 'none');
  expect(status).toBe(1);
  expect(stderr).toContain('No gateway runs on the data directory');
});

it('names its own program in its hints, because the name `tollgate` on the registry is not ours', () => {
  for (const help of [['--help'], ['provide', '--help'], ['keygen', '--help'], ['siwx', '--help']])
    expect(run(...help), help.join(' ')).not.toMatch(/\btollgate (?:keygen|provide|siwx|<command>)/);
  writeProviderFile('no-wallet.toml', 'none.hex');
  const { status, stdout } = end('provide', '--config', 'no-wallet.toml', '--validate');
  expect(stdout).toMatch(/Make one: node \S*tollgate-provide\.mjs keygen --chain solana\|evm --out/);
  expect(status).toBe(1);
});

it('names the source and its line in stack traces', () => {
  const { stderr } = runBroken(stage, [program, '--version']);
  expect(stderr).toContain('Error: no folder');
  expect(stderr).toContain(placeInSource(stage, 'src/program/cli/command-line.ts', 'process.cwd()'));
});
