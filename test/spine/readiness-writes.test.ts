import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Client } from 'pg';
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { DatabaseError, type SqliteDatabase } from '#store';
import { createDatabaseCheck } from '#observe';
import { command, freshDatabase } from '../support/fresh-database.ts';
import { ask, startSpine, type Spine } from '../support/spine.ts';
import { atThisLoad } from '../support/at-this-load.ts';

const ready = async (spine: Spine) => {
  const response = await fetch(`${spine.origin}/health/ready`);
  return [response.status, ((await response.json()) as { checks: Record<string, string> }).checks] as const;
};
/** With PostgreSQL, the clock is compared with that of the database. */
const CLOCK = { sqlite: {}, postgres: { clock: 'ok' } } as const;
const becomes = async (spine: Spine, status: number, database: string) => {
  await expect
    .poll(() => ready(spine), { timeout: 60_000, interval: 200 })
    .toEqual([status, { gateway: 'ok', database, ...CLOCK[spine.app.database.engine] }]);
};
/** How often the log says it. The first check of a gateway may be too slow while much else is written to the disk. */
const refusals = ({ logs }: Spine) =>
  logs.filter((line) => line.includes('cannot be written to: calls are refused')).length;

describe('a gateway whose database can be read and not written', () => {
  it('is not ready on the embedded database, and is again when it can be written', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'tollgate-ready-'));
    const spine = await startSpine({ dataDir });
    onTestFinished(async () => {
      await spine.stop();
      await rm(dataDir, { recursive: true });
    });
    await becomes(spine, 200, 'ok');
    const other = new DatabaseSync(join(dataDir, 'tollgate.db'), { timeout: 10_000 });
    other.exec('BEGIN IMMEDIATE');
    await becomes(spine, 503, 'takes no writes in time');
    other.exec('ROLLBACK');
    other.close();
    await becomes(spine, 200, 'ok');
    expect(await spine.faults()).toEqual([]);
  });

  it('is not ready when the ledger has given up its log, until it starts again', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'tollgate-ready-'));
    const spine = await startSpine({ dataDir });
    let running = spine;
    onTestFinished(async () => {
      await running.stop();
      await rm(dataDir, { recursive: true });
    });
    const { log } = spine.app.database as SqliteDatabase;
    const call = async () => {
      const response = await spine.post('/chat/completions', ask('hello !tokens:1'));
      return [response.status, await response.text()];
    };
    expect((await call())[0]).toBe(200);
    await becomes(spine, 200, 'ok');
    // A record that is too long for a string. What was decided for it is in memory and never on the disk.
    vi.spyOn(log, 'append').mockRejectedValueOnce(new RangeError('Invalid string length'));
    const refused = [503, expect.stringContaining('The ledger is not reachable at the moment')];
    expect(await call()).toEqual(refused);
    expect(await call()).toEqual(refused);
    await becomes(spine, 503, 'has lost the log of the ledger: restart the gateway');
    expect(spine.logs.filter((line) => line.includes('the ledger takes no operations')).length).toBe(1);
    await spine.stop();
    running = await startSpine({ dataDir });
    await becomes(running, 200, 'ok');
    expect((await running.post('/chat/completions', ask('hello !tokens:1'))).status).toBe(200);
    expect(await running.faults()).toEqual([]);
  });

  it('is not ready while the log of the ledger cannot be written, and is again when it can', async () => {
    const spine = await startSpine();
    onTestFinished(() => spine.stop());
    const { log } = spine.app.database as SqliteDatabase;
    const { append } = log;
    let isBroken = true;
    const broken = new DatabaseError('EIO: injected', { code: 'EIO', unavailable: true });
    vi.spyOn(log, 'append').mockImplementation((...record) => (isBroken ? Promise.reject(broken) : append(...record)));
    const waiting = spine.post('/chat/completions', ask('hello !tokens:1'));
    await becomes(spine, 503, 'cannot be reached or written to');
    isBroken = false;
    expect((await waiting).status).toBe(200);
    await becomes(spine, 200, 'ok');
    expect(await spine.faults()).toEqual([]);
  });

  it('refuses calls at once while its disk is full, and takes them when there is room', async () => {
    const spine = await startSpine();
    onTestFinished(() => spine.stop());
    const { database, ledger } = spine.app;
    const call = async () => {
      const response = await spine.post('/chat/completions', ask('hello !tokens:1'));
      return { status: response.status, retryAfter: response.headers.get('retry-after'), text: await response.text() };
    };
    expect((await call()).status).toBe(200);
    await spine.quiet();
    // A limit on its pages, which are all in use, is to SQLite what a full disk is. What is left in the last page
    // of the locks is used up first.
    const [{ page_count: pages }] = (await database.query({ name: 'count', text: 'PRAGMA page_count' }, [])) as [
      { readonly page_count: bigint },
    ];
    await database.query({ name: 'limit', text: `PRAGMA max_page_count = ${pages}` }, []);
    const held: string[] = [];
    const hold = async (): Promise<never> => {
      for (;;) {
        const id = crypto.randomUUID();
        const lock = {
          id,
          account: spine.account,
          amount: 1n,
          prices: [],
          expiresAt: Date.now() + 60_000,
          detail: '{}',
        };
        expect(await ledger.lock(lock)).toMatchObject({ ok: true });
        held.push(id);
      }
    };
    await expect(hold()).rejects.toMatchObject({ cause: { full: true } });
    const begun = performance.now();
    const refused = await Promise.all(Array.from({ length: 20 }, call));
    // Each was tried for 5 s.
    expect(performance.now() - begun).toBeLessThan(atThisLoad(4_000));
    for (const { status, retryAfter, text } of refused) {
      expect({ status, retryAfter }).toEqual({ status: 503, retryAfter: '30' });
      expect(text).toContain('The disk of the gateway is full, so it takes no calls');
    }
    await database.query({ name: 'unlimit', text: 'PRAGMA max_page_count = 1073741823' }, []);
    // The ledger tries to write again at most half a second later.
    await expect.poll(async () => (await call()).status, { timeout: 60_000, interval: 100 }).toBe(200);
    for (const id of held) await ledger.release({ id, detail: '{}' });
    expect(await spine.faults()).toEqual([]);
  });

  it('is not ready on PostgreSQL while groups of the ledger have no room, and is again without a call', async () => {
    const fresh = await freshDatabase(inject('postgresUrl'));
    const spine = await startSpine({ databaseUrl: fresh.url });
    onTestFinished(async () => {
      await spine.stop();
      await fresh.drop();
    });
    const call = async () => {
      const response = await spine.post('/chat/completions', ask('hello !tokens:1'));
      await response.text();
      return response.status;
    };
    const works = async () => {
      const authorization = `Bearer ${spine.adminKey}`;
      const response = await fetch(`${spine.origin}/metrics`, { headers: { authorization } });
      return /^tollgate_database_works (\d)$/m.exec(await response.text())?.[1];
    };
    expect(await call()).toBe(200);
    await spine.quiet();
    await becomes(spine, 200, 'ok');
    const before = refusals(spine);
    // What a group needs is refused as on a full disk. Small writes to other tables are taken.
    await command(
      fresh.url,
      `CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         RAISE EXCEPTION 'could not extend file "base/5/1": No space left on device' USING ERRCODE = '53100';
       END $$`,
    );
    await command(
      fresh.url,
      'CREATE TRIGGER no_room BEFORE INSERT ON journal_batches FOR EACH ROW EXECUTE FUNCTION no_room()',
    );
    expect(await call()).toBe(503);
    await becomes(spine, 503, 'cannot be written to: its disk is full');
    expect(await works()).toBe('0');
    expect(refusals(spine) - before).toBe(1);
    await command(fresh.url, 'DROP TRIGGER no_room ON journal_batches');
    await becomes(spine, 200, 'ok');
    // The next check may be too slow for a moment, while much else is written to the same disk.
    await expect.poll(works, { timeout: 60_000, interval: 200 }).toBe('1');
    expect(await call()).toBe(200);
    expect(await spine.faults()).toEqual([]);
  });

  it('is not ready on PostgreSQL', async () => {
    const fresh = await freshDatabase(inject('postgresUrl'));
    const spine = await startSpine({ databaseUrl: fresh.url });
    onTestFinished(async () => {
      await spine.stop();
      await fresh.drop();
    });
    await becomes(spine, 200, 'ok');
    const before = refusals(spine);
    const name = new URL(fresh.url).pathname.slice(1);
    const cut = async () => {
      const client = new Client({ connectionString: inject('postgresUrl') });
      await client.connect();
      await client.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [name]);
      await client.end();
    };
    await command(inject('postgresUrl'), `ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    await cut();
    await becomes(spine, 503, 'cannot be written to: it is read-only');
    expect(refusals(spine) - before).toBe(1);
    await command(inject('postgresUrl'), `ALTER DATABASE ${name} SET default_transaction_read_only = off`);
    await cut();
    await becomes(spine, 200, 'ok');
    expect(await spine.faults()).toEqual([]);
  });
});

describe('the check', () => {
  it('writes once for all who ask, and at most once in its time', async () => {
    let writes = 0;
    let answer = () => {};
    const check = createDatabaseCheck({
      write: () =>
        new Promise((resolve) => {
          writes += 1;
          answer = resolve;
        }),
      ledger: async () => {},
      onChange: () => {},
      keepMs: 1e9,
    });
    const asked = Array.from({ length: 50 }, () => check());
    answer();
    expect(new Set(await Promise.all(asked))).toEqual(new Set(['ok']));
    expect(await check()).toBe('ok');
    expect(writes).toBe(1);
  });

  it('tells a full disk from others, in words without secrets', async () => {
    const told: unknown[] = [];
    const of = (reason: Error) => {
      const write = async () => {
        throw reason;
      };
      return createDatabaseCheck({ write, ledger: async () => {}, onChange: (problem) => told.push(problem) })();
    };
    const full = (code: string) => new DatabaseError('password=hunter2 at 10.0.0.5', { code, unavailable: true });
    for (const code of ['sqlite_13', '53100'])
      expect(await of(full(code))).toBe('cannot be written to: its disk is full');
    expect(await of(full('connection'))).toBe('cannot be reached or written to');
    expect(told).toEqual(['database', 'database', 'database']);
  });
});
