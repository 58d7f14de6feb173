import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { SdkTarget } from '#config';
import { type Candidate, listCandidates, withoutWall } from '../../../src/providers/ai-sdk/wall/candidates.ts';
import { findWall, ownFiles } from '../../../src/providers/ai-sdk/wall/find-wall.ts';
import { createSdkWorkers } from '../../../src/providers/ai-sdk/workers.ts';
import { installHostile } from './support/hostile-package.ts';

// The wall that is not Node's: which one counts, and that a start is refused without it.

function hiddenFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-hidden-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Looks like a wall, and is none. */
const painted: Candidate = { ...withoutWall('/'), name: 'behind a painted wall' };

test('a wall that does not hold does not count', async () => {
  const hidden = hiddenFolder();
  const wall = await findWall({ readable: [], hidden: [hidden], candidates: [painted] });
  expect(wall).toMatchObject({
    name: 'without a second wall',
    keeps: { files: false, signals: false, network: false },
  });
  expect(wall.why).toContain(`behind a painted wall: it opens`);
  expect(wall.why).toContain(hidden);
});

test('a wall behind which a package cannot be read does not count', async () => {
  const blind: Candidate = { ...painted, launch: () => ({ command: '/bin/false', args: [], cwd: '/' }) };
  const wall = await findWall({ readable: [], hidden: [], candidates: [blind] });
  expect(wall.why).toBe('behind a painted wall: it ended with 1');
});

test('a wall behind which one path of a package is missing does not count', async () => {
  const missing = join(hiddenFolder(), 'none');
  const wall = await findWall({ readable: [missing], hidden: [], candidates: [painted] });
  expect(wall.why).toBe(`behind a painted wall: it cannot read ${missing}`);
});

test('the kernel lets no process of a package write a file or a core, or take more memory', () => {
  if (!existsSync('/usr/bin/prlimit')) return;
  const args = ['-p', `require('fs').readFileSync('/proc/self/limits', 'utf8')`];
  const { command, args: all, cwd } = withoutWall('/').launch({ args, readable: [] }, { dataBytes: 2 ** 30 });
  const { stdout } = spawnSync(command, all, { cwd, encoding: 'utf8' });
  for (const [name, most] of [
    ['file size', 0],
    ['core file size', 0],
    ['data size', 2 ** 30],
  ])
    expect(stdout).toMatch(new RegExp(`^Max ${name} +${most} +${most} `, 'm'));
});

test('each wall of this machine keeps files, or is not taken', async () => {
  const hidden = hiddenFolder();
  writeFileSync(join(hidden, 'tollgate.db'), '');
  const held = await Promise.all(
    listCandidates('/').map((one) => findWall({ readable: [], hidden: [hidden], candidates: [one] })),
  );
  for (const { keeps, why } of held) expect(keeps.files).toBe(why === null);
});

/** Whether this user may make namespaces here. */
const mayUnshare =
  process.platform === 'linux' &&
  spawnSync('/usr/bin/unshare', [
    ...(process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']),
    '--mount',
    '--net',
    '--pid',
    '--fork',
    '/bin/true',
  ]).status === 0;

test('where namespaces are allowed, the kernel keeps files, signals and the network', async () => {
  if (!mayUnshare) return;
  const wall = await findWall({ readable: [], hidden: [hiddenFolder()] });
  expect(wall).toMatchObject({ keeps: { files: true, signals: true, network: true }, why: null });
});

test('a package in namespaces sees its own files, and nothing that lies beside them', async () => {
  if (!mayUnshare) return;
  const { args, cwd, command } = (await findWall({ readable: [], hidden: [] })).launch({
    args: ['-p', 'JSON.stringify([fs.readdirSync("/"), process.pid, process.getuid(), process.getgroups()])'],
    readable: ownFiles(),
  });
  const { stdout, stderr } = spawnSync(command, args, { cwd, env: {}, encoding: 'utf8' });
  expect(stderr).toBe('');
  const [folders, pid] = JSON.parse(stdout) as [string[], number];
  // The folder above the checkout is there, wherever it is.
  const [, above] = import.meta.dirname.split('/');
  for (const name of ['etc', 'root', 'home', 'tmp', 'var', 'dev'])
    if (name !== above) expect(folders).not.toContain(name);
  expect(pid).toBeLessThan(10);
});

test('without a wall, a package is refused where one is required', async () => {
  const directory = installHostile();
  const target: SdkTarget = { kind: 'sdk', sdk: 'hostile', settings: {}, secrets: {}, directory };
  const told: string[] = [];
  const workers = createSdkWorkers({
    connectionsMax: 1,
    headTimeoutMs: 60_000,
    idleTimeoutMs: 60_000,
    wall: 'required',
    hidden: [],
    log: () => {},
    tell: ({ text }) => told.push(text),
    candidates: [],
  });
  onTestFinished(() => workers.close());
  await workers.prepare([{ kind: 'http', url: 'http://127.0.0.1:1', apiKey: null }]);
  expect(told).toEqual([]);
  await expect(workers.prepare([target])).rejects.toThrow(
    /params\.sdk[\s\S]*packages\.wall is "required"[\s\S]*bubblewrap/,
  );
  expect(told).toEqual(['packages of the AI SDK run without a second wall']);
});

test('root that may make no namespaces gives packages users of their own', async () => {
  if (process.getuid?.() !== 0) return;
  const candidate = listCandidates('/').find(({ name }) => name === 'as users of their own')!;
  const hidden = hiddenFolder();
  chmodSync(hidden, 0o700);
  mkdirSync(join(hidden, 'inside'));
  expect(await findWall({ readable: [], hidden: [hidden], candidates: [candidate] })).toMatchObject({
    keeps: { files: true, signals: true },
    why: null,
  });
});
