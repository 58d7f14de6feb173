import { beforeEach, describe, expect, it } from 'vitest';
import type { OpenDatabase } from '#store';
import { audit, createLedger, createPriceBook } from '#billing/compose';
import { earningsOf, escrowOf, treasuryOf, type Ledger } from '#billing';
import { parseRates, priceId } from '#billing/amounts';
import { createEarnings, type EarningsEntry } from '../../../../src/console/pages/market/earnings.ts';
import { seeded } from '../../../gateway/call/routing/offers.ts';
import { ENGINES, openTestDatabase } from '../../../gateway/test-database.ts';

const DAY_MS = 86_400_000;
const FEE_BPS = 200;
const FIRST = 20_000;

interface Served {
  readonly provider: string;
  readonly service: string;
  readonly primitive?: string;
  readonly day: number;
  /** Micro-USD that a call costs. */
  readonly price?: number;
  readonly flags?: readonly string[];
  readonly usage?: boolean;
  readonly finishReason?: string;
}

describe.each(ENGINES)('earnings, by the ledger on %s', (engine) => {
  let database: OpenDatabase;
  let ledger: Ledger;
  let now = 0;
  let calls = 0;

  beforeEach(async () => {
    database = await openTestDatabase(engine);
    ledger = await createLedger({ database, now: () => now });
    await ledger.transfer({
      id: 'credit',
      from: treasuryOf('operator'),
      to: escrowOf('consumer'),
      amount: 1_000_000_000n,
      memo: '',
    });
  });

  /** Settles calls as billing does, those of one day together. */
  const serve = async (served: readonly Served[]) => {
    const prices = createPriceBook(database);
    for (const group of Map.groupBy(served, ({ day }) => day).values()) {
      now = group[0]!.day * DAY_MS + 1_000 + (calls % 7) * 3_600_000;
      await Promise.all(
        group.map(
          async ({
            provider,
            service,
            primitive = 'model',
            price = 100,
            flags = [],
            usage = true,
            finishReason = 'stop',
          }) => {
            const rates = parseRates({ call: price / 1e6 });
            const version = priceId(provider, service, rates);
            await prices.remember([{ id: version, provider, service, rates }]);
            const id = `gen-${engine}-${calls++}`;
            const lockDetail = JSON.stringify({ primitive, service, key: null, requestId: 'r', stream: false });
            await ledger.lock({
              id,
              account: 'consumer',
              amount: 1_000n,
              prices: [version],
              expiresAt: now + 60_000,
              detail: lockDetail,
            });
            await ledger.settle({
              id,
              price: version,
              provider,
              charge: usage ? BigInt(price) : 0n,
              draw: false,
              feeBps: FEE_BPS,
              usage: usage ? '{"call":1}' : '{}',
              detail: JSON.stringify({
                service,
                providerName: 'x',
                outcome: 'complete',
                finishReason,
                flags,
                attempts: 1,
                clientGone: false,
              }),
            });
          },
        ),
      );
    }
  };

  const sorted = (entries: readonly EarningsEntry[]) =>
    entries.toSorted((a, b) => a.day - b.day || (a.service + a.primitive! < b.service + b.primitive! ? -1 : 1));

  it('are told by day, service and primitive, net of the fee', async () => {
    await serve([
      { provider: 'p', service: 'small', day: FIRST },
      { provider: 'p', service: 'small', day: FIRST },
      { provider: 'p', service: 'small', day: FIRST, price: 300 },
      { provider: 'p', service: 'small', day: FIRST, primitive: 'tool' },
      { provider: 'p', service: 'large', day: FIRST, price: 1_000 },
      { provider: 'p', service: 'small', day: FIRST + 1 },
      { provider: 'p', service: 'small', day: FIRST + 3, price: 0 },
      { provider: 'other', service: 'small', day: FIRST, price: 777 },
    ]);
    const { entries, available, total } = await createEarnings(database)('p', { first: FIRST, last: FIRST + 1 });
    expect(sorted(entries)).toEqual([
      { day: FIRST, service: 'large', primitive: 'model', requests: 1, earned: 980n, flags: {} },
      { day: FIRST, service: 'small', primitive: 'model', requests: 3, earned: 98n + 98n + 294n, flags: {} },
      { day: FIRST, service: 'small', primitive: 'tool', requests: 1, earned: 98n, flags: {} },
      { day: FIRST + 1, service: 'small', primitive: 'model', requests: 1, earned: 98n, flags: {} },
    ]);
    expect([available, total]).toEqual([1_666n, 1_666n]);
    const later = await createEarnings(database)('p', { first: FIRST + 2, last: FIRST + 9 });
    expect(later.entries).toEqual([
      { day: FIRST + 3, service: 'small', primitive: 'model', requests: 1, earned: 0n, flags: {} },
    ]);
  });

  it('count a call without usage, with its flag and without a micro-USD', async () => {
    await serve([
      { provider: 'p', service: 's', day: FIRST, usage: false, flags: ['usage_missing'] },
      { provider: 'p', service: 's', day: FIRST, flags: ['usage_implausible', 'over_cap'] },
      { provider: 'p', service: 's', day: FIRST },
      // What a provider says of itself is text in the record, and no flag.
      { provider: 'p', service: 's', day: FIRST, finishReason: '","flags":["over_cap"],"x":"' },
      { provider: 'p', service: 's', day: FIRST, finishReason: 'over_cap' },
      { provider: 'p', service: 's', day: FIRST, flags: ['usage_missing'], usage: false, finishReason: '"flags":[]' },
    ]);
    const { entries, total } = await createEarnings(database)('p', { first: FIRST, last: FIRST });
    expect(entries).toEqual([
      {
        day: FIRST,
        service: 's',
        primitive: 'model',
        requests: 6,
        earned: 4n * 98n,
        flags: { usage_missing: 2, usage_implausible: 1, over_cap: 1 },
      },
    ]);
    expect(total).toBe(392n);
  });

  it('of all providers are what the ledger has paid to all, whatever the slices that are added up', async () => {
    const random = seeded(7);
    const pick = <T>(of: readonly T[]) => of[Math.floor(random() * of.length)]!;
    const served: Served[] = Array.from({ length: 400 }, () => {
      const missing = random() < 0.2;
      return {
        provider: pick(['a', 'b', 'c']),
        service: pick(['one', 'two']),
        primitive: pick(['model', 'agent']),
        day: FIRST + Math.floor(random() * 5),
        price: pick([0, 1, 39, 100, 999]),
        usage: !missing,
        flags: missing ? ['usage_missing'] : [],
      };
    });
    await serve(served);
    // What was paid out was earned all the same.
    await ledger.transfer({ id: 'payout', from: earningsOf('a'), to: treasuryOf('base'), amount: 500n, memo: '' });

    const report = await audit(database, { now: () => now });
    expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
    const range = { first: FIRST, last: FIRST + 365 };
    let available = 0n;
    let total = 0n;
    for (const provider of ['a', 'b', 'c']) {
      const whole = await createEarnings(database)(provider, range);
      const sliced = await createEarnings(database, { sliceCalls: 3 })(provider, range);
      expect(sorted(sliced.entries)).toEqual(sorted(whole.entries));
      const own = served.filter((call) => call.provider === provider);
      expect(whole.entries.reduce((sum, entry) => sum + entry.requests, 0)).toBe(own.length);
      expect(whole.entries.reduce((sum, { flags }) => sum + (flags['usage_missing'] ?? 0), 0)).toBe(
        own.filter(({ usage }) => !usage).length,
      );
      expect(whole.entries.reduce((sum, { earned }) => sum + earned, 0n)).toBe(whole.total);
      expect(whole.available).toBe((await ledger.balance(earningsOf(provider)))!.available);
      expect(whole.total - whole.available).toBe(provider === 'a' ? 500n : 0n);
      available += whole.available;
      total += whole.total;
    }
    expect(available).toBe(report.totals.earnings);
    expect(total).toBe(report.totals.charged - report.totals.fees);
  });

  it('of nobody are nothing', async () => {
    expect(await createEarnings(database)('nobody', { first: FIRST, last: FIRST + 365 })).toEqual({
      available: 0n,
      total: 0n,
      entries: [],
    });
  });

  it('asked for many times at once are read once, and a failed reading does not stop the next', async () => {
    let snapshots = 0;
    const earnings = createEarnings({
      snapshot(party, run) {
        if (snapshots++ === 0) return Promise.reject(new Error('away'));
        return database.snapshot(party, run);
      },
    });
    const range = { first: FIRST, last: FIRST };
    await expect(Promise.all([earnings('p', range), earnings('p', range)])).rejects.toThrow('away');
    await Promise.all(Array.from({ length: 20 }, () => earnings('p', range)));
    expect(snapshots).toBe(2);
  });
});
