import { existsSync, readdirSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { verifyArchive } from '#billing/archive';
import { createLedger } from '#billing/compose';
import { escrowOf, type Ledger, registeredArchives } from '#billing';
import { adHoc } from '../../support/ad-hoc.ts';
import {
  aDay,
  archiveBefore,
  archiveFolder,
  createClock,
  dateOf,
  dayAt,
  faults,
  lock,
  openBooks,
  settlementOf,
  type Clock,
} from '../../support/archived-books.ts';
import { ENGINES, openEngine, type OpenedEngine } from '../../support/engines.ts';

describe.each(ENGINES)('the ledger on %s', (name) => {
  let engine: OpenedEngine;
  let place: ReturnType<typeof archiveFolder>;
  let clock: Clock;
  let ledger: Ledger;

  beforeEach(async () => {
    engine = await openEngine(name);
    place = archiveFolder();
    clock = createClock();
    ledger = await openBooks(engine.database, clock);
  });
  afterEach(async () => {
    expect(await faults(engine.database, [place.folder])).toEqual([]);
    await ledger.close();
    await engine.dispose();
    place.remove();
  });

  const count = async (table: string) =>
    Number((await engine.database.query(adHoc(`SELECT COUNT(*) AS n FROM ${table}`)))[0]!['n']);

  test('keeps balances, transfers and the newer calls, and has a proof of the rest', async () => {
    const old = [...(await aDay(ledger, clock, 0)), ...(await aDay(ledger, clock, 1))];
    const later = await aDay(ledger, clock, 40);
    const before = await ledger.balance(escrowOf('ada'));
    const transfers = await count('transfers');
    clock.at = dayAt(80);
    const { archive, path, name: file, state } = await archiveBefore(engine.database, place.folder, clock, 30);
    expect({ state, file }).toEqual({
      state: 'archived',
      file: `tollgate-archive-0001-before-${dateOf(30)}.jsonl.zst`,
    });
    expect(archive!.sums.calls).toBe(old.length);
    expect(await count('locks')).toBe(later.length);
    expect(await count('transfers')).toBe(transfers);
    expect(await ledger.balance(escrowOf('ada'))).toEqual(before);
    expect(await ledger.find(old[0]!)).toBeNull();
    expect((await ledger.find(later[0]!))?.state).toBe('settled');
    const proved = await verifyArchive(path);
    expect(proved.receipts).toBe(archive!.sums.settled);
    expect(readdirSync(place.folder)).toEqual([file]);
    const [registered] = await registeredArchives(engine.database.query);
    expect(registered).toMatchObject({ sha256: proved.sha256, droppedAt: clock.at, endsAt: dayAt(30) });
  });

  test('goes on with further calls and a further archive', async () => {
    await aDay(ledger, clock, 0);
    clock.at = dayAt(50);
    await archiveBefore(engine.database, place.folder, clock, 10);
    expect(await faults(engine.database, [place.folder])).toEqual([]);
    const second = await aDay(ledger, clock, 51);
    expect(await faults(engine.database, [place.folder])).toEqual([]);
    await aDay(ledger, clock, 100);
    clock.at = dayAt(120);
    const { archive } = await archiveBefore(engine.database, place.folder, clock, 60);
    expect(archive!.header).toMatchObject({ number: 2, begins_at: dayAt(10) });
    expect(archive!.sums.calls).toBe(second.length);
    await ledger.close();
    ledger = await createLedger({ database: engine.database, now: clock.now });
    await aDay(ledger, clock, 121);
  });

  test('archives nothing that is open, nor what hangs on it', async () => {
    clock.at = dayAt(1);
    const later = { expiresAt: dayAt(1_000) };
    const open = await lock(ledger, clock, 'ada', later);
    const run = await lock(ledger, clock, 'bob', { ...later, lendable: 900_000n });
    const under = await lock(ledger, clock, 'bob', { amount: 1_000n, parent: run, budgets: undefined });
    await ledger.settle(settlementOf(under));
    const done = await aDay(ledger, clock, 2);
    clock.at = dayAt(50);
    const first = await archiveBefore(engine.database, place.folder, clock, 10);
    expect(first.archive!.sums.calls).toBe(done.length);
    expect(first.archive!.openCalls).toEqual([under]);
    expect((await ledger.find(under))?.state).toBe('settled');
    expect(await faults(engine.database, [place.folder])).toEqual([]);
    await ledger.settle(settlementOf(open));
    await ledger.release({ id: run, detail: '{}' });
    expect(await faults(engine.database, [place.folder])).toEqual([]);
    await aDay(ledger, clock, 70);
    clock.at = dayAt(110);
    const second = await archiveBefore(engine.database, place.folder, clock, 60);
    expect(second.archive!.sums.calls).toBe(3);
    expect(await ledger.find(under)).toBeNull();
  });

  test('uses no id again', async () => {
    const old = await aDay(ledger, clock, 0);
    const [other] = [await lock(ledger, clock, 'bob', {}, 'an id of another form')];
    await ledger.release({ id: other, detail: '{}' });
    clock.at = dayAt(50);
    await archiveBefore(engine.database, place.folder, clock, 10);
    const fresh = await createLedger({ database: engine.database, now: clock.now });
    // The ids between this one and the next used one are known to be free from now on.
    const below = await lock(ledger, clock, 'ada', {}, 'an id');
    await ledger.release({ id: below, detail: '{}' });
    for (const one of [ledger, fresh])
      for (const id of [...old, other]) {
        await expect(lock(one, clock, 'ada', {}, id)).rejects.toThrow('duplicate');
        expect(await one.settle(settlementOf(id))).toMatchObject({ ok: false });
      }
    expect(
      await fresh.transfer({ id: 'credit:0', from: escrowOf('ada'), to: escrowOf('bob'), amount: 1n, memo: '' }),
    ).toMatchObject({
      ok: false,
      reason: 'duplicate',
    });
    const id = await lock(fresh, clock);
    await fresh.settle(settlementOf(id));
    await lock(fresh, clock, 'ada', {}, 'an id of another form 2').then((one) =>
      fresh.release({ id: one, detail: '{}' }),
    );
    await fresh.close();
  });

  test('does not archive the newest days, nor days twice, and says what it would do', async () => {
    await aDay(ledger, clock, 0);
    clock.at = dayAt(50);
    await expect(archiveBefore(engine.database, place.folder, clock, 16)).rejects.toThrow(
      `the latest day to archive before is ${dateOf(15)}, not ${dateOf(16)}`,
    );
    const plan = await archiveBefore(engine.database, place.folder, clock, 15, { dryRun: true });
    expect(plan).toMatchObject({ state: 'planned', archive: null });
    expect(existsSync(plan.path)).toBe(false);
    const kept = await archiveBefore(engine.database, place.folder, clock, 15, { keep: true });
    expect(kept.state).toBe('kept');
    expect(await count('archives')).toBe(0);
    const done = await archiveBefore(engine.database, place.folder, clock, 15);
    expect(done.archive!.sha256).toBe(kept.archive!.sha256);
    await expect(archiveBefore(engine.database, place.folder, clock, 15)).rejects.toThrow('is in an archive already');
  });
});
