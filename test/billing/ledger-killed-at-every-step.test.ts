import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { audit, createLedger } from '#billing';
import { openDatabase } from '#store';
import { contradictedBy, runKilled } from '../support/killed-child.ts';
import { createMutant, type Mutation } from '../support/mutant.ts';

const ROUNDS = process.env['TOLLGATE_DEEP'] === '1' ? 40 : 1;
/** The child ends here where its step did not come. */
const ACKNOWLEDGEMENTS = 100_000;

const WRITER = 'src/store/log/writer.ts';
const FOLLOW = 'src/store/log/follow.ts';
const kill = (chance: number) => `if (Math.random() < ${chance}) process.kill(process.pid, 'SIGKILL');`;

/** The text before which, or after which, the process is killed now and then. */
const before = (file: string, find: string, chance: number): Mutation => ({
  file,
  find,
  put: `${kill(chance)} ${find}`,
});
const after = (file: string, find: string, chance: number): Mutation => ({
  file,
  find,
  put: `${find} ${kill(chance)}`,
});

const WRITE = 'for (let sent = 0; sent < bytes.byteLength;)';
const FLUSH = 'await call((done) => fs.fdatasync(target, done));';
const APPLY = 'follower.apply(prepare, records);';
const MOVE = 'prepare(MOVE).run(last.position, last.n, last.hash);';
const FOLLOWED = 'head = { position: last.position, n: last.n, hash: last.hash };';
const BEGIN = "file = await open(path, 'wx', 0o600);";
const BEGUN = 'segment = head.position;\n    isSuspect = false;';
/** A segment of a few records. */
const SMALL: Mutation = {
  file: 'src/store/log/segments.ts',
  find: 'SEGMENT_BYTES = 64 * 1024 * 1024',
  put: 'SEGMENT_BYTES = 20_000',
};

const STEPS: readonly (readonly [step: string, mutations: readonly Mutation[]])[] = [
  ['before a record is written', [before(WRITER, WRITE, 0.02)]],
  ['between its write and its flush', [before(WRITER, FLUSH, 0.02)]],
  ['between its flush and the answer', [after(WRITER, FLUSH, 0.02)]],
  ['before the tables follow', [before(FOLLOW, APPLY, 0.5)]],
  ['while the tables follow', [after(FOLLOW, APPLY, 0.5)]],
  ['before the tables are committed', [after(FOLLOW, MOVE, 0.5)]],
  ['after the tables are committed', [before(FOLLOW, FOLLOWED, 0.5)]],
  ['before a segment is begun', [SMALL, before(WRITER, BEGIN, 0.3)]],
  ['after a segment is made', [SMALL, after(WRITER, BEGIN, 0.3)]],
  ['after a segment is begun', [SMALL, after(WRITER, BEGUN, 0.3)]],
];

/** Steps of the next start, after a kill that left something to replay. */
const REPLAYS: readonly (readonly [step: string, mutation: Mutation])[] = [
  ['before it is applied', before(FOLLOW, APPLY, 1)],
  ['while it is applied', after(FOLLOW, APPLY, 1)],
  ['after it is committed', before(FOLLOW, FOLLOWED, 1)],
];

let home: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'tollgate-steps-'));
});
afterAll(() => rmSync(home, { recursive: true }));

type Run = Awaited<ReturnType<typeof runKilled>>;

async function runMutant(mutations: readonly Mutation[], dataDir: string, round: string): Promise<Run> {
  const mutant = createMutant(mutations);
  try {
    const child = mutant.path('test/support/crash-child.ts');
    const log = join(home, 'told.log');
    const run = await runKilled({ child, dataDir, round, acknowledgements: ACKNOWLEDGEMENTS, log });
    expect(run.signal).toBe('SIGKILL');
    expect(run.count).toBeLessThan(ACKNOWLEDGEMENTS);
    return run;
  } finally {
    mutant.dispose();
  }
}

async function expectAllThere(dataDir: string, told: Run['told']): Promise<void> {
  const database = await openDatabase({ dataDir });
  const ledger = await createLedger({ database });
  expect(await contradictedBy(ledger, told)).toEqual([]);
  expect((await audit(database)).checks.filter(({ ok }) => !ok)).toEqual([]);
  await ledger.close();
  await database.close();
}

describe('a process that is killed', () => {
  test.each(STEPS)('%s loses nothing', { timeout: 600_000 }, async (_, mutations) => {
    const dataDir = mkdtempSync(join(home, 'data-'));
    for (let round = 0; round < ROUNDS; round += 1)
      await expectAllThere(dataDir, (await runMutant(mutations, dataDir, `r${round}`)).told);
  });

  test.each(REPLAYS)('again during the replay, %s, loses nothing', { timeout: 600_000 }, async (_, mutation) => {
    const dataDir = mkdtempSync(join(home, 'data-'));
    for (let round = 0; round < ROUNDS; round += 1) {
      const { told } = await runMutant([before(FOLLOW, APPLY, 1)], dataDir, `r${round}`);
      const again = await runMutant([mutation], dataDir, `again${round}`);
      expect(again.count).toBe(0);
      await expectAllThere(dataDir, told);
    }
  });
});
