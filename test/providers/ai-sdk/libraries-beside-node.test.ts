import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { copyLibatomic, withoutLibatomic } from '../../support/without-libatomic.ts';
import { installHostile } from './support/hostile-package.ts';

// Where the system has not all libraries of Node, as under an executable that brings one.

const SOURCES = join(import.meta.dirname, '../../../src');

/** Starts a package behind the wall of this machine, with new files for itself alone, and prints what came of it. */
const program = (directory: string): string => `
import { request } from 'undici';
import { createSdkWorkers } from '${SOURCES}/providers/ai-sdk/workers.ts';
process.umask(0o077);
let wall;
const workers = createSdkWorkers({
  connectionsMax: 1, headTimeoutMs: 60_000, idleTimeoutMs: 60_000, wall: 'if_available', hidden: [],
  log: (sdk, text) => console.error(text), tell: (news) => (wall = news.text),
});
const { body } = await request('http://ai-sdk/chat/completions', {
  dispatcher: workers.open({ kind: 'sdk', sdk: 'hostile', settings: {}, secrets: {}, directory: '${directory}' }),
  method: 'POST',
  body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'environment' }] }),
});
const { choices, error } = await body.json();
console.log(JSON.stringify({ wall, environment: choices ? JSON.parse(choices[0].message.content) : error }));
await workers.close();
process.exit(0);
`;

test('the process of a package finds the libraries of Node where the gateway found them', async () => {
  const directory = installHostile();
  const run = ['--input-type=module', '--eval', program(directory)];
  const bare = withoutLibatomic([process.execPath, ...run]);
  if (bare === null) return;
  const folder = dirname(copyLibatomic(join(directory, 'libraries')));
  const [file, ...args] = bare;
  const ask = async (env: NodeJS.ProcessEnv, ...[command, ...rest]: readonly [string, ...string[]]) => {
    const { stdout } = await promisify(execFile)(command, rest, { cwd: join(SOURCES, '..'), env });
    return JSON.parse(stdout) as { readonly wall: string; readonly environment: unknown };
  };
  const whole = await ask({ PATH: process.env['PATH'] }, process.execPath, ...run);
  expect(whole.environment).toEqual({ HOME: '/' });
  const found = await ask({ PATH: process.env['PATH'], LD_LIBRARY_PATH: folder }, file, ...args);
  expect(found.environment).toEqual({ HOME: '/', LD_LIBRARY_PATH: folder });
  // Who is not root has other walls in a namespace.
  if (process.getuid?.() !== 0) return;
  for (const { wall } of [whole, found]) expect(wall).toContain('as users of their own, in namespaces');
}, 60_000);
