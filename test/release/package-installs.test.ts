import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createKeeper } from '../support/server-process.ts';

const CHECKOUT = resolve(import.meta.dirname, '../..');
const UNPACKED_MAX = 150_000_000;

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
  const tarball = readdirSync(OUT).find((name) => name.endsWith('.tgz'))!;
  // Nothing is fetched: what the package needs lies inside it.
  run('npm', ['install', '-g', '--prefix', prefix, '--offline', join(OUT, tarball)]);
}, 600_000);
afterAll(() => {
  rmSync(work, { recursive: true, force: true });
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

it('lists its parts as CycloneDX', () => {
  const parts = JSON.parse(
    readFileSync(
      join(
        OUT,
        readdirSync(OUT).find((name) => name.endsWith('.cdx.json'))!,
      ),
      'utf8',
    ),
  );
  expect(parts).toMatchObject({
    bomFormat: 'CycloneDX',
    components: expect.arrayContaining([expect.objectContaining({ name: 'fastify' })]),
  });
});

it('is small, and has no TypeScript compiler', () => {
  const root = join(prefix, 'lib/node_modules/tollgate');
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const bytes = files.reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
  expect(bytes).toBeLessThan(UNPACKED_MAX);
  expect(readdirSync(join(root, 'node_modules'))).not.toContain('typescript');
});

it('runs without a checkout, and its books are right', async () => {
  const keeper = createKeeper([]);
  const tollgate = join(prefix, 'bin', 'tollgate');
  const data = join(work, 'data');
  const env = { PATH: process.env['PATH'], HOME: work, PORT: '0', TOLLGATE_DATA: data, OLLAMA_HOST: '127.0.0.1:9' };
  try {
    const server = keeper.start({ file: tollgate, args: ['start'], cwd: work, env });
    await server.wrote('Ctrl-C stops it.');
    const { base_url, api_key } = JSON.parse(readFileSync(join(data, 'dev.json'), 'utf8')) as Record<string, string>;
    const answer = await fetch(`${base_url}/api/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${api_key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'demo/sage', messages: [{ role: 'user', content: 'hi' }] }),
    });
    expect(answer.status).toBe(200);
    const page = await (await fetch(`${base_url}/marketplace`)).text();
    const script = /src="(\/assets\/[^"]+\.js)"/.exec(page)?.[1];
    expect((await fetch(`${base_url}${script}`)).headers.get('content-type')).toContain('javascript');
    server.signal('SIGTERM');
    await server.exited;
    execFileSync(tollgate, ['audit'], { cwd: work, env, stdio: 'pipe' });
  } finally {
    await keeper.close();
  }
});
