import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { audit, createLedger } from '#billing/compose';
import { openDatabase } from '#store';
import { emptyDataDirectory } from '../support/data-directory.ts';
import { FLUSH_MODES } from '../support/flush-modes.ts';
import { contradictedBy, runKilled } from '../support/killed-child.ts';
import { createMutant, type Mutant, type Mutation } from '../support/mutant.ts';

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const ROUNDS = DEEP ? 40 : 1;
/** The child ends here where its step did not come. */
const ACKNOWLEDGEMENTS = 100_000;

const COMMIT = 'src/billing/ledger/ledger-sqlite.ts';
const WRITER = 'src/foundation/store/log/ledger-log.ts';
const FOLLOW = 'src/foundation/store/log/follow.ts';
/** One copy of the sources dies at all steps: what tells it at which is the environment of its process. */
const kill = (step: string, chance: number) =>
  `if (process.env['DIES'] === '${step}' && Math.random() < ${chance}) process.kill(process.pid, 'SIGKILL');`;

/** The text before which, or after which, the process is killed now and then. */
const before = (step: string, file: string, find: string, chance: number): Mutation => ({
  file,
  find,
  put: `${kill(step, chance)} ${find}`,
});
const after = (step: string, file: string, find: string, chance: number): Mutation => ({
  file,
  find,
  put: `${find} ${kill(step, chance)}`,
});

const WRITE = 'await writeAll(target, bytes, offset);';
const FILL = 'await writeAll(target, ZEROS, filled);';
const APPLY = 'follower.apply(prepare, records);';
const MOVE = 'prepare(SQL.moveLogPosition).run(last.position, last.n, last.hash);';
const FOLLOWED = 'head = { position: last.position, n: last.n, hash: last.hash };';
const BEGIN = 'file = await open(path, OPEN | O_CREAT | O_EXCL, 0o600);';
const BEGUN = 'segment = head.position;\n    filled = 0;';
/** A segment of a few records, where a step is one of segments. */
const SMALL: Mutation = {
  file: 'src/foundation/store/log/segments.ts',
  find: 'SEGMENT_BYTES = 64 * 1024 * 1024',
  put: "SEGMENT_BYTES = process.env['DIES']?.includes('segment') ? 20_000 : 64 * 1024 * 1024",
};

const DECIDED = 'this.memory.take(written);';
const ANSWERED_EARLY = 'submitted.resolve(result);\n      if (isWritten) this.#flushLater(operation);';
const ANSWERED_AT_ONCE = 'if (this.#take(at, decided.written)) this.#flushLater(operation);';
const COLLECTED = 'const payload = payloadOf(record);';

const STEPS: readonly (readonly [step: string, mutation: (step: string) => Mutation])[] = [
  ['after an operation is decided', (step) => after(step, COMMIT, DECIDED, 0.005)],
  ['after a lock is answered, before it is written', (step) => after(step, COMMIT, ANSWERED_EARLY, 0.005)],
  ['after a lock is answered without a promise of its own', (step) => after(step, COMMIT, ANSWERED_AT_ONCE, 0.005)],
  ['after a record is collected', (step) => before(step, COMMIT, COLLECTED, 0.02)],
  ['before a record is written', (step) => before(step, WRITER, WRITE, 0.02)],
  ['between its flush and the answer', (step) => after(step, WRITER, WRITE, 0.02)],
  ['before zeros are written ahead', (step) => before(step, WRITER, FILL, 0.5)],
  ['after zeros are written ahead', (step) => after(step, WRITER, FILL, 0.5)],
  ['before the tables follow', (step) => before(step, FOLLOW, APPLY, 0.5)],
  ['while the tables follow', (step) => after(step, FOLLOW, APPLY, 0.5)],
  ['before the tables are committed', (step) => after(step, FOLLOW, MOVE, 0.5)],
  ['after the tables are committed', (step) => before(step, FOLLOW, FOLLOWED, 0.5)],
  ['before a segment is begun', (step) => before(step, WRITER, BEGIN, 0.3)],
  ['after a segment is made', (step) => after(step, WRITER, BEGIN, 0.3)],
  ['after a segment is begun', (step) => after(step, WRITER, BEGUN, 0.3)],
];

/** With late ends of calls, in the everyday run only the steps of a write, where their order differs. */
const CASES = FLUSH_MODES.flatMap(([mode, flushMs]) =>
  STEPS.slice(0, DEEP || flushMs === null ? STEPS.length : 6).map(([step]) => [mode, step, flushMs] as const),
);

/** Steps of the next start, after a kill that left something to replay. */
const LEFT = 'with something left to replay';
const REPLAYS: readonly (readonly [step: string, mutation: (step: string) => Mutation])[] = [
  ['before it is applied', (step) => before(step, FOLLOW, APPLY, 1)],
  ['while it is applied', (step) => after(step, FOLLOW, APPLY, 1)],
  ['after it is committed', (step) => before(step, FOLLOW, FOLLOWED, 1)],
];

let home: string;
let mutant: Mutant;
beforeAll(() => {
  home = emptyDataDirectory();
  const steps = [...STEPS, ...REPLAYS].map(([step, mutation]) => mutation(step));
  mutant = createMutant([SMALL, before(LEFT, FOLLOW, APPLY, 1), ...steps]);
});
afterAll(() => {
  mutant.dispose();
  rmSync(home, { recursive: true });
});

type Run = Awaited<ReturnType<typeof runKilled>>;

async function runUntil(step: string, dataDir: string, round: string, flushMs: number | null = null): Promise<Run> {
  const child = mutant.path('test/support/crash-child.ts');
  const log = join(home, 'told.log');
  const env = { DIES: step, ...(flushMs === null ? {} : { FLUSH_MS: `${flushMs}` }) };
  const run = await runKilled({ child, dataDir, round, acknowledgements: ACKNOWLEDGEMENTS, log, env });
  expect(run.signal).toBe('SIGKILL');
  expect(run.count).toBeLessThan(ACKNOWLEDGEMENTS);
  return run;
}

async function expectAllThere(dataDir: string, told: Run['told'], flushMs: number | null = null): Promise<void> {
  const database = await openDatabase({ dataDir });
  const ledger = await createLedger({ database });
  expect(await contradictedBy(ledger, told, flushMs ?? 0)).toEqual([]);
  expect((await audit(database)).checks.filter(({ ok }) => !ok)).toEqual([]);
  await ledger.close();
  await database.close();
}

describe('a process that is killed', () => {
  test.each(CASES)('%s: %s loses nothing that may not be lost', { timeout: 600_000 }, async (_mode, step, flushMs) => {
    const dataDir = mkdtempSync(join(home, 'data-'));
    for (let round = 0; round < ROUNDS; round += 1)
      await expectAllThere(dataDir, (await runUntil(step, dataDir, `r${round}`, flushMs)).told, flushMs);
  });

  test.each(REPLAYS)('again during the replay, %s, loses nothing', { timeout: 600_000 }, async (step) => {
    const dataDir = mkdtempSync(join(home, 'data-'));
    for (let round = 0; round < ROUNDS; round += 1) {
      const { told } = await runUntil(LEFT, dataDir, `r${round}`);
      const again = await runUntil(step, dataDir, `again${round}`);
      expect(again.count).toBe(0);
      await expectAllThere(dataDir, told);
    }
  });
});
