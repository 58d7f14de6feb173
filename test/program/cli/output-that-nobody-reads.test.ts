import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { LAUNCHER, makePlace, type Place } from './tollgate.ts';

let place: Place;
beforeEach(async () => {
  place = await makePlace();
});
afterEach(() => place.clear());

/** Runs a command after the reader of one of its streams has gone. Resolves with its exit code. */
async function unread(stream: 'stdout' | 'stderr', args: readonly string[]): Promise<unknown> {
  const child = spawn(process.execPath, [LAUNCHER, ...args], {
    cwd: place.dir,
    env: { PATH: process.env['PATH'], TOLLGATE_DATA: place.data },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit') as Promise<[number | null]>;
  child.stdout.resume();
  child.stderr.resume();
  child[stream].destroy();
  return (await exited)[0];
}

it('a command does its work although nobody reads what it says on standard error', async () => {
  await place.run(['account', 'create', 'acme']);
  expect(await unread('stderr', ['account', 'credit', 'acme', '3'])).toBe(0);
  expect((await place.run(['account', 'show', 'acme'])).stdout).toMatch(/balance +3 USD/);
  expect((await place.run(['audit'])).code).toBe(0);
});

it('a result keeps its exit code although nobody reads the result', async () => {
  const file = join(place.dir, 'tollgate.toml');
  await writeFile(file, '[server]\nport = "wrong"\n');
  expect(await unread('stdout', ['serve', '--config', file, '--validate'])).toBe(1);
  await writeFile(file, '[server]\nport = 8402\n');
  expect(await unread('stdout', ['serve', '--config', file, '--validate'])).toBe(0);
});
