import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { ROOT } from '../architecture/source.ts';
import { createKeeper } from '../support/server-process.ts';
import { snippetsOf } from './snippets.ts';

const PAGE = 'docs/run/upgrades.md';
const commands = snippetsOf(PAGE).filter(({ language }) => language === 'sh');
const CHECKOUT = commands.find(({ text }) => text.startsWith('git fetch'))!.text;
const [, NEXT] = /git checkout v(\S+)/.exec(CHECKOUT)!;
const BEFORE = '0.1.0';
const NEW_TABLE = '9999_of-the-next-version';
/** What a gateway of a checkout runs on. */
const PARTS = ['bin', 'src', 'dist/web', 'docs', 'package.json', 'package-lock.json', '.npmrc'];

it('the gateway of a checkout is replaced as the page writes, keeps its books, and has no way back', async () => {
  const work = mkdtempSync(join(tmpdir(), 'tollgate-replaced-'));
  const keeper = createKeeper([]);
  onTestFinished(async () => {
    await keeper.close();
    rmSync(work, { recursive: true });
  });
  const [origin, checkout] = [join(work, 'origin'), join(work, 'checkout')];
  const git = (cwd: string, ...args: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@users.example', ...args], { cwd, stdio: 'pipe' });
  const publish = (version: string) => {
    const file = join(origin, 'package.json');
    const manifest = JSON.parse(readFileSync(file, 'utf8')) as object;
    writeFileSync(file, JSON.stringify({ ...manifest, version }));
    git(origin, 'add', '--all');
    git(origin, 'commit', '--quiet', '--message', version);
    git(origin, 'tag', '--annotate', '--message', version, `v${version}`);
  };
  for (const part of PARTS)
    if (existsSync(join(ROOT, part))) cpSync(join(ROOT, part), join(origin, part), { recursive: true });
  git(origin, 'init', '--quiet');
  publish(BEFORE);
  git(work, 'clone', '--quiet', origin, checkout);
  git(checkout, 'checkout', '--quiet', `v${BEFORE}`);
  const deep = process.env['TOLLGATE_DEEP'] === '1';
  if (deep) execFileSync('npm', ['ci', '--omit=dev', '--no-audit'], { cwd: checkout, stdio: 'pipe' });
  else symlinkSync(join(ROOT, 'node_modules'), join(checkout, 'node_modules'));
  writeFileSync(join(origin, `src/foundation/store/migrations/${NEW_TABLE}.sql`), 'CREATE TABLE t9999 (id TEXT);\n');
  publish(NEXT!);

  const upstream = createServer((request, response) => {
    request.resume().on('end', () => response.setHeader('content-type', 'application/json').end(COMPLETION));
  });
  await once(upstream.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void upstream.close());
  writeFileSync(
    join(checkout, 'tollgate.toml'),
    `[[models]]
name = "acme/small"
pricing = { prompt = 1, completion = 1 }
params = { model = "m", api_base = "http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1" }
`,
  );
  const data = join(work, 'data');
  const env = {
    // npm reaches its registry as it does on this machine.
    ...(deep ? process.env : {}),
    PATH: `${join(ROOT, 'node_modules/.bin')}:${process.env['PATH']}`,
    TOLLGATE_DATA: data,
    PORT: '0',
  };
  const tollgate = (...args: readonly string[]) =>
    execFileSync('node', ['bin/tollgate.mjs', ...args], { cwd: checkout, env, encoding: 'utf8', stdio: 'pipe' });
  /** The script's last line serves, and stops it by its own process. */
  const start = (script: string) => {
    const lines = script.trim().split('\n');
    const text = [...lines.slice(0, -1), `exec ${lines.at(-1)}`].map((line) => (deep ? line : withoutInstall(line)));
    return keeper.start({ file: 'bash', args: ['-e', '-c', text.join('\n')], cwd: checkout, env });
  };
  const call = async (key: string) => {
    const { base_url } = JSON.parse(readFileSync(join(data, 'gateway.json'), 'utf8')) as { readonly base_url: string };
    const answer = await fetch(`${base_url}/api/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'acme/small', messages: [{ role: 'user', content: 'hi' }], max_tokens: 5 }),
    });
    return answer.status;
  };

  const old = start('node bin/tollgate.mjs serve --config tollgate.toml');
  await old.wrote('"msg":"listening"');
  tollgate('account', 'create', 'acme');
  tollgate('account', 'credit', 'acme', '1');
  const { key } = JSON.parse(tollgate('key', 'create', 'acme', '--json')) as { readonly key: string };
  expect(await call(key)).toBe(200);
  old.signal('SIGTERM');
  await old.exited;

  const replaced = start(CHECKOUT);
  await replaced.wrote('"msg":"listening"');
  expect(tollgate('--version')).toContain(NEXT);
  expect(await call(key)).toBe(200);
  replaced.signal('SIGTERM');
  await replaced.exited;
  expect(tollgate('audit')).toContain('The books are right.');

  git(checkout, 'checkout', '--quiet', `v${BEFORE}`);
  const back = start('node bin/tollgate.mjs serve --config tollgate.toml');
  await back.exited;
  expect(back.exitCode).toBe(1);
  expect(back.output()).toContain(
    `a newer tollgate, ${NEXT}, has changed it, with ${NEW_TABLE}; this is tollgate ${BEFORE}, which knows`,
  );
  git(checkout, 'checkout', '--quiet', `v${NEXT}`);
  const again = start('node bin/tollgate.mjs serve --config tollgate.toml');
  await again.wrote('"msg":"listening"');
  expect(await call(key)).toBe(200);
  again.signal('SIGTERM');
  await again.exited;
  expect(tollgate('audit')).toContain('The books are right.');
});

/** The packages of this checkout are those of both versions. */
const withoutInstall = (line: string) => (line.startsWith('npm ci') ? ':' : line);

const COMPLETION = JSON.stringify({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
});

it('names the services of compose and the unit of systemd that are here, one after the other', () => {
  const all = commands.map(({ text }) => text).join('\n');
  const { services } = parse(readFileSync(join(ROOT, 'deploy/container/compose.yaml'), 'utf8'), { merge: true }) as {
    readonly services: Readonly<Record<string, { readonly image: string }>>;
  };
  const gateways = Object.keys(services).filter((name) => services[name]!.image === 'tollgate');
  expect([...all.matchAll(/^docker compose up .* --wait (\S+)/gm)].map(([, name]) => name)).toEqual(gateways);
  expect(all).toContain('docker tag tollgate:0.2.0 tollgate\n');
  const units = [...all.matchAll(/^systemctl \w+ (\S+)$/gm)].map(([, name]) => name!);
  expect(units).toEqual(['tollgate', 'tollgate']);
  for (const unit of units) expect(existsSync(join(ROOT, `deploy/systemd/${unit}.service`))).toBe(true);
});
