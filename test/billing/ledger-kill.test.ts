import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { audit, createLedger } from '#billing/compose';
import { openDatabase } from '#store';
import { atThisLoad } from '../support/at-this-load.ts';
import { emptyDataDirectory } from '../support/data-directory.ts';
import { FLUSH_MODES } from '../support/flush-modes.ts';
import { contradictedBy, runKilled } from '../support/killed-child.ts';

const ROUNDS = process.env['TOLLGATE_DEEP'] === '1' ? 1_000 : 4;
const READY_MS_MAX = 3_000;

let dataDir: string;
beforeAll(() => {
  dataDir = emptyDataDirectory();
});
afterAll(() => rmSync(dataDir, { recursive: true }));

/** A database lives for a while and then a new one begins: what an audit reads, after every round, stays bounded. */
const folderIn = (mode: string, round: number) => join(dataDir, `${mode}-${Math.floor(round / 50)}`);

test.each(FLUSH_MODES)(
  '%s: nothing is lost when the process is killed that may not be',
  { timeout: 3_600_000 },
  async (mode, flushMs) => {
    const folderOf = (round: number) => folderIn(mode, round);
    const env = flushMs === null ? {} : { FLUSH_MS: `${flushMs}` };
    const readyMs: number[] = [];
    const log = join(dataDir, 'told.log');
    for (let round = 0; round < ROUNDS; round += 1) {
      const acknowledgements = 20 + Math.floor(Math.random() * 700);
      const run = { dataDir: folderOf(round), round: `r${round}`, acknowledgements, log, env };
      const { told, count, signal } = await runKilled(run);
      expect({ signal, count }).toEqual({ signal: 'SIGKILL', count: acknowledgements });
      const begun = performance.now();
      const database = await openDatabase({ dataDir: folderOf(round) });
      const ledger = await createLedger({ database });
      readyMs.push(performance.now() - begun);
      expect(await contradictedBy(ledger, told, flushMs ?? 0)).toEqual([]);
      const report = await audit(database);
      expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
      await ledger.close();
      await database.close();
    }
    expect(Math.max(...readyMs)).toBeLessThan(atThisLoad(READY_MS_MAX));
  },
);
