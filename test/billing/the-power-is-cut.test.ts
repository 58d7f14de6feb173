import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { audit, createLedger } from '#billing/compose';
import { openDatabase } from '#store';
import { FLUSH_MODES } from '../support/flush-modes.ts';
import { contradictedBy, runKilled, type Told } from '../support/killed-child.ts';
import { makeLoopDisk, type LoopDisk } from '../support/loop-disk.ts';
import { createMutant } from '../support/mutant.ts';

const ROUNDS = process.env['TOLLGATE_DEEP'] === '1' ? 200 : 2;
/** Rounds in which a ledger that does not flush must have lost something. */
const CONTROL_ROUNDS = 5;
/** The child is ended before. */
const ACKNOWLEDGEMENTS = 10_000_000;
/** A database lives for a while and then a new one begins: what an audit reads stays bounded. */
const ROUNDS_OF_A_DATABASE = 20;

let home: string;
/** Null where nobody may mount: then there is nothing to ask. */
let disk: LoopDisk | null;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'tollgate-power-'));
  disk = makeLoopDisk();
});
afterAll(async () => {
  await disk?.dispose();
  rmSync(home, { recursive: true });
});

/** Locks and settles on the disk until the power is cut, at a random moment; returns what was told as done by then. */
async function runUntilCut(
  on: LoopDisk,
  dataDir: string,
  round: string,
  { child, env = {} }: { child?: string; env?: Readonly<Record<string, string>> } = {},
): Promise<Map<string, Told>> {
  const log = join(home, 'told.log');
  const enough = 1_000 + Math.floor(Math.random() * 60_000);
  // What is told after the cut does not count: a flush that is under way then may be said to have succeeded.
  let bytes = 0;
  let isCut = false;
  const { told } = await runKilled({
    ...(child === undefined ? {} : { child }),
    dataDir,
    round,
    env,
    acknowledgements: ACKNOWLEDGEMENTS,
    log,
    bytes: () => bytes,
    onStart: (process) => {
      const look = () => {
        if (process.exitCode !== null) return;
        bytes = statSync(log).size;
        if (bytes < enough) return void setTimeout(look, 5);
        try {
          on.cut();
          isCut = true;
        } finally {
          process.kill('SIGKILL');
        }
      };
      look();
    },
  });
  // By the signal, or by what it could not write any more.
  expect(isCut).toBe(true);
  on.restore();
  return new Map(told);
}

async function lostOf(dataDir: string, told: ReadonlyMap<string, Told>, flushMs = 0): Promise<readonly Told[]> {
  const database = await openDatabase({ dataDir });
  const ledger = await createLedger({ database });
  const lost = await contradictedBy(ledger, told, flushMs);
  expect((await audit(database)).checks.filter(({ ok }) => !ok)).toEqual([]);
  await ledger.close();
  await database.close();
  return lost;
}

test.each(FLUSH_MODES)(
  '%s: nothing is lost when the power is cut that may not be',
  { timeout: 3_600_000 },
  async (mode, flushMs) => {
    if (disk === null) return;
    for (let round = 0; round < ROUNDS; round += 1) {
      const dataDir = join(disk.folder, `${mode}-${Math.floor(round / ROUNDS_OF_A_DATABASE)}`);
      const env = flushMs === null ? {} : { FLUSH_MS: `${flushMs}` };
      const told = await runUntilCut(disk, dataDir, `r${round}`, { env });
      expect(await lostOf(dataDir, told, flushMs ?? 0)).toEqual([]);
      if (round % ROUNDS_OF_A_DATABASE === ROUNDS_OF_A_DATABASE - 1) rmSync(dataDir, { recursive: true });
    }
  },
);

test('without the flush something is lost, so that the test above can fail', { timeout: 600_000 }, async () => {
  if (disk === null) return;
  const mutant = createMutant([
    { file: 'src/foundation/store/log/ledger-log.ts', find: 'O_RDWR | O_DSYNC', put: 'O_RDWR' },
  ]);
  let isLost = false;
  for (let round = 0; round < CONTROL_ROUNDS && !isLost; round += 1) {
    const dataDir = join(disk.folder, `unflushed-${round}`);
    const told = await runUntilCut(disk, dataDir, `r${round}`, { child: mutant.path('test/support/crash-child.ts') });
    try {
      isLost = (await lostOf(dataDir, told)).length > 0;
    } catch {
      // The files do not fit each other any more.
      isLost = true;
    }
  }
  mutant.dispose();
  expect(isLost).toBe(true);
});
