import { hash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type Database, openDatabase } from '#store';
import { adHoc } from '../../support/ad-hoc.ts';
import { backupPostgres } from '../../support/backup-postgres.ts';
import { emptyDataDirectory } from '../../support/data-directory.ts';
import { bareDatabase, freshDatabase } from '../../support/fresh-database.ts';
import { ask, IDENTITY_SEED, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { makePlace, type Place } from './tollgate.ts';

let place: Place;
let env: NodeJS.ProcessEnv = { TOLLGATE_IDENTITY_SEED: IDENTITY_SEED };
beforeAll(async () => {
  place = await makePlace();
});
afterAll(() => place.clear());

const CLIENTS = 6;
const CALLS_BEFORE = 40;

interface Load {
  /** Ids of calls whose end their clients have seen. */
  readonly ended: string[];
  /** Resolves when so many calls have ended. */
  reached(count: number): Promise<void>;
  stop(): Promise<void>;
}

/** Calls all the time, and now and then a new key and a credit. */
function startLoad(spine: Spine): Load {
  const ended: string[] = [];
  const waiting = new Set<() => void>();
  let stopping = false;
  const client = async () => {
    while (!stopping) {
      const response = await spine.post('/chat/completions', ask('hello'));
      await response.text();
      expect(response.status).toBe(200);
      ended.push(response.headers.get('x-generation-id')!);
      for (const wake of waiting) wake();
    }
  };
  const clients = Promise.all(Array.from({ length: CLIENTS }, client));
  return {
    ended,
    async reached(count) {
      while (ended.length < count)
        await new Promise<void>((resolve) => {
          const wake = () => {
            waiting.delete(wake);
            resolve();
          };
          waiting.add(wake);
        });
    },
    async stop() {
      stopping = true;
      await clients;
    },
  };
}

/** Makes a backup while calls run; resolves with those that had ended before it began. */
async function backUpUnderLoad(spine: Spine, args: readonly string[]): Promise<readonly string[]> {
  const load = startLoad(spine);
  try {
    await load.reached(CALLS_BEFORE);
    const before = [...load.ended];
    const made = await place.run(args, env);
    expect(made, made.output).toMatchObject({ code: 0 });
    await load.reached(load.ended.length + CLIENTS);
    return before;
  } finally {
    await load.stop();
  }
}

/** All these calls are in the books of a restored gateway, its audit finds nothing, and it goes on. */
async function expectAll(restored: Spine, calls: readonly string[]): Promise<void> {
  const found = await Promise.all(calls.map((id) => restored.app.ledger.find(id)));
  expect(found.filter((lock) => lock?.state !== 'settled')).toEqual([]);
  const response = await restored.post('/chat/completions', ask('again'));
  await response.text();
  expect(response.status).toBe(200);
  // On PostgreSQL locks of calls that ran then are held until their time is over.
  expect((await restored.audit()).checks.filter(({ ok }) => !ok)).toEqual([]);
}

const VIDEO = Buffer.alloc(3_000_000, 'frame ');
const [HERE, AWAY, CHANGED] = ['a', 'b', 'c'].map((digit) => digit.repeat(32)) as [string, string, string];
const videoIn = (dataDir: string, id = HERE) => join(dataDir, 'blobs', id.slice(0, 2), id);

const OTHER = '00000000-0000-4000-8000-000000000000';
const BUCKET = `s3-${'0'.repeat(32)}`;

/** A file of a video, one that is in a bucket, and one that its disk has spoilt. */
async function keepFiles(database: Pick<Database, 'query'>, dataDir: string): Promise<void> {
  for (const id of [HERE, CHANGED]) {
    mkdirSync(join(dataDir, 'blobs', id.slice(0, 2)), { recursive: true });
    writeFileSync(videoIn(dataDir, id), id === HERE ? VIDEO : Buffer.alloc(VIDEO.length));
  }
  const later = Date.now() + 86_400_000;
  const holder = readFileSync(join(dataDir, 'blobs', 'holder'), 'utf8');
  for (const id of [HERE, AWAY, CHANGED])
    await database.query(
      adHoc(
        `INSERT INTO blobs (id, source, account, state, bytes, type, sha256, crc32, notes, holder, lease_until, created_at, expires_at)
         VALUES ('${id}', '${id}', 'a', 'stored', ${VIDEO.length}, 'video/mp4', '${hash('sha256', VIDEO)}', 0, '{}', '${id === AWAY ? BUCKET : holder}', 0, 0, ${later})`,
      ),
    );
}

describe('the embedded database', () => {
  const file = () => join(place.dir, 'embedded.tar');
  let dataDir: string;
  let before: readonly string[];
  beforeAll(async () => {
    dataDir = emptyDataDirectory();
    const spine = await startSpine({ dataDir, toml: UNHURRIED });
    await keepFiles(spine.app.database, dataDir);
    before = await backUpUnderLoad(spine, ['backup', file(), '--data', dataDir]);
    await spine.stop();
  });

  it('is backed up under load and restored: no call that ended before is missing', async () => {
    const target = join(place.dir, 'restored');
    const restored = await place.run(['restore', file(), '--data', target], env);
    expect(restored, restored.output).toMatchObject({ code: 0 });
    expect(restored.output).toContain('The books are right.');
    expect(statSync(file()).mode & 0o077).toBe(0);
    expect(readdirSync(target).sort()).toEqual(expect.arrayContaining(['journal-head.json', 'ledger', 'tollgate.db']));
    expect(existsSync(join(target, 'restoring'))).toBe(false);
    expect(readFileSync(videoIn(target)).equals(VIDEO)).toBe(true);
    expect(existsSync(videoIn(target, CHANGED))).toBe(false);
    const holder = (dir: string) => readFileSync(join(dir, 'blobs', 'holder'), 'utf8');
    expect(holder(target)).toBe(holder(dataDir));
    const audited = await place.run(['audit', '--data', target], env);
    expect(audited, audited.output).toMatchObject({ code: 0 });
    const spine = await startSpine({ dataDir: target, toml: UNHURRIED, credit: '0' });
    await expectAll(spine, before);
    await spine.stop();
  });

  it('says what is in it, without restoring', async () => {
    const checked = await place.run(['restore', file(), '--check', '--json'], env);
    expect(checked.code).toBe(0);
    const manifest = JSON.parse(checked.stdout) as {
      engine: string;
      record: { n: number };
      mediaMissing: unknown;
      files: { name: string }[];
    };
    expect(manifest.engine).toBe('embedded');
    expect(manifest.record.n).toBeGreaterThan(CALLS_BEFORE / CLIENTS);
    expect(manifest.files.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['tollgate.db', 'ledger/0000000000000000.log', `blobs/aa/${HERE}`]),
    );
    const one = { url: null, files: 1, bytes: VIDEO.length };
    expect(manifest.mediaMissing).toEqual([
      { where: 'bucket', holder: BUCKET, ...one },
      { where: 'here', holder: expect.stringMatching(/^[0-9a-f-]{36}$/), ...one },
    ]);
    const told = await place.run(['restore', file(), '--check'], env);
    expect(told.output).toMatch(/media +files of images and videos: 1, 3\.0 MB/);
    expect(told.output).toMatch(/not in it +files of images and videos: 1, 3\.0 MB, in a bucket/);
    const without = await place.run(['backup', join(place.dir, 'books.tar'), '--no-media', '--data', dataDir], env);
    expect(without.output).toContain('files of images and videos are not in it');
    const books = await place.run(['restore', join(place.dir, 'books.tar'), '--check', '--json'], env);
    expect(books.stdout).not.toContain('blobs/');
  });

  it('is not restored over something, nor for another identity, nor over a backup', async () => {
    const used = join(place.dir, 'used');
    mkdirSync(used);
    writeFileSync(join(used, 'notes.txt'), 'mine');
    const refused = await place.run(['restore', file(), '--data', used], env);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.output).toContain('is not empty: it has notes.txt');
    expect(readdirSync(used)).toEqual(['notes.txt']);

    const other = await place.run(['restore', file(), '--data', join(place.dir, 'other')], {
      TOLLGATE_IDENTITY_SEED: '22'.repeat(32),
    });
    expect(other).toMatchObject({ code: 1, output: expect.stringContaining('of a gateway with another identity') });
    expect(readdirSync(join(place.dir, 'other'))).toEqual([]);
    // A seed that was replaced since is the second one.
    const since = await place.run(['restore', file(), '--data', join(place.dir, 'since')], {
      TOLLGATE_IDENTITY_SEED: '22'.repeat(32),
      TOLLGATE_SECOND_IDENTITY_SEED: IDENTITY_SEED,
    });
    expect(since, since.output).toMatchObject({ code: 0, output: expect.stringContaining('The books are right.') });
    const without = await place.run(['restore', file(), '--data', join(place.dir, 'other')]);
    expect(without).toMatchObject({ code: 1, output: expect.stringContaining('has no identity.json') });

    const again = await place.run(['backup', file(), '--data', dataDir], env);
    expect(again).toMatchObject({ code: 1, output: expect.stringContaining('is there already') });

    const postgres = await place.run(['restore', file()], { ...env, DATABASE_URL: 'postgres://127.0.0.1:9/none' });
    expect(postgres.code).toBe(1);
  });

  it('is not restored without its identity, also where the backup did not know it', async () => {
    const unknown = join(place.dir, 'unknown.tar');
    const made = await place.run(['backup', unknown, '--data', dataDir]);
    expect(made, made.output).toMatchObject({ code: 0, output: expect.stringContaining('not known here') });
    const target = join(place.dir, 'unknown');
    const refused = await place.run(['restore', unknown, '--data', target]);
    expect(refused).toMatchObject({ code: 1, output: expect.stringContaining('Set the seed here, too') });
    expect(readdirSync(target)).toEqual([]);
    const restored = await place.run(['restore', unknown, '--data', target], env);
    expect(restored, restored.output).toMatchObject({ code: 0 });
  });

  it('is not made instead of one of a gateway elsewhere', async () => {
    const elsewhere = { TOLLGATE_URL: 'https://gate.example', TOLLGATE_ADMIN_KEY: 'k'.repeat(40) };
    for (const args of [
      ['backup', join(place.dir, 'elsewhere.tar')],
      ['restore', file()],
    ]) {
      const refused = await place.run(args, elsewhere);
      expect(refused).toMatchObject({ code: 1, stdout: '', output: expect.stringContaining('asks no gateway') });
    }
    expect(existsSync(join(place.dir, 'elsewhere.tar'))).toBe(false);
  });

  it('says in words where it cannot be written', async () => {
    const refused = await place.run(['backup', join(file(), 'below.tar'), '--data', dataDir], env);
    expect(refused).toMatchObject({ code: 1, output: expect.stringMatching(/below\.tar cannot be made: E\w+/) });
    expect(refused.output).not.toContain('does not know');
  });

  it('goes on after a restore that was stopped, also on a new file system', async () => {
    const target = join(place.dir, 'stopped');
    mkdirSync(join(target, 'lost+found'), { recursive: true });
    mkdirSync(join(target, 'restoring', 'ledger'), { recursive: true });
    writeFileSync(join(target, 'restoring', 'tollgate.db'), 'half of it');
    const restored = await place.run(['restore', file(), '--data', target], env);
    expect(restored, restored.output).toMatchObject({ code: 0 });
  });

  it('keeps its identity in the backup, where it is a file', async () => {
    const own = join(place.dir, 'own-identity');
    await place.run(['account', 'create', 'acme', '--data', own]);
    const saved = join(place.dir, 'own.tar');
    // An identity is made when a gateway or a command needs it first.
    const made = await place.run(['backup', saved, '--data', own]);
    expect(made, made.output).toMatchObject({ code: 0 });
    expect(made.output).toContain('whoever has the file can sign as this gateway');
    const target = join(place.dir, 'own-restored');
    const restored = await place.run(['restore', saved, '--data', target]);
    expect(restored, restored.output).toMatchObject({ code: 0 });
    expect(readFileSync(join(target, 'identity.json'))).toEqual(readFileSync(join(own, 'identity.json')));
    expect((await place.run(['account', 'show', 'acme', '--data', target])).code).toBe(0);
  });
});

describe('PostgreSQL', () => {
  it('cannot be backed up without pg_dump, which is told', async () => {
    const fresh = await freshDatabase(inject('postgresUrl'));
    try {
      const without = { ...env, DATABASE_URL: fresh.url, PATH: place.dir };
      const told = await place.run(['backup', join(place.dir, 'none.tar')], without);
      expect(told).toMatchObject({ code: 1, output: expect.stringContaining('pg_dump cannot be run (ENOENT)') });
      expect(readdirSync(place.dir).filter((name) => name.startsWith('none.tar'))).toEqual([]);
    } finally {
      await fresh.drop();
    }
  });

  it('is dumped where others cannot read, and has its identity before its books', async () => {
    const [fresh, empty] = [await freshDatabase(inject('postgresUrl')), await bareDatabase(inject('postgresUrl'))];
    const [own, target, saved] = ['own', 'target', 'dumped.tar'].map((name) => join(place.dir, `postgres-${name}`));
    const program = (name: string, lines: string) =>
      writeFileSync(join(place.dir, name), `#!/bin/sh\nfor last; do :; done\n${lines}\n`, { mode: 0o755 });
    const programs = { PATH: `${place.dir}:/usr/bin:/bin` };
    try {
      mkdirSync(own!);
      writeFileSync(join(own!, 'identity.json'), JSON.stringify({ seed: IDENTITY_SEED }), { mode: 0o600 });
      program('pg_dump', 'f="${last#--file=}"; stat -c %a "$(dirname "$f")" > "$f"');
      const made = await place.run(['backup', saved!, '--data', own!], { ...programs, DATABASE_URL: fresh.url });
      expect(made, made.output).toMatchObject({ code: 0 });
      expect(readFileSync(saved!, 'latin1')).toContain('700\n');
      program('pg_restore', `ls ${target} >&2; exit 1`);
      const failed = await place.run(['restore', saved!, '--data', target!], { ...programs, DATABASE_URL: empty.url });
      expect(failed).toMatchObject({
        code: 1,
        output: expect.stringMatching(/pg_restore failed:\n[^]*identity\.json/),
      });
      expect(readdirSync(target!)).toEqual([]);
    } finally {
      await Promise.all([fresh.drop(), empty.drop()]);
    }
  });

  it('has the files of one gateway alone, names the others, and puts them back beside the database', async () => {
    const fresh = await freshDatabase(inject('postgresUrl'));
    const [own, lost, saved] = ['files', 'lost', 'files.tar'].map((name) => join(place.dir, `postgres-${name}`));
    const onDatabase = { ...env, DATABASE_URL: fresh.url, PATH: place.dir };
    try {
      mkdirSync(join(own!, 'blobs'), { recursive: true });
      writeFileSync(join(own!, 'blobs', 'holder'), OTHER);
      const database = await openDatabase({ url: fresh.url, dataDir: own! });
      await keepFiles(database, own!);
      const elsewhere = 'http://10.0.0.2:8403';
      await database.query(adHoc(`UPDATE blobs SET holder = 'far' WHERE id = '${CHANGED}'`));
      await database.query(adHoc(`INSERT INTO blob_holders (id, url) VALUES ('far', '${elsewhere}')`));
      await database.close();

      const made = await place.run(['backup', saved!, '--data', own!, '--files-only'], onDatabase);
      expect(made, made.output).toMatchObject({ code: 0 });
      expect(made.output).toMatch(/not in it +files of images and videos: 1, 3\.0 MB, in a bucket/);
      expect(made.output).toContain(`3.0 MB, at the gateway ${elsewhere}`);
      expect(made.output).toMatch(/not in it +the database, the configuration/);

      const whole = await place.run(['restore', saved!, '--data', lost!], onDatabase);
      expect(whole).toMatchObject({ code: 1, output: expect.stringContaining('is not empty') });
      writeFileSync(join(own!, 'blobs', 'holder'), OTHER.replace('0', '1'));
      const refused = await place.run(['restore', saved!, '--data', own!, '--files-only'], env);
      expect(refused).toMatchObject({ code: 1, output: expect.stringContaining('of another gateway than') });

      // It has lost one of its files and has another one: that stays.
      mkdirSync(join(lost!, 'blobs'), { recursive: true });
      writeFileSync(join(lost!, 'blobs', 'holder'), OTHER);
      const restored = await place.run(['restore', saved!, '--data', lost!, '--files-only'], env);
      expect(restored, restored.output).toMatchObject({ code: 0 });
      expect(restored.output).toContain('The database is as it was.');
      expect(readFileSync(videoIn(lost!)).equals(VIDEO)).toBe(true);
      expect(readdirSync(lost!)).toEqual(['blobs']);
    } finally {
      await fresh.drop();
    }
  });

  // The PostgreSQL that npm brings has no pg_dump: the deep run needs one of the system.
  it.each(process.env['TOLLGATE_DEEP'] === '1' ? ['under load'] : [])(
    'is backed up %s by pg_dump and restored into an empty database',
    async () => {
      const programs = backupPostgres();
      const postgres = await programs.start();
      const fresh = await freshDatabase(postgres.url);
      const empty = await bareDatabase(postgres.url);
      const withDump = { ...env, PATH: `${programs.bin}:${process.env['PATH']}` };
      try {
        const file = join(place.dir, 'postgres.tar');
        const own = emptyDataDirectory();
        const spine = await startSpine({ databaseUrl: fresh.url, dataDir: own, toml: UNHURRIED });
        await keepFiles(spine.app.database, own);
        env = { ...withDump, DATABASE_URL: fresh.url };
        const before = await backUpUnderLoad(spine, ['backup', file, '--data', own]);
        await spine.stop();
        expect(readFileSync(file).includes('password')).toBe(false);

        const taken = await place.run(['restore', file], env);
        expect(taken).toMatchObject({ code: 1, output: expect.stringContaining('is not empty: it has') });
        const embedded = await place.run(['restore', file, '--data', join(place.dir, 'none')], withDump);
        expect(embedded).toMatchObject({ code: 1, output: expect.stringContaining('is of a gateway on PostgreSQL') });

        const target = join(place.dir, 'postgres-restored');
        const restored = await place.run(['restore', file, '--data', target], { ...env, DATABASE_URL: empty.url });
        expect(restored, restored.output).toMatchObject({ code: 0 });
        expect(restored.output).toContain('The books are right.');
        expect(readFileSync(videoIn(target)).equals(VIDEO)).toBe(true);
        const again = await startSpine({ databaseUrl: empty.url, dataDir: target, toml: UNHURRIED, credit: '0' });
        await expectAll(again, before);
        await again.stop();
      } finally {
        await postgres.stop();
      }
    },
  );
});
