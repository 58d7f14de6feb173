import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { audit, createLedger } from '#billing/compose';
import { openDatabase } from '#store';
import { atThisLoad } from '../support/at-this-load.ts';
import { emptyDataDirectory } from '../support/data-directory.ts';
import { contradictedBy, runKilled } from '../support/killed-child.ts';

const ROUNDS = process.env['TOLLGATE_DEEP'] === '1' ? 1_000 : 4;
const READY_MS_MAX = 3_000;

let dataDir: string;
beforeAll(() => {
  dataDir = emptyDataDirectory();
});
afterAll(() => rmSync(dataDir, { recursive: true }));

/** A database lives for a while and then a new one begins: what an audit reads, after every round, stays bounded. */
const folderOf = (round: number) => join(dataDir, `data-${Math.floor(round / 50)}`);

test('nothing that was acknowledged is lost when the process is killed', { timeout: 3_600_000 }, async () => {
  const readyMs: number[] = [];
  const log = join(dataDir, 'told.log');
  for (let round = 0; round < ROUNDS; round += 1) {
    const acknowledgements = 20 + Math.floor(Math.random() * 700);
    const run = { dataDir: folderOf(round), round: `r${round}`, acknowledgements, log };
    const { told, count, signal } = await runKilled(run);
    expect({ signal, count }).toEqual({ signal: 'SIGKILL', count: acknowledgements });
    const begun = performance.now();
    const database = await openDatabase({ dataDir: folderOf(round) });
    const ledger = await createLedger({ database });
    readyMs.push(performance.now() - begun);
    expect(await contradictedBy(ledger, told)).toEqual([]);
    const report = await audit(database);
    expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
    await ledger.close();
    await database.close();
  }
  expect(Math.max(...readyMs)).toBeLessThan(atThisLoad(READY_MS_MAX));
});
