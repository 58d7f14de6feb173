import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterEach, expect, inject, test } from 'vitest';
import { audit, createLedger, createPriceBook } from '#billing/compose';
import { openDatabase } from '#store';
import { CRASH_PRICE } from '../../support/crash-price.ts';
import { findProgram } from '../../support/find-program.ts';
import { findFreePort } from '../../support/free-port.ts';
import { bareDatabase } from '../../support/fresh-database.ts';
import { contradictions, loadLedger } from '../../support/ledger-load.ts';
import { createKeeper } from '../../support/server-process.ts';

/** The user `nobody` of Debian: PgBouncer does not run as root. */
const NOBODY = 65_534;
const PAIRS = 2_000;

const disposals: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const dispose of disposals.splice(0).toReversed()) await dispose();
});

/** Starts PgBouncer before a new database. Resolves with the URL of the database through it. */
async function startPooler(mode: 'session' | 'transaction' | 'statement'): Promise<string> {
  const fresh = await bareDatabase(inject('postgresUrl'));
  disposals.push(fresh.drop);
  const database = new URL(fresh.url);
  const { file, env } = findProgram('pgbouncer');
  const isRoot = process.getuid?.() === 0;
  const home = mkdtempSync(join(isRoot ? '/tmp' : tmpdir(), 'tollgate-pooler-'));
  chmodSync(home, 0o755);
  disposals.push(async () => rmSync(home, { recursive: true, force: true }));
  // The other user may not be able to read the checkout.
  mkdirSync(join(home, 'lib'));
  const program = join(home, basename(file));
  cpSync(file, program);
  for (const folder of env['LD_LIBRARY_PATH']?.split(':').filter((path) => path !== '') ?? [])
    cpSync(folder, join(home, 'lib'), { recursive: true, dereference: true });
  const port = await findFreePort();
  const ini = join(home, 'pgbouncer.ini');
  writeFileSync(
    ini,
    `[databases]
* = host=${database.hostname} port=${database.port} user=${database.username} password=${database.password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
default_pool_size = 40
`,
    { mode: 0o644 },
  );
  const keeper = createKeeper([]);
  disposals.push(keeper.close);
  const started = keeper.start({
    file: program,
    args: [ini],
    cwd: home,
    env: { ...env, LD_LIBRARY_PATH: `${join(home, 'lib')}:${dirname(program)}` },
    ...(isRoot ? { uid: NOBODY, gid: NOBODY } : {}),
  });
  await started.wrote('process up');
  database.port = String(port);
  database.hostname = '127.0.0.1';
  return database.href;
}

test.each(['transaction', 'statement'] as const)('a pooler in %s mode is refused with what to do', async (mode) => {
  const url = await startPooler(mode);
  await expect(openDatabase({ url, dataDir: '' })).rejects.toThrow(
    /cannot be used: .*(?:transaction mode, and tollgate needs sessions. Set pool_mode = session|statement pooling)/,
  );
});

test('through a pooler in session mode the books are right', { timeout: 300_000 }, async () => {
  const url = await startPooler('session');
  const database = await openDatabase({ url, dataDir: '' });
  disposals.push(database.close);
  await createPriceBook(database).remember([CRASH_PRICE]);
  const ledgers = [await createLedger({ database }), await createLedger({ database })];
  const loads = ledgers.map((ledger, index) => {
    let pairs = 0;
    return loadLedger(ledger, {
      width: 16,
      prefix: `p${index}`,
      done: () => pairs >= PAIRS,
      onPair: () => (pairs += 1),
    });
  });
  for (const [index, load] of loads.entries()) {
    const { told, surprises } = await load;
    expect(surprises).toEqual([]);
    expect(await contradictions(ledgers[index]!, told)).toEqual([]);
  }
  await Promise.all(ledgers.map((ledger) => ledger.close()));
  const report = await audit(database);
  expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
});
