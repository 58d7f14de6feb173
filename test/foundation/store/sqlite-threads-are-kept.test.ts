import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { openDatabase, type OpenDatabase, type Query } from '#store';
import { newDataDirectory } from '../../support/data-directory.ts';

const COUNT = { name: 'test/kept-count', text: 'SELECT count(*) AS n FROM used_nonces' };
const INSERT = { name: 'test/kept-insert', text: 'INSERT INTO used_nonces (nonce, expires_at) VALUES ($1, 2)' };

let dataDir: string;
let database: OpenDatabase;
beforeAll(async () => {
  dataDir = newDataDirectory();
  database = await openDatabase({ dataDir });
});
afterAll(async () => {
  await database.close();
  rmSync(dataDir, { recursive: true });
});

/** Threads that this process starts from now on, until the test ends. */
function countThreads(): { readonly started: number } {
  const seen = { started: 0 };
  const count = () => (seen.started += 1);
  process.on('worker', count);
  onTestFinished(() => void process.off('worker', count));
  return seen;
}

const rows = (query: Query) => query(COUNT);

describe('threads of the embedded database', () => {
  test('one serves snapshot after snapshot, and each sees what was written before it', async () => {
    await database.snapshot(null, rows);
    const threads = countThreads();
    for (let n = 1n; n <= 20n; n += 1n) {
      await database.query(INSERT, [`one-${n}`]);
      expect(await database.snapshot(null, rows)).toEqual([{ n }]);
    }
    expect(threads.started).toBe(0);
  });

  test('snapshots at the same time each have their own, and keep to their moment', async () => {
    const [before] = await database.query(COUNT);
    const states = await Promise.all(
      Array.from({ length: 6 }, (_, n) =>
        database.snapshot(null, async (query) => {
          const first = await rows(query);
          await database.query(INSERT, [`many-${n}`]);
          expect(await rows(query)).toEqual(first);
          return first[0]!['n'] as bigint;
        }),
      ),
    );
    for (const n of states) expect(n).toBeGreaterThanOrEqual(before!['n'] as bigint);
    expect(await database.query(COUNT)).toEqual([{ n: (before!['n'] as bigint) + 6n }]);
  });

  test('one stays for ten minutes, further ones for seconds', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const three = () =>
      Promise.all([database.snapshot(null, rows), database.snapshot(null, rows), database.snapshot(null, rows)]);
    await three();
    const threads = countThreads();
    vi.advanceTimersByTime(9_000);
    await three();
    expect(threads.started).toBe(0);
    vi.advanceTimersByTime(590_000);
    await three();
    expect(threads.started).toBe(2);
    vi.advanceTimersByTime(600_000);
    await three();
    expect(threads.started).toBe(5);
  });

  test('a database that is opened takes the thread of one that was closed, and has its own rows', async () => {
    const other = newDataDirectory();
    onTestFinished(() => rmSync(other, { recursive: true }));
    await (await openDatabase({ dataDir: other })).close();
    const threads = countThreads();
    const again = await openDatabase({ dataDir: other });
    expect(await again.query(COUNT)).toEqual([{ n: 0n }]);
    await again.close();
    expect(threads.started).toBe(0);
  });

  test('a kept thread does not hold its process', () => {
    const own = newDataDirectory();
    onTestFinished(() => rmSync(own, { recursive: true }));
    const program = `
      const { openDatabase } = await import(process.argv[1]);
      const database = await openDatabase({ dataDir: process.argv[2] });
      await database.snapshot(null, async () => {});
      await database.close();
      console.log('closed');
    `;
    const store = new URL('../../../src/foundation/store/index.ts', import.meta.url).href;
    const { stdout, status, signal } = spawnSync(
      process.execPath,
      ['--input-type=module', '--eval', program, store, own],
      { encoding: 'utf8', timeout: 60_000 },
    );
    expect({ stdout, status, signal }).toEqual({ stdout: 'closed\n', status: 0, signal: null });
  });
});
