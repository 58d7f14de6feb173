import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { writeExecutable } from '../../scripts/release/executables.ts';
import { isPlatform, nodeFor } from '../../scripts/release/nodes.ts';
import { copyLibatomic, LIBATOMIC, withoutLibatomic } from '../support/without-libatomic.ts';
import { CHECKOUT } from './staged.ts';

// The whole program of the shell and the Node of a release, around a program that tells which library they found.

const work = mkdtempSync(join(tmpdir(), 'tollgate-library-'));
const file = join(work, 'tell-1.0.0');
const umask = process.umask();
const canHide = withoutLibatomic([file]) !== null;

const TELL = `import { execFileSync } from 'node:child_process';
const mine = () => process.report.getReport().sharedObjects.filter((path) => path.includes('${LIBATOMIC}'));
if (process.argv[2] === 'child') console.log(mine()[0]);
else console.log(JSON.stringify({
  umask: process.umask(),
  variable: process.env.LD_LIBRARY_PATH ?? null,
  node: mine()[0],
  child: execFileSync(process.execPath, [process.argv[1], 'child'], { encoding: 'utf8' }).trim(),
}));
`;

interface Told {
  readonly umask: number;
  readonly variable: string | null;
  readonly node: string;
  readonly child: string;
}

beforeAll(() => {
  const platform = `${process.platform}-${process.arch}`;
  if (!canHide || !isPlatform(platform)) return;
  const bin = join(work, 'package', 'bin');
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, 'tell.mjs'), TELL);
  const tarball = join(work, 'tell.tgz');
  execFileSync('tar', ['--create', '--gzip', `--file=${tarball}`, `--directory=${work}`, 'package']);
  const bytes = readFileSync(copyLibatomic(join(work, 'copied')));
  writeExecutable(
    {
      tarball,
      command: 'tell',
      version: '1.0.0',
      node: nodeFor(platform, { checkout: CHECKOUT, work }),
      library: { name: LIBATOMIC, bytes, licence: 'the licence', packages: [] },
    },
    { stage: join(work, 'stage'), out: file },
  );
}, 120_000);
afterAll(() => {
  rmSync(work, { recursive: true, force: true });
});

/** Starts the executable, which unpacks itself into a folder of this name. */
async function tell(command: readonly string[], unpack: string, own: Record<string, string> = {}): Promise<Told> {
  const [program, ...args] = command as [string, ...string[]];
  const env = { PATH: '/usr/bin:/bin:/usr/sbin', TOLLGATE_UNPACK: unpack, ...own };
  const { stdout } = await promisify(execFile)(program, args, { cwd: work, env });
  return JSON.parse(stdout) as Told;
}

const homeIn = (unpack: string): string => {
  const folders = readdirSync(join(work, unpack));
  expect(folders).toHaveLength(1);
  return join(work, unpack, folders[0]!);
};

it('brings the library where the system has none, for Node and all that Node starts, and keeps what was set', async () => {
  if (!canHide) return;
  const bare = withoutLibatomic([file])!;
  const told = await Promise.all([tell(bare, 'bare'), tell(bare, 'bare'), tell(bare, join(work, 'bare'))]);
  const folder = join(homeIn('bare'), 'lib');
  const library = join(folder, LIBATOMIC);
  for (const one of told) expect(one).toEqual({ umask, variable: folder, node: library, child: library });
  expect(await tell(bare, 'bare', { LD_LIBRARY_PATH: '/own/libraries' })).toEqual({
    umask,
    variable: `${folder}:/own/libraries`,
    node: library,
    child: library,
  });
  expect(readFileSync(join(folder, 'LICENSE'), 'utf8')).toBe('the licence');
}, 60_000);

it('leaves a system that has the library as it is', async () => {
  if (!canHide) return;
  const told = await tell([file], 'whole');
  const folder = homeIn('whole');
  expect(told).toMatchObject({ umask, variable: null });
  for (const path of [told.node, told.child]) expect(path).not.toContain(folder);
  expect(await tell([file], 'whole', { LD_LIBRARY_PATH: join(work, 'copied') })).toEqual({
    umask,
    variable: join(work, 'copied'),
    node: join(work, 'copied', LIBATOMIC),
    child: join(work, 'copied', LIBATOMIC),
  });
  // A folder that several machines share.
  expect(await tell(withoutLibatomic([file])!, 'whole')).toMatchObject({ variable: join(folder, 'lib') });
}, 60_000);
