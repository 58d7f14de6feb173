import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openDatabase } from '#store';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'tollgate-open-'));
});
afterEach(() => rmSync(home, { recursive: true }));

const PROGRAM = `
  const { openDatabase } = await import(process.argv[1]);
  await openDatabase({ dataDir: process.argv[2] });
  console.log('open');
  setInterval(() => {}, 1000);
`;

/** Another process that has the directory open. */
async function otherProcess(dataDir: string) {
  const store = new URL('../../../src/foundation/store/index.ts', import.meta.url).href;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', PROGRAM, store, dataDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [how] = (await Promise.race([once(child.stdout, 'data'), once(child, 'exit')])) as [unknown];
  expect(how).toEqual(Buffer.from('open\n'));
  return child;
}

describe('a data directory', () => {
  test('that another process has open is refused with what to do', async () => {
    const child = await otherProcess(home);
    const opening = openDatabase({ dataDir: home });
    await expect(opening).rejects.toMatchObject({ name: 'DatabaseError', code: 'in_use' });
    await expect(opening).rejects.toThrow(
      new RegExp(`${home} is open in another tollgate process\\. Use that gateway's admin API, stop it first`),
    );
    child.kill('SIGKILL');
    await once(child, 'exit');
  });

  test('is free again when its process was killed', async () => {
    const child = await otherProcess(home);
    child.kill('SIGKILL');
    await once(child, 'exit');
    const database = await openDatabase({ dataDir: home });
    await database.close();
  });

  test('is refused to a second opener in the same process, and free after closing', async () => {
    const first = await openDatabase({ dataDir: home });
    await expect(openDatabase({ dataDir: home })).rejects.toMatchObject({ code: 'in_use' });
    await first.close();
    const second = await openDatabase({ dataDir: home });
    await second.close();
  });

  test('is made when it is missing, for its owner only', async () => {
    const dataDir = join(home, 'deep', 'data');
    const database = await openDatabase({ dataDir });
    expect(statSync(dataDir).mode & 0o777).toBe(0o700);
    expect(statSync(join(dataDir, 'tollgate.db')).mode & 0o777).toBe(0o600);
    await database.close();
  });

  test('that cannot be used is refused with the reason', async () => {
    const opening = openDatabase({ dataDir: '/dev/null/data' });
    await expect(opening).rejects.toThrow(/data directory \/dev\/null\/data cannot be used: .*TOLLGATE_DATA/);
  });

  test('a database URL of another kind is refused', async () => {
    await expect(openDatabase({ url: 'mysql://host/db', dataDir: home })).rejects.toThrow(
      /must begin with postgres:\/\//,
    );
  });
});
