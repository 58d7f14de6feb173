import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { audit, createLedger, createPriceBook } from '#billing/compose';
import { escrowOf, treasuryOf, withCarried, type Budget, type Ledger } from '#billing';
import { budgetAt, LIMIT_RESETS, periodAt, type LimitReset, type SpendLimit } from '#accounts/names';
import type { OpenDatabase, Row, Statement, Value } from '#store';
import type { LockRequest } from '../../../src/billing/ledger/ledger.ts';
import { createAttempts } from '../../../src/gateway/auth/attempts.ts';
import { createKeyCallers } from '../../../src/gateway/auth/key-callers.ts';
import { createKeyStore } from '../../../src/gateway/auth/key-store.ts';
import { budgetName, type BudgetRule } from '../../../src/server/accounts/budgets.ts';
import { callerLimits } from '../../../src/server/accounts/caller-limits.ts';
import { createLimitsStore } from '../../../src/server/accounts/limits-store.ts';
import { createMemberStore } from '../../../src/server/accounts/member-store.ts';
import { adHoc } from '../../support/ad-hoc.ts';
import { CRASH_PRICE } from '../../support/crash-price.ts';
import { ENGINES, openEngine } from '../../support/engines.ts';

// A limit counts what calls that began in its period were charged and hold, whatever limits they were made with: the
// model knows the calls alone.

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const RUNS = DEEP ? { sqlite: 1_000, postgres: 300 } : { sqlite: 8, postgres: 3 };
/** No wait of these tests ends within half a minute of midnight. */
const NOON = Date.parse('2026-03-18T12:07:25Z');
const MINUTE = 60_000;
const DAY = 86_400_000;
/** The locks of the second gateway are in the tables so long after their time. */
const LATE_MS = 20_000;
const RESETS: readonly (LimitReset | null)[] = [...LIMIT_RESETS, null];

const MANY = adHoc(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < CAST($2 AS INTEGER))
  INSERT INTO locks (id, account, amount, prices, state, charged, fee, drawn, shortfall, created_at, expires_at, resolved_at, lock_detail)
  SELECT $1 || '-' || i, $1, 1, '[]', 'settled', 1, 0, 0, 0, $3, $3, $3, '{}' FROM n`);

const LIMITS = adHoc('SELECT subject FROM account_limits WHERE account = $1');

interface ModelCall {
  readonly id: string;
  readonly hash: string;
  readonly gateway: number;
  readonly at: number;
  /** What it holds, or was charged. */
  used: bigint;
  running: boolean;
}

const actions = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant('call' as const), key: fc.nat(1), gateway: fc.nat(1) }) },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('end' as const),
        which: fc.nat(20),
        charge: fc.integer({ min: -20, max: 50 }),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant('limit' as const),
        gateway: fc.nat(1),
        key: fc.nat(1),
        reset: fc.constantFrom(...RESETS, 'no limit' as const),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant('budgets' as const),
        gateway: fc.nat(1),
        subject: fc.constantFrom('account', 'operator', 'member'),
        resets: fc.subarray([...RESETS]),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant('wait' as const),
        ms: fc.constantFrom(
          0,
          1,
          400,
          999,
          1_500,
          MINUTE,
          8 * MINUTE,
          11 * MINUTE,
          15 * MINUTE,
          6 * 60 * MINUTE,
          DAY,
          3 * DAY,
          9 * DAY,
        ),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constant('enter' as const), key: fc.nat(1), gateway: fc.nat(1) }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('lock' as const) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const), gateway: fc.nat(1) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('check' as const), gateway: fc.nat(1) }) },
  ),
  { minLength: 20, maxLength: 40 },
);

describe.each(ENGINES)('%s', (engine) => {
  test('whatever is changed when, each limit has what was spent in its period, and leaves the rest', async () => {
    const opened = await openEngine(engine);
    const clock = { now: NOON };
    const now = () => clock.now;
    // On PostgreSQL two gateways. The embedded database has one, whose parts are made twice.
    const databases: readonly OpenDatabase[] = [
      opened.database,
      engine === 'postgres' ? await opened.again() : opened.database,
    ];
    await createPriceBook(opened.database).remember([CRASH_PRICE]);
    const ledgers: Ledger[] = [];
    for (const [index, database] of databases.entries())
      ledgers.push(await createLedger({ database, now: () => clock.now - index * LATE_MS }));
    const gatewayOf = (index: number) => {
      const database = databases[index]!;
      const keys = createKeyStore(database, { now });
      const limits = createLimitsStore(database, { now });
      const attempts = createAttempts({ perMinute: 10, now });
      const callers = createKeyCallers({ keys, limits, attempts, acceptDevelopmentKeys: false, now });
      return { keys, limits, callers, ledger: ledgers[index]! };
    };
    let run = 0;
    await fc.assert(
      fc.asyncProperty(actions, async (steps) => {
        run += 1;
        clock.now = NOON;
        const account = `tollgate:local:run-${run}`;
        const member = `tollgate:local:member-${run}`;
        const gateways = [gatewayOf(0), gatewayOf(1)];
        const { keys, limits } = gateways[0]!;
        const members = createMemberStore(opened.database, { keys, limits, now });
        await members.add({ account, member, role: 'member', name: 'm' });
        const made = [
          (await keys.create({ account, label: 'own', kind: 'live' }))!.record.hash,
          (await keys.create({ account, label: 'of a member', kind: 'live', member }))!.record.hash,
        ];
        await ledgers[0]!.transfer({
          id: `fund-${run}`,
          from: treasuryOf('test'),
          to: escrowOf(account),
          amount: 10n ** 12n,
          memo: '',
        });
        const calls: ModelCall[] = [];
        /** Somebody who was let in and has not made a lock yet. */
        let waiting: { at: number; hash: string; gateway: number; budgets: readonly Budget[] } | null = null;

        const usedOf = (of: (call: ModelCall) => boolean, reset: LimitReset | null) => {
          const start = reset === null ? 0 : periodAt(reset, clock.now).start;
          return calls.filter((call) => of(call) && call.at >= start).reduce((sum, { used }) => sum + used, 0n);
        };
        const lock = async (hash: string, gateway: number, amount: bigint, budgets: readonly Budget[]) => {
          const id = `call-${run}-${calls.length}`;
          const expiresAt = clock.now + 90 * DAY;
          const prices = [CRASH_PRICE.id];
          const result = await ledgers[gateway]!.lock({
            id,
            account,
            amount,
            prices,
            expiresAt,
            detail: '{}',
            budgets,
          });
          if (!result.ok) return { result, made: null };
          const one: ModelCall = { id, hash, gateway, at: clock.now - gateway * LATE_MS, used: amount, running: true };
          calls.push(one);
          return { result, made: one };
        };
        const call = async (hash: string, gateway: number, amount: bigint) => {
          const { budgets = [] } = await gateways[gateway]!.callers.callerOfHash(hash);
          return lock(hash, gateway, amount, budgets);
        };
        const end = async (one: ModelCall, charge: number) => {
          const { ledger } = gateways[one.gateway]!;
          if (charge < 0) await ledger.release({ id: one.id, detail: '{}' });
          else
            await ledger.settle({
              id: one.id,
              price: CRASH_PRICE.id,
              provider: 'p',
              charge: BigInt(charge),
              draw: false,
              feeBps: 0,
              usage: JSON.stringify({ call: charge }),
              detail: '{}',
            });
          one.running = false;
          one.used = BigInt(Math.max(0, charge));
        };

        /** Each limit that is set, with the calls that the model counts in it. */
        const everyLimit = async (gateway: number) => {
          const { keys, limits } = gateways[gateway]!;
          const found: { name: string; limit: SpendLimit; of: (call: ModelCall) => boolean }[] = [];
          for (const hash of made) {
            const record = (await keys.find(hash))!;
            if (record.limit !== null) found.push({ name: hash, limit: record, of: (one) => one.hash === hash });
          }
          for (const { subject, limits: set } of await limits.limitsOf(account))
            for (const limit of set.budgets)
              found.push({
                name: budgetName(account, subject),
                limit,
                of: (one) => subject !== member || one.hash === made[1],
              });
          return found;
        };
        const compare = async (gateway: number, isMeant: (name: string, limit: SpendLimit) => boolean = () => true) => {
          const all = (await everyLimit(gateway)).filter(({ name, limit }) => isMeant(name, limit));
          for (const { name, limit, of } of all) {
            const { id, carried } = budgetAt(name, limit, clock.now);
            const { spent, locked } = withCarried(await ledgers[gateway]!.budget(id), carried);
            const held = usedOf((one) => of(one) && one.running, limit.limitReset);
            expect({ id, spent, locked }).toEqual({ id, spent: usedOf(of, limit.limitReset) - held, locked: held });
          }
          return all;
        };
        const check = async (gateway: number) => {
          // Beyond the time for which a gateway may go by what it knows.
          clock.now += MINUTE;
          const all = await compare(gateway);
          for (const hash of made) {
            const probe: ModelCall = { id: '', hash, gateway, at: clock.now, used: 0n, running: false };
            const rooms = all
              .filter(({ of }) => of(probe))
              .map(({ limit, of }) => limit.limit! - usedOf(of, limit.limitReset));
            if (rooms.length === 0) continue;
            const room = rooms.reduce((least, one) => (one < least ? one : least));
            expect((await call(hash, gateway, (room < 0n ? 0n : room) + 1n)).result).toMatchObject({
              reason: 'budget_exceeded',
            });
            if (room <= 0n) continue;
            await end((await call(hash, gateway, room)).made!, -1);
          }
        };

        for (const step of steps) {
          if (step.do === 'wait') clock.now += step.ms;
          else if (step.do === 'call') await call(made[step.key]!, step.gateway, 50n);
          else if (step.do === 'enter') {
            const [hash, gateway] = [made[step.key]!, step.gateway];
            const { budgets = [] } = await gateways[gateway]!.callers.callerOfHash(hash);
            waiting = { at: clock.now, hash, gateway, budgets };
          } else if (step.do === 'lock') {
            // It counts in the period in which it was let in, whose end is no matter of this test.
            const isToday = waiting !== null && new Date(waiting.at).getUTCDate() === new Date(clock.now).getUTCDate();
            if (waiting !== null && isToday && clock.now < waiting.at + 10 * MINUTE)
              await lock(waiting.hash, waiting.gateway, 50n, waiting.budgets);
            waiting = null;
          } else if (step.do === 'end') {
            const running = calls.filter((one) => one.running);
            if (running.length > 0) await end(running[step.which % running.length]!, step.charge);
          } else if (step.do === 'limit') {
            const hash = made[step.key]!;
            const limit = step.reset === 'no limit' ? null : 300n;
            const limitReset = step.reset === 'no limit' ? null : step.reset;
            const before = (await gateways[step.gateway]!.keys.find(hash))!;
            await gateways[step.gateway]!.keys.update(account, hash, { limit, limitReset });
            // What is changed is right at once.
            if ((before.limit === null ? null : before.limitReset) !== limitReset)
              await compare(step.gateway, (name) => name === hash);
          } else if (step.do === 'budgets') {
            const { limits } = gateways[step.gateway]!;
            const budgets = step.resets.map((limitReset): BudgetRule => ({
              limit: 500n,
              limitReset,
              limitSoft: false,
              notify: [],
            }));
            const subject = step.subject === 'member' ? member : step.subject;
            const before = (await limits.get(account, subject)).budgets.map(({ limitReset }) => limitReset);
            await limits.change(account, subject, { budgets });
            const changed = budgetName(account, subject);
            await compare(step.gateway, (name, { limitReset }) => name === changed && !before.includes(limitReset));
          } else if (step.do === 'restart') {
            gateways[step.gateway]!.callers.close();
            gateways[step.gateway] = gatewayOf(step.gateway);
          } else await check(step.gateway);
        }
        await check(0);
        for (const one of calls.filter(({ running }) => running)) await end(one, 7);
        await check(1);
        for (const { callers } of gateways) callers.close();
      }),
      { numRuns: RUNS[engine], ...(process.env['FC_SEED'] ? { seed: Number(process.env['FC_SEED']) } : {}) },
    );
    const report = await audit(opened.database, { overdueMs: null });
    expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
    for (const ledger of ledgers) await ledger.close();
    await opened.dispose();
  });

  test('what nothing changes any more is kept: it is not asked again, and read on from where it ends', async () => {
    const opened = await openEngine(engine);
    const clock = { now: NOON };
    const now = () => clock.now;
    const { database } = opened;
    await createPriceBook(database).remember([CRASH_PRICE]);
    const ledger = await createLedger({ database, now });
    const asked: string[] = [];
    const counted = {
      ...database,
      query: (statement: Statement, params?: readonly Value[]) => {
        asked.push(statement.text);
        return database.query(statement, params);
      },
    };
    let keys = createKeyStore(counted, { now });
    const account = 'tollgate:local:kept';
    await ledger.transfer({ id: 'fund', from: treasuryOf('test'), to: escrowOf(account), amount: 1_000n, memo: '' });
    const { hash } = (await keys.create({ account, label: 'k', kind: 'live', limit: 100n, limitReset: 'daily' }))!
      .record;
    const lock = async (id: string, run: Pick<LockRequest, 'lendable' | 'parent'> = {}) => {
      const { budgets = [] } = callerLimits(account, await keys.findWithLimits(hash), [], clock.now).parts;
      const request = { id, account, amount: 10n, prices: [CRASH_PRICE.id], expiresAt: clock.now + 90 * DAY };
      expect(await ledger.lock({ ...request, detail: '{}', budgets, ...run })).toMatchObject({ ok: true });
    };
    const settle = (id: string, charge: bigint) => {
      const request = { id, price: CRASH_PRICE.id, provider: 'p', charge, draw: false, feeBps: 0 };
      return ledger.settle({ ...request, usage: `{"call":${charge}}`, detail: '{}' });
    };
    const set = (limitReset: LimitReset) => keys.update(account, hash, { limitReset });
    const carried = async () => (await keys.findWithLimits(hash))!.carried;
    const budget = `${hash}:monthly-2026-03-01`;

    await lock('one');
    await lock('two');
    await settle('one', 4n);
    expect((await set('monthly'))!.carried).toEqual({ budget, spent: 4n, locked: 10n });
    clock.now += 15 * MINUTE;
    expect(await carried()).toEqual({ budget, spent: 4n, locked: 10n });
    await settle('two', 3n);
    clock.now += MINUTE;
    expect(await carried()).toEqual({ budget, spent: 7n, locked: 0n });
    // One look at the key for all calls of a second, as ever.
    for (const store of [keys, createKeyStore(counted, { now })]) {
      await store.findWithLimits(hash);
      asked.length = 0;
      expect((await store.findWithLimits(hash))!.carried).toMatchObject({ spent: 7n });
      expect(asked).toHaveLength(1);
    }
    await set('weekly');
    // A run that has lent to a call under it counts once, by its parts.
    await lock('three', { lendable: 10n });
    await lock('four', { parent: 'three' });
    await settle('four', 2n);
    keys = createKeyStore(counted, { now });
    clock.now += 1;
    expect((await set('monthly'))!.carried).toEqual({ budget, spent: 9n, locked: 8n });
    await ledger.release({ id: 'three', detail: '{}' });
    expect(asked.join()).toContain('carried_sums');
    // In the next period nobody asks: the limit had its period from the beginning.
    clock.now += 31 * DAY;
    asked.length = 0;
    expect(await carried()).toBeUndefined();
    expect(asked).toHaveLength(1);
    await ledger.close();
    await opened.dispose();
  });

  test('a call under calls counts in the period of the first of them', async () => {
    const opened = await openEngine(engine);
    const clock = { now: NOON };
    const now = () => clock.now;
    const { database } = opened;
    const ledger = await createLedger({ database, now });
    const limits = createLimitsStore(database, { now });
    const account = 'tollgate:local:nested';
    await ledger.transfer({ id: 'fund', from: treasuryOf('test'), to: escrowOf(account), amount: 1_000n, memo: '' });
    const lock = (id: string, run: Pick<LockRequest, 'lendable' | 'parent'>) =>
      ledger.lock({ id, account, amount: 10n, prices: [], expiresAt: NOON + 9 * DAY, detail: '{}', ...run });
    await lock('first', { lendable: 10n });
    await lock('under it', { lendable: 10n, parent: 'first' });
    clock.now += DAY;
    await lock('under both', { parent: 'under it' });
    const set = (limitReset: LimitReset) =>
      limits.change(account, 'account', { budgets: [{ limit: 9n, limitReset, limitSoft: false, notify: [] }] });
    expect((await set('daily')).budgets[0]!.carried).toBeUndefined();
    expect((await set('weekly')).budgets[0]!.carried).toMatchObject({ spent: 0n, locked: 10n });
    await lock('second', { lendable: 10n });
    await lock('under the second', { parent: 'second' });
    expect((await set('daily')).budgets[0]!.carried).toMatchObject({ spent: 0n, locked: 10n });
    await ledger.close();
    await opened.dispose();
  });

  test('an account with many calls is read beside the writers, before its limit changes', async () => {
    const opened = await openEngine(engine);
    const { database } = opened;
    /** Limits that were set when a snapshot was asked for. */
    const limitsThen: (readonly Row[])[] = [];
    const snapshot: OpenDatabase['snapshot'] = async (...args) => {
      limitsThen.push(await database.query(LIMITS, ['tollgate:local:busy-5001']));
      return database.snapshot(...args);
    };
    const limits = createLimitsStore({ ...database, snapshot }, { now: () => NOON });
    const budgets: readonly BudgetRule[] = [{ limit: 9n, limitReset: 'weekly', limitSoft: false, notify: [] }];
    for (const count of [5_000, 5_001]) {
      const account = `tollgate:local:busy-${count}`;
      await database.query(MANY, [account, count, NOON - DAY]);
      const [budget] = (await limits.change(account, 'account', { budgets })).budgets;
      expect(budget!.carried).toMatchObject({ spent: BigInt(count) });
      // Another gateway reads on from there.
      const elsewhere = createLimitsStore({ ...database, snapshot }, { now: () => NOON + 1 });
      expect((await elsewhere.get(account, 'account')).budgets[0]!.carried).toEqual(budget!.carried);
    }
    // Before the change, so that no call waits for it.
    expect(limitsThen).toEqual([[]]);
    await opened.dispose();
  });
});
