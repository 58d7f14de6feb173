import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { COMPARE_TEMPORARY, compareSums, createRollUp } from '#analytics';
import { audit } from '#billing/compose';
import { openDatabase } from '#store';
import { runKilled } from '../../support/killed-child.ts';

const ROUNDS = process.env['TOLLGATE_DEEP'] === '1' ? 200 : 4;
const CHILD = join(import.meta.dirname, '../../support/figures-child.ts');

let dataDir: string;
beforeAll(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'tollgate-figures-'));
});
afterAll(() => rmSync(dataDir, { recursive: true }));

const fail = (error: unknown): never => {
  throw error;
};
/** A database lives for a while and then a new one begins: an audit after every round stays short. */
const folderOf = (round: number) => join(dataDir, `data-${Math.floor(round / 20)}`);

test('whatever the roll-up was doing', { timeout: 3_600_000 }, async () => {
  const also = { temporary: COMPARE_TEMPORARY, check: compareSums };
  const log = join(dataDir, 'told.log');
  for (let round = 0; round < ROUNDS; round += 1) {
    const acknowledgements = 50 + Math.floor(Math.random() * 400);
    const folder = folderOf(round);
    const killed = await runKilled({ child: CHILD, dataDir: folder, round: `r${round}`, acknowledgements, log });
    expect(killed).toMatchObject({ signal: 'SIGKILL', count: acknowledgements });
    const database = await openDatabase({ dataDir: folder });
    const behind = await audit(database, { overdueMs: null, also });
    expect(behind.checks.filter(({ ok }) => !ok)).toEqual([]);
    const rollUp = createRollUp({ database, now: Date.now, everyMs: null, onError: fail });
    await rollUp.run();
    await rollUp.close();
    const { checks } = await audit(database, { overdueMs: null, also });
    expect(checks.at(-1)).toEqual({
      name: 'analytics',
      ok: true,
      detail: 'equal: the sums of the days are those of the ledger',
    });
    await database.close();
  }
});
