import { cp, mkdir, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it, vi } from 'vitest';
import { command, freshDatabase, type FreshDatabase } from '../../support/fresh-database.ts';
import { makePlace, type Place } from './tollgate.ts';

let place: Place;
beforeEach(async () => {
  place = await makePlace();
});
afterEach(() => place.clear());

const path = (name: string) => join(place.data, name);
const balance = async (env: NodeJS.ProcessEnv = {}) =>
  (JSON.parse((await place.run(['account', 'show', 'acme', '--json'], env)).stdout) as { balance_usd: string })
    .balance_usd;
const MOVED = ['tollgate.db', 'tollgate.db-wal', 'tollgate.db-shm', 'ledger'];

/** Copies the database of one data directory, tables and log, over that of another. */
async function copyDatabase(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true });
  for (const name of MOVED) await rm(join(to, name), { recursive: true, force: true });
  for (const name of ['tollgate.db', 'ledger']) await cp(join(from, name), join(to, name), { recursive: true });
}

/**
 * The place of a gateway with credits that it acknowledged, killed when its journal file knows of them; `earlier` in it
 * is a copy of the database before the last credits.
 */
async function placeOfKilledGateway(): Promise<Place> {
  const killed = await makePlace();
  const head = async () =>
    (JSON.parse(await readFile(join(killed.data, 'journal-head.json'), 'utf8')) as Record<string, { n: number }>)[
      'embedded'
    ]!;
  await killed.run(['account', 'create', 'acme']);
  await killed.run(['account', 'credit', 'acme', '1']);
  await copyDatabase(killed.data, join(killed.dir, 'earlier'));
  const before = (await head()).n;
  const gateway = await killed.gateway(['serve']);
  for (const amount of ['2', '3', '4']) expect((await killed.run(['account', 'credit', 'acme', amount])).code).toBe(0);
  // The file follows within a second or so; what it says is a lower bound.
  await vi.waitFor(async () => expect((await head()).n).toBe(before + 3), { timeout: 60_000 });
  gateway.signal('SIGKILL');
  await gateway.exited;
  return killed;
}

const EVERY = [['serve'], ['start'], ['account', 'credit', 'acme', '5'], ['key', 'list', 'acme']];

/** What a command says of it, and that it does nothing. */
async function refused(says: RegExp, commands: readonly (readonly string[])[] = [['account', 'list']]): Promise<void> {
  for (const args of commands) {
    const result = await place.run(args);
    expect.soft(result, args.join(' ')).toMatchObject({ code: 1, stdout: '', output: expect.stringMatching(says) });
    expect.soft(result.output, args.join(' ')).toContain('tollgate restored --accept');
  }
}

describe('the embedded database', () => {
  let killed: Place;
  beforeAll(async () => {
    killed = await placeOfKilledGateway();
  });
  beforeEach(() => cp(killed.data, place.data, { recursive: true }));
  afterAll(() => killed.clear());

  it('that lost the log of its ledger is refused, and goes on with its tables when that is wanted', async () => {
    expect(await balance()).toBe('10');
    await rm(path('ledger'), { recursive: true });
    await refused(
      /The log of the ledger is gone: .*ledger has no file of it, and tollgate.db follows it up to record \d+/,
      EVERY,
    );
    const told = await place.run(['restored']);
    expect(told).toMatchObject({ code: 1, stdout: '' });
    expect(told.output).toMatch(/journal-head.json knows of record \d+, written at 20/);
    expect(told.output).toContain('To go on without it: the same command with --accept');
    expect(await place.run(['restored', '--accept'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Accepted'),
    });
    expect(await balance()).toBe('10');
    expect(await place.run(['audit'])).toMatchObject({ code: 0 });
    expect(await place.run(['restored'])).toMatchObject({ code: 0 });
  });

  it('that lost its write-ahead log is refused, found by the audit, and taken when that is wanted', async () => {
    await rm(path('tollgate.db-wal'));
    await refused(
      /This gateway has written batch \d+ of the journal .* the database ends at batch \d+: operations that were acknowledged are missing/,
      EVERY,
    );
    const audit = await place.run(['audit']);
    expect(audit.code).toBe(1);
    expect(audit.stdout).toMatch(/✗ journal head +This gateway has written batch/);
    expect(audit.stdout).toContain('The books differ.');

    expect(await place.run(['restored'])).toMatchObject({
      code: 1,
      output: expect.stringContaining('the same command with --accept'),
    });
    expect(await place.run(['restored', '--accept'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Accepted'),
    });
    expect(await place.run(['restored'])).toMatchObject({ code: 0, stdout: expect.stringContaining('has all that') });
    // The log of the ledger has all credits. What else the tables had is gone.
    expect(await balance()).toBe('10');
    expect((await place.run(['account', 'credit', 'acme', '9'])).code).toBe(0);
    expect(await place.run(['audit'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('The books are right.'),
    });
  });

  it('that lost the end of its ledger is refused', async () => {
    const [name] = await readdir(path('ledger'));
    const segment = join(path('ledger'), name!);
    // The gateway was killed. The command brings the tables up to date, and cuts the zeros behind the last record.
    await place.run(['account', 'list']);
    const { size } = await stat(segment);
    await truncate(segment, size - 1);
    const says = new RegExp(`The log in .*ledger has no bytes \\d+ to ${size}, which the database knows of`);
    for (const args of [['serve'], ['account', 'list']])
      expect(await place.run(args)).toMatchObject({ code: 1, output: expect.stringMatching(says) });
  });

  it('that lost its ledger, and whose file cannot be read, is taken when that is wanted', async () => {
    await rm(path('ledger'), { recursive: true });
    await truncate(path('journal-head.json'), 5);
    await refused(/The log of the ledger is gone/, [['restored']]);
    expect(await place.run(['restored', '--accept'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/journal-head\.json cannot be read .*\n.*Accepted/s),
    });
    expect(await place.run(['restored'])).toMatchObject({ code: 0, stdout: expect.stringContaining('has all that') });
    expect(await balance()).toBe('10');
    expect(await place.run(['audit'])).toMatchObject({ code: 0 });
  });

  it('that is gone, or empty, is not begun anew', async () => {
    for (const name of MOVED) await rm(path(name), { recursive: true, force: true });
    await refused(
      /tollgate\.db is missing, but journal-head\.json and identity\.json beside it say that a gateway has run here/,
      EVERY,
    );
    await writeFile(path('tollgate.db'), '');
    await refused(/tollgate\.db is empty, but/);
    expect(await place.run(['audit'])).toMatchObject({ code: 2, output: expect.stringContaining('is empty, but') });
    // Without the file too: the identity alone says that it had a database.
    await rm(path('journal-head.json'));
    await refused(/tollgate\.db is empty, but identity\.json beside it says/);

    expect((await place.run(['restored'])).code).toBe(1);
    expect((await place.run(['restored', '--accept'])).code).toBe(0);
    expect((await place.run(['account', 'create', 'acme'])).code).toBe(0);
    expect(await place.run(['audit'])).toMatchObject({ code: 0 });
  });

  it('that was exchanged for an older copy is refused, also when it was written to elsewhere', async () => {
    const earlier = join(killed.dir, 'earlier');
    await copyDatabase(earlier, place.data);
    await refused(/the database ends at batch/);

    const elsewhere = join(place.dir, 'elsewhere');
    await copyDatabase(earlier, elsewhere);
    for (const amount of ['7', '8', '9'])
      await place.run(['account', 'credit', 'acme', amount], { TOLLGATE_DATA: elsewhere });
    await copyDatabase(elsewhere, place.data);
    await refused(/the database has another batch \d+: it is another database, or was restored and written to since/);
  });

  it('whose file was edited, or is of another identity, is refused', async () => {
    const text = await readFile(path('journal-head.json'), 'utf8');
    await writeFile(path('journal-head.json'), text.replace(/"n": \d+/, '"n": 1'));
    await refused(/journal-head\.json was not written with the identity of this gateway, or was changed since/);
    await truncate(path('journal-head.json'), 5);
    await refused(/journal-head\.json cannot be read/);
    expect(await place.run(['restored', '--accept'])).toMatchObject({ code: 0 });
    expect(await balance()).toBe('10');
    await writeFile(path('journal-head.json'), text);
    const otherSeed = { TOLLGATE_IDENTITY_SEED: '11'.repeat(32) };
    expect(await place.run(['account', 'list'], otherSeed)).toMatchObject({
      code: 1,
      output: expect.stringContaining('TOLLGATE_IDENTITY_SEED'),
    });
    expect(await balance()).toBe('10');
    expect(await place.run(['audit'])).toMatchObject({ code: 0 });
  });
});

describe('PostgreSQL', () => {
  let database: FreshDatabase;
  beforeEach(async () => {
    database = await freshDatabase(inject('postgresUrl'));
  });
  afterEach(() => database.drop());

  it('that has less than the data directory remembers is refused, and the audit finds it', async () => {
    const env = { DATABASE_URL: database.url };
    await place.run(['account', 'create', 'acme'], env);
    await place.run(['account', 'credit', 'acme', '25'], env);
    expect(await place.run(['audit'], env)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/✓ journal head +the journal has batch 1/),
    });
    // The books of before the credit.
    await command(
      database.url,
      'DELETE FROM journal; DELETE FROM journal_batches; DELETE FROM transfers; DELETE FROM accounts; DELETE FROM account_stripes',
    );

    expect(await place.run(['serve'], env)).toMatchObject({
      code: 1,
      output: expect.stringContaining('the database ends at batch 0'),
    });
    expect(await place.run(['audit'], env)).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('✗ journal head'),
    });
    expect(await place.run(['restored', '--accept'], env)).toMatchObject({ code: 0 });
    expect(await balance(env)).toBe('0');
    // What is remembered of one database says nothing about another.
    const other = await freshDatabase(inject('postgresUrl'));
    expect(await place.run(['account', 'list'], { DATABASE_URL: other.url })).toMatchObject({ code: 0 });
    await other.drop();
  });
});
