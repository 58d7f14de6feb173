import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { loadAdminKey } from '../../../src/program/cli/admin/admin-key.ts';
import { LAUNCHER, makePlace, type Place } from './tollgate.ts';

let place: Place;
beforeEach(async () => {
  place = await makePlace();
});
afterEach(() => place.clear());

it('a full disk at the first start leaves no broken key, so the next start works', async () => {
  // No file can grow.
  const child = spawn('/bin/sh', ['-c', 'ulimit -f 0; exec "$0" "$@"', process.execPath, LAUNCHER, 'serve'], {
    cwd: place.dir,
    env: { PATH: process.env['PATH'], TOLLGATE_DATA: place.data, PORT: '0', NODE_DISABLE_COMPILE_CACHE: '1' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  const [code] = (await once(child, 'close')) as [number | null];
  expect([code, said]).toEqual([1, expect.stringContaining('The admin key cannot be stored in')]);
  expect(await readdir(place.data)).toEqual([]);

  const gateway = await place.gateway(['serve']);
  gateway.signal('SIGTERM');
  await gateway.exited;
  expect(gateway.exitCode).toBe(0);
  const file = join(place.data, 'admin-key');
  expect([(await stat(file)).mode & 0o777, await readdir(place.data)]).toEqual([
    0o600,
    expect.not.arrayContaining([expect.stringMatching(/^admin-key\./)]),
  ]);
  expect(loadAdminKey(place.data)).toBe(loadAdminKey(place.data));
});

it('a data directory that is a file is told in words', async () => {
  await writeFile(place.data, '');
  const { code, output } = await place.runAlone(['serve']);
  expect([code, output]).toEqual([
    1,
    expect.stringMatching(/admin key .*(?:ENOTDIR|EEXIST).*\nChoose a data directory/),
  ]);
});

it('a place where no folder can be made is told at once', async () => {
  const { code, output } = await place.runAlone(['serve'], { TOLLGATE_DATA: '/proc/nope/data' });
  expect([code, output]).toEqual([1, expect.stringContaining('The admin key cannot be stored in /proc/nope/data')]);
});
