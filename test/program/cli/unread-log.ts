import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished } from 'vitest';
import { children, running } from '../../support/process-tree.ts';
import { LAUNCHER, type Place } from './tollgate.ts';

/**
 * Runs `tollgate serve` until it listens, stops to read its log and ends it: with code 0, and with every process that
 * it started. Ctrl-C reaches every program of a pipe, so the reader of the log may be gone before its writer has said
 * its last.
 */
export async function endUnread(
  place: Place,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  const started: number[] = [];
  onTestFinished(() => {
    for (const pid of running(started)) process.kill(pid, 'SIGKILL');
  });
  const child = spawn(process.execPath, [LAUNCHER, 'serve', ...args], {
    cwd: place.dir,
    env: { PATH: process.env['PATH'], TOLLGATE_DATA: place.data, PORT: '0', ...env },
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
}
