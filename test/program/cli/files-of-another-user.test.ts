import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { LAUNCHER, makePlace, type Place } from './tollgate.ts';

// Root runs commands on the data directory of a gateway that runs as another user. If this test is not run by root,
// the other user is its own one.

const self = process.getuid!();
const USER = self === 0 ? 65_534 : self;

let place: Place;
let dir: string;
let data: string;
beforeEach(async () => {
  place = await makePlace();
  // The folder of the other tests is closed to other users.
  dir = await mkdtemp(join(self === 0 ? '/tmp' : tmpdir(), 'tollgate-owner-'));
  await chmod(dir, 0o755);
  data = join(dir, 'data');
});
afterEach(async () => {
  await place.clear();
  await rm(dir, { recursive: true });
});

const run = (...args: readonly string[]) => place.run(args, { TOLLGATE_DATA: data });

const owners = async (): Promise<Record<string, number>> => {
  const names = await readdir(data, { recursive: true });
  return Object.fromEntries(await Promise.all(names.map(async (name) => [name, (await stat(join(data, name))).uid])));
};

/** Runs a command as the other user. */
async function runAsUser(...args: readonly string[]) {
  const child = spawn(process.execPath, [LAUNCHER, ...args], {
    cwd: dir,
    env: { PATH: process.env['PATH'], TOLLGATE_DATA: data, PORT: '0', NODE_DISABLE_COMPILE_CACHE: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(self === 0 ? { uid: USER, gid: USER } : {}),
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, output };
}

it('what root makes in the data directory of another user belongs to that user', async () => {
  await mkdir(data, { mode: 0o700 });
  await chown(data, USER, USER);
  expect((await run('account', 'create', 'acme')).code).toBe(0);
  expect((await run('account', 'credit', 'acme', '1', '--reference', 'first')).code).toBe(0);
  const found = await owners();
  expect(Object.keys(found)).toEqual(expect.arrayContaining(['identity.json', 'journal-head.json', 'tollgate.db']));
  for (const [name, owner] of Object.entries(found)) expect.soft(owner, name).toBe(USER);
  expect(await runAsUser('account', 'credit', 'acme', '1', '--reference', 'second')).toMatchObject({ code: 0 });
});

it('a backup that root restores into the data directory of another user belongs to that user', async () => {
  expect((await run('account', 'create', 'acme')).code).toBe(0);
  await mkdir(join(data, 'blobs'));
  await writeFile(join(data, 'blobs', 'holder'), `${'0'.repeat(32)}\n`);
  const backup = join(dir, 'backup.tar');
  expect(await run('backup', backup)).toMatchObject({ code: 0 });
  await rename(data, join(dir, 'lost'));
  await mkdir(data, { mode: 0o700 });
  await chown(data, USER, USER);
  expect(await run('restore', backup)).toMatchObject({ code: 0 });
  const found = await owners();
  expect(Object.keys(found)).toEqual(
    expect.arrayContaining(['blobs', 'blobs/holder', 'identity.json', 'journal-head.json', 'ledger', 'tollgate.db']),
  );
  for (const [name, owner] of Object.entries(found)) expect.soft(owner, name).toBe(USER);
  expect(await runAsUser('account', 'credit', 'acme', '1', '--reference', 'after')).toMatchObject({ code: 0 });
});

it('a file that the gateway may not read is told as that, not as a loss of records', async () => {
  expect((await run('account', 'create', 'acme')).code).toBe(0);
  for (const name of ['', ...(await readdir(data, { recursive: true }))]) await chown(join(data, name), USER, USER);
  const head = join(data, 'journal-head.json');
  if (self === 0) await chown(head, 0, 0);
  else await chmod(head, 0);
  for (const command of [['serve'], ['account', 'list'], ['restored', '--accept']]) {
    const { code, output } = await runAsUser(...command);
    expect.soft(code, output).toBe(1);
    expect.soft(output).toContain(`${head} belongs to `);
    expect.soft(output).toContain(`${head}\n`);
    expect.soft(output).not.toContain('go on without it');
  }
});

it('a gateway says that it may not read its data directory, in words', async () => {
  await mkdir(data, { mode: self === 0 ? 0o700 : 0 });
  const { code, output } = await runAsUser('serve');
  expect(code).toBe(1);
  expect(output).toBe(
    `The data directory ${data} belongs to another user.\nRun this as the user that runs the gateway, or name another directory (--data).\n`,
  );
  await chmod(data, 0o700);
});
