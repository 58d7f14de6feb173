import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { findFreePort } from '../../support/free-port.ts';

const BIN = join(import.meta.dirname, '../../../bin/tollgate.mjs');
/** Every write to it fails as on a full disk. Only Linux has it. */
const FULL = '/dev/full';

test('a gateway goes on when its log cannot be written, and says so once', async () => {
  if (!existsSync(FULL)) return;
  const home = mkdtempSync(join(tmpdir(), 'tollgate-full-'));
  const port = await findFreePort();
  const file = join(home, 'tollgate.toml');
  writeFileSync(file, '');
  const full = openSync(FULL, 'w');
  const args = ['serve', '--config', file, '--port', `${port}`, '--data', join(home, 'data')];
  const child = spawn(process.execPath, [BIN, ...args], {
    cwd: home,
    stdio: ['ignore', full, 'pipe'],
  });
  closeSync(full);
  const gone = once(child, 'exit');
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await gone;
    rmSync(home, { recursive: true });
  });
  let said = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (said += text));

  const ask = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`).catch(() => null))?.status;
  await expect.poll(() => ask('/health/ready'), { timeout: 60_000 }).toBe(200);
  for (let n = 0; n < 5; n += 1) {
    // The line of the start is tried again four times a second.
    expect(await ask('/api/v1/nowhere'), said).toBe(404);
    await pause(200);
  }
  child.kill('SIGTERM');
  expect(await gone, said).toEqual([0, null]);
  expect(said.match(/The log cannot be written: ENOSPC/g), said).toHaveLength(1);
});

test('what a reader does not take is lost from 4 MiB on, and that is said once', async () => {
  const module = join(import.meta.dirname, '../../../src/console/observe/logger.ts');
  const script = `
    const { createLogger } = await import(${JSON.stringify(module)});
    const { logger } = createLogger({ mode: 'production', logLevel: 'info' });
    for (let turn = 0; turn < 100; turn += 1) {
      for (let line = 0; line < 100; line += 1) logger.info({ text: 'x'.repeat(1_000) }, 'large');
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    process.kill(process.pid, 'SIGKILL');`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  await once(child, 'exit');
  child.stdout.destroy();
  expect(said).toBe('The log is not read as fast as it is written. The gateway goes on, and lines may be lost\n');
});

test('a command whose output cannot be written says so in one line, and fails', async () => {
  if (!existsSync(FULL)) return;
  const full = openSync(FULL, 'w');
  const child = spawn(process.execPath, [BIN, '--help'], { stdio: ['ignore', full, 'pipe'] });
  closeSync(full);
  let said = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (said += text));
  expect(await once(child, 'close')).toEqual([1, null]);
  expect(said).toMatch(/^Standard output cannot be written: ENOSPC: [^\n]*\. What was printed is not complete\.\n$/);
});
