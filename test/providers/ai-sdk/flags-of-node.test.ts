import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { NODE_FLAGS } from '../../../src/providers/ai-sdk/start-worker.ts';

// What Node itself refuses to a package, by its flags alone, without worker/shut.ts: a second wall of JavaScript hides
// no flag that is missing, and no new version of Node that refuses less.

function secretFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-flags-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'secret.txt');
  writeFileSync(file, 'SECRET=canary');
  return file;
}

/** What each piece of code throws; undefined if it throws nothing. */
function refusals(codes: Readonly<Record<string, string>>): Record<string, string | undefined> {
  const tries = Object.entries(codes).map(
    ([name, code]) => `try { ${code}; } catch (error) { said[${JSON.stringify(name)}] = error.code ?? error.message; }`,
  );
  const source = `const said = {}; const get = process.getBuiltinModule; ${tries.join('\n')}; console.log(JSON.stringify(said));`;
  const { stdout, stderr } = spawnSync(process.execPath, [...NODE_FLAGS, '-e', source], { env: {}, encoding: 'utf8' });
  expect(stdout, stderr).not.toBe('');
  return JSON.parse(stdout) as Record<string, string>;
}

test('Node refuses by itself what its flags are for', () => {
  const secret = JSON.stringify(secretFile());
  expect(
    refusals({
      binding: `process.binding('fs')`,
      'linked binding': `process._linkedBinding('fs')`,
      'native addon': `process.dlopen({ exports: {} }, ${secret})`,
      'another program': `process.execve('/bin/true', ['true'], {})`,
      'variables of a file': `process.loadEnvFile(${secret})`,
      file: `get('fs').readFileSync(${secret})`,
      program: `get('child_process').execFileSync('/bin/true')`,
      thread: `new (get('worker_threads').Worker)('', { eval: true })`,
      debugger: `get('inspector').open(0)`,
      SQLite: `require('node:sqlite')`,
      'foreign functions': `require('node:ffi')`,
      storage: `if (globalThis.Storage !== undefined || globalThis.localStorage !== undefined) throw undefined`,
    }),
  ).toEqual({
    binding: 'ERR_ACCESS_DENIED',
    'linked binding': 'ERR_ACCESS_DENIED',
    'native addon': 'ERR_DLOPEN_DISABLED',
    'another program': 'ERR_ACCESS_DENIED',
    'variables of a file': 'ERR_ACCESS_DENIED',
    file: 'ERR_ACCESS_DENIED',
    program: 'ERR_ACCESS_DENIED',
    thread: 'ERR_ACCESS_DENIED',
    debugger: 'ERR_ACCESS_DENIED',
    SQLite: 'ERR_UNKNOWN_BUILTIN_MODULE',
    'foreign functions': 'ERR_UNKNOWN_BUILTIN_MODULE',
  });
});

test('a package has half a gigabyte of heap, and a flag of V8 ends its process', () => {
  const run = (code: string) => spawnSync(process.execPath, [...NODE_FLAGS, '-e', code], { env: {}, encoding: 'utf8' });
  const { stdout } = run(`console.log(process.getBuiltinModule('v8').getHeapStatistics().heap_size_limit / 2 ** 20)`);
  expect(Number(stdout)).toBeGreaterThan(500);
  expect(Number(stdout)).toBeLessThan(700);
  const { stdout: none, status } = run(
    `process.getBuiltinModule('v8').setFlagsFromString('--trace-turbo'); console.log('set')`,
  );
  expect([none, status === 0]).toEqual(['', false]);
});

/** The permission model of some versions keeps the debugger shut as well, which would hide that the flag is missing. */
const BESIDE_PERMISSION = NODE_FLAGS.filter((flag) => flag !== '--permission');

test.each([
  ['all flags', NODE_FLAGS],
  ['its own flag', BESIDE_PERMISSION],
])('a signal opens no debugger, by %s', async (_by, flags) => {
  const child = spawn(process.execPath, [...flags, '-e', `setInterval(() => console.log('runs'), 20)`], {
    env: {},
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  await once(child.stdout, 'data');
  child.kill('SIGUSR1');
  // It ends, or goes on without a debugger.
  const ended = once(child, 'close');
  for (let looks = 0; looks < 10; looks++) await Promise.race([ended, once(child.stdout, 'data')]);
  expect(said).toBe('');
});
