import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, beforeEach, expect, inject, it } from 'vitest';
import { freshDatabase, type FreshDatabase } from '../support/fresh-database.ts';
import { LAUNCHER, makePlace, type Place } from './tollgate.ts';
import { children, running } from './child-processes.ts';

let place: Place;
let database: FreshDatabase;
const started: number[] = [];
beforeEach(async () => {
  place = await makePlace();
  database = await freshDatabase(inject('postgresUrl'));
});
afterEach(async () => {
  for (const pid of running(started.splice(0))) process.kill(pid, 'SIGKILL');
  await place.clear();
  await database.drop();
});

// Ctrl-C reaches every program of a pipe: the reader of the log may be gone before its writer has said its last.
it.each([[[]], [['--workers', '2']]])('tollgate serve %j ends although nobody reads its log any more', async (args) => {
  const child = spawn(process.execPath, [LAUNCHER, 'serve', ...args], {
    cwd: place.dir,
    env: { PATH: process.env['PATH'], TOLLGATE_DATA: place.data, PORT: '0', DATABASE_URL: database.url },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  started.push(child.pid!);
  let text = '';
  for await (const chunk of child.stdout
    .setEncoding('utf8')
    .iterator({ destroyOnReturn: false }) as AsyncIterable<string>)
    if ((text += chunk).includes('"msg":"listening"')) break;
  started.push(...children(child.pid!));
  child.stdout.destroy();
  await once(child.stdout, 'close');
  child.kill('SIGTERM');
  const [code] = (await once(child, 'exit')) as [number | null];
  expect(code).toBe(0);
  expect(running(started)).toEqual([]);
});
