import { afterEach, expect, test } from 'vitest';
import { audit, createLedger, createPriceBook } from '#billing/compose';
import { LedgerUnavailable, type Ledger } from '#billing';
import { openDatabase } from '#store';
import { atThisLoad } from '../support/at-this-load.ts';
import { CRASH_PRICE } from '../support/crash-price.ts';
import { contradictions, loadLedger } from '../support/ledger-load.ts';
import { askServer, cutOff, startAddress, startServer, startStandby, type Defer } from '../support/standby.ts';

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const PROMOTIONS = DEEP ? 50 : 2;
const GATEWAYS = 3;
/** Pairs of a lock and its end before a promotion, and as many at once for each gateway. */
const [PAIRS, WIDTH] = DEEP ? [300, 16] : [100, 8];
const BACK_MS_MAX = 10_000;

const disposals: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const dispose of disposals.splice(0).toReversed()) await dispose();
});

const defer: Defer = (dispose) => void disposals.push(dispose);

async function startLedger(url: string): Promise<Ledger> {
  const database = await openDatabase({ url, dataDir: '' });
  const ledger = await createLedger({ database });
  disposals.push(async () => {
    await ledger.close();
    await database.close();
  });
  return ledger;
}

test(
  'a synchronous standby takes over under load: nothing acknowledged is lost, and the gateways go on by themselves',
  { timeout: 1_800_000 },
  async () => {
    let primary = await startServer(defer);
    const address = await startAddress(primary, defer);
    const database = await openDatabase({ url: address.url, dataDir: '' });
    disposals.push(database.close);
    await createPriceBook(database).remember([CRASH_PRICE]);
    const ledgers = await Promise.all(Array.from({ length: GATEWAYS }, () => startLedger(address.url)));
    let isFinished = false;
    let pairs = 0;
    let waiting: { pairs: number; resolve: () => void } | undefined;
    const pairsMore = (count: number) => new Promise<void>((resolve) => (waiting = { pairs: pairs + count, resolve }));
    const onPair = () => {
      pairs += 1;
      if (waiting && pairs >= waiting.pairs) waiting.resolve();
    };
    const loads = ledgers.map((ledger, index) =>
      loadLedger(ledger, { width: WIDTH, prefix: `g${index}`, done: () => isFinished, onPair }),
    );
    const backMs: number[] = [];
    for (let round = 0; round < PROMOTIONS; round += 1) {
      const standby = await startStandby(primary, true, defer);
      await pairsMore(PAIRS);
      await primary.kill9();
      // Some find a standby at the address before it is the primary.
      if (round % 2 === 1) address.leadTo(standby);
      await standby.promote();
      // The one that is left is alone until it has a standby.
      await askServer(standby, 'ALTER SYSTEM RESET synchronous_standby_names');
      await askServer(standby, 'SELECT pg_reload_conf()');
      const begun = performance.now();
      address.leadTo(standby);
      await pairsMore(30);
      backMs.push(performance.now() - begun);
      primary = standby;
    }
    isFinished = true;
    for (const [index, load] of loads.entries()) {
      const { told, surprises } = await load;
      expect(surprises).toEqual([]);
      expect(await contradictions(ledgers[index]!, told)).toEqual([]);
    }
    const report = await audit(database);
    expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
    expect(Math.max(...backMs)).toBeLessThan(atThisLoad(BACK_MS_MAX));
  },
);

test('after a failover to a standby that lacks what was acknowledged, a running gateway writes nothing', async () => {
  const primary = await startServer(defer);
  const address = await startAddress(primary, defer);
  const ledger = await startLedger(address.url);
  const fund = (id: string) => ledger.transfer({ id, from: 'treasury:test', to: 'escrow:a', amount: 1_000n, memo: '' });
  await fund('before');
  const standby = await startStandby(primary, false, defer);
  await cutOff(standby, primary);
  expect(await fund('lost')).toMatchObject({ ok: true });
  await primary.kill9();
  await standby.promote();
  address.leadTo(standby);
  const refused = fund('after');
  await expect(refused).rejects.toThrow(LedgerUnavailable);
  await expect(refused).rejects.toThrow(
    /The database lacks operations that were acknowledged: the journal of this gateway ends with group 1, and had group 2/,
  );
  expect(await askServer(standby, 'SELECT count(*) AS n FROM transfers')).toEqual({ n: '1' });
  // A gateway that begins now has acknowledged nothing yet. Whether it may go on is asked at its start.
  expect(await (await startLedger(address.url)).balance('escrow:a')).toEqual({ available: 1_000n, locked: 0n });
});
