import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { audit, createLedger, type LockRecord } from '#billing';
import { openDatabase } from '#store';
import { atThisLoad } from '../support/at-this-load.ts';

const ROUNDS = process.env['TOLLGATE_DEEP'] === '1' ? 1_000 : 10;
const READY_MS_MAX = 3_000;
const CHILD = join(import.meta.dirname, '../support/crash-child.ts');

let dataDir: string;
beforeAll(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'tollgate-kill-'));
});
afterAll(() => rmSync(dataDir, { recursive: true }));

interface Told {
  readonly id: string;
  readonly state: string;
  readonly charged: bigint;
}

/** A database lives for a while and then a new one begins: what an audit reads, after every round, stays bounded. */
const folderOf = (round: number) => join(dataDir, `data-${Math.floor(round / 50)}`);

/**
 * Runs the child until it has acknowledged `acknowledgements` operations and was killed; returns the last state it
 * told of each lock.
 */
async function killedRound(round: number, acknowledgements: number): Promise<Map<string, Told>> {
  const log = join(dataDir, 'told.log');
  const file = openSync(log, 'w');
  const child = spawn(process.execPath, [CHILD, folderOf(round), `r${round}`, `${acknowledgements}`], {
    stdio: ['ignore', file, 'inherit'],
  });
  const [, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  closeSync(file);
  expect(signal).toBe('SIGKILL');
  const lines = readFileSync(log, 'utf8').trimEnd().split('\n');
  expect(lines).toHaveLength(acknowledgements);
  return new Map(
    lines.map((line) => {
      const [state, id, charged] = line.split(' ') as [string, string, string];
      return [id, { id, state, charged: BigInt(charged) }];
    }),
  );
}

test('nothing that was acknowledged is lost when the process is killed', { timeout: 3_600_000 }, async () => {
  const readyMs: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const told = await killedRound(round, 20 + Math.floor(Math.random() * 700));
    const begun = performance.now();
    const database = await openDatabase({ dataDir: folderOf(round) });
    const ledger = await createLedger({ database });
    readyMs.push(performance.now() - begun);
    const records = await Promise.all([...told.keys()].map((id) => ledger.find(id)));
    // A lock that was told as held may have been resolved in the moment of the kill.
    const kept = (record: LockRecord | null, { state, charged }: Told) =>
      record !== null && (state === 'held' || (record.state === state && record.charged === charged));
    expect([...told.values()].filter((each, index) => !kept(records[index]!, each))).toEqual([]);
    const report = await audit(database);
    expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
    await ledger.close();
    await database.close();
  }
  expect(Math.max(...readyMs)).toBeLessThan(atThisLoad(READY_MS_MAX));
});
