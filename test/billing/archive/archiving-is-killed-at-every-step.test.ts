import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { createLedger } from '#billing/compose';
import { registeredArchives } from '#billing';
import { openDatabase, type OpenDatabase } from '#store';
import { aDay, createClock, dayAt, faults } from '../../support/archived-books.ts';
import { emptyDataDirectory } from '../../support/data-directory.ts';
import { BOTH_ENGINES } from '../../support/engines.ts';
import { freshDatabase } from '../../support/fresh-database.ts';
import { createMutant, type Mutant, type Mutation } from '../../support/mutant.ts';
import { someOf } from '../../support/some-of.ts';

const PERIOD = 'src/billing/archive/archive-period.ts';
const ROWS = 'src/billing/archive/archive-rows.ts';
const FILE = 'src/billing/archive/archive-file.ts';

const kill = (step: string, when = 'true') =>
  `if (process.env['DIES'] === '${step}' && (${when})) process.kill(process.pid, 'SIGKILL');`;
const before = (step: string, file: string, find: string, when?: string): Mutation => ({
  file,
  find,
  put: `${kill(step, when)}\n${find}`,
});
const after = (step: string, file: string, find: string): Mutation => ({ file, find, put: `${find}\n${kill(step)}` });

/** Small steps, so that each has several. */
const SMALL: readonly Mutation[] = [
  { file: ROWS, find: 'const STEP_LOCKS = 100;', put: 'const STEP_LOCKS = 4;' },
  { file: ROWS, find: 'const STEP_GROUPS = 100;', put: 'const STEP_GROUPS = 3;' },
  { file: ROWS, find: 'const STEP_ROWS = 200;', put: 'const STEP_ROWS = 2;' },
  { file: FILE, find: 'const PIECE_BYTES = 64 * 1024;', put: 'const PIECE_BYTES = 2_000;' },
  {
    file: 'src/foundation/store/log/segments.ts',
    find: 'SEGMENT_BYTES = 64 * 1024 * 1024',
    put: 'SEGMENT_BYTES = 3_000',
  },
];

const STEPS: readonly (readonly [step: string, mutation: (step: string) => Mutation])[] = [
  ['while the file is written', (step) => before(step, FILE, "if (text !== '') yield take();")],
  ['before the file is read back', (step) => before(step, PERIOD, 'const archive = await verifyArchive(draft, {')],
  ['before the file gets its name', (step) => before(step, PERIOD, 'await rename(draft, path);')],
  ['after the file got its name', (step) => after(step, PERIOD, 'await rename(draft, path);')],
  ['while its rows are staged', (step) => before(step, ROWS, 'await stage(SQL.stageSpending')],
  ['before it is registered', (step) => before(step, PERIOD, 'await registerArchive(database, {')],
  ['after it is registered', (step) => before(step, PERIOD, 'await drop(options, path, (await')],
  ['while calls are dropped', (step) => before(step, ROWS, 'onCalls(step.length);')],
  [
    'before groups are dropped',
    (step) => before(step, ROWS, 'for (const end of ends) await dropGroups(database, end, pace);'),
  ],
  [
    'while groups are dropped',
    (step) => before(step, ROWS, 'const to = Math.min(at + STEP_GROUPS, n);', "at >= Number(first?.['n'] ?? n)"),
  ],
  [
    'after the log is dropped',
    (step) => before(step, ROWS, 'await removeUnneeded(database, pace);\n  await database.query(SQL.noteDropped'),
  ],
  ['before the end is noted', (step) => before(step, ROWS, 'await database.query(SQL.noteDropped')],
];
/** These find the same text, so each has a copy of its own. */
const OVERLAPPING = 'before the end is noted';

let home: string;
let mutants: readonly Mutant[];
beforeAll(() => {
  home = emptyDataDirectory();
  const mutations = (steps: typeof STEPS) => [...SMALL, ...steps.map(([step, mutation]) => mutation(step))];
  mutants = [
    createMutant(mutations(STEPS.filter(([step]) => step !== OVERLAPPING && step !== 'after the file got its name'))),
    createMutant(mutations(STEPS.filter(([step]) => step === OVERLAPPING || step === 'after the file got its name'))),
  ];
});
afterAll(() => {
  for (const mutant of mutants) mutant.dispose();
  rmSync(home, { recursive: true });
});

const run = promisify(execFile);

/** The embedded database has its journal in the log. */
const OF_TABLES = 'while groups are dropped';

describe.each(BOTH_ENGINES)('an archive on %s', (engine) => {
  // By day each step on one of the engines.
  const steps = someOf(STEPS, 2, engine === 'postgres' ? 1 : 0);
  test.each(steps.filter(([step]) => engine === 'postgres' || step !== OF_TABLES))(
    'that is killed %s is the same after it is run again',
    { timeout: 300_000 },
    async (step) => {
      const fresh = engine === 'postgres' ? await freshDatabase(inject('postgresUrl')) : null;
      const place = fresh?.url ?? mkdtempSync(join(home, 'data-'));
      const folder = mkdtempSync(join(home, 'archives-'));
      const child = async (what: string, dies = '') => {
        const mutant = step === OVERLAPPING || step === 'after the file got its name' ? mutants[1]! : mutants[0]!;
        const program = mutant.path('test/support/archive-child.ts');
        const env = { ...process.env, DIES: dies };
        const ended = await run(process.execPath, [program, what, place, folder], { env }).catch(
          (error: unknown) => error as { signal: string | null; stdout: string; stderr: string },
        );
        return 'signal' in ended ? ended : { ...ended, signal: null };
      };
      const opened = async (use: (database: OpenDatabase) => Promise<void>) => {
        const database = await openDatabase(fresh ? { url: fresh.url, dataDir: '' } : { dataDir: place });
        try {
          await use(database);
        } finally {
          await database.close();
        }
      };
      await child('make');
      const { stdout: sha256 } = await child('keep');
      expect(sha256).toMatch(/^[0-9a-f]{64}$/);
      for (const name of readdirSync(folder)) rmSync(join(folder, name));
      const killed = await child('archive', step);
      expect(killed).toMatchObject({ signal: 'SIGKILL' });
      await opened(async (database) => {
        expect(await faults(database, [folder])).toEqual([]);
        // Calls go on before the run is repeated.
        const clock = createClock();
        const ledger = await createLedger({ database, now: clock.now });
        await aDay(ledger, clock, 81);
        await ledger.close();
        expect(await faults(database, [folder])).toEqual([]);
      });
      expect(await child('archive')).toMatchObject({ signal: null, stdout: sha256 });
      await opened(async (database) => {
        expect(await faults(database, [folder])).toEqual([]);
        const [archive, ...more] = await registeredArchives(database.query);
        expect(more).toEqual([]);
        expect(archive).toMatchObject({ sha256, droppedAt: dayAt(80) });
        expect(readdirSync(folder)).toEqual([archive!.name]);
        if (engine === 'sqlite') expect(readdirSync(join(place, 'ledger'))[0]).not.toMatch(/^0+\.log/);
      });
      await fresh?.drop();
    },
  );
});
