import { describe, expect, it } from 'vitest';
import type { Database } from '#store';
import type { ReportedUsage } from '#call';
import type { TaskCall } from '../../../src/gateway/tasks/task.ts';
import { ENGINES } from '../../support/engines.ts';
import { canceled, completed, ESTIMATE, keyOf, MINUTE_MS, newTask, PRICE, tasksWorld, working } from './tasks-world.ts';

const FUNDS = 1_000_000n;
const FEE = PRICE / 10n;
const paid = { charged: PRICE, fee: FEE, drawn: 0n, shortfall: 0n };
const nothing = { charged: 0n, fee: 0n, drawn: 0n, shortfall: 0n };

describe.each(ENGINES)('the calls of a task on %s', (engine) => {
  it('are settled once, at the first end that is seen, by fifty on two gateways at once; each is told the same', async () => {
    const { one, two, clock, lock, money, audited } = await tasksWorld(engine);
    const calls = [await lock(), await lock(), await lock()];
    for (const call of calls) await one.tasks.begin(newTask('task-1'), call);
    clock.now += MINUTE_MS;
    const seen = await Promise.all(
      Array.from({ length: 50 }, (_, index) => [one, two][index % 2]!.tasks.saw(keyOf('task-1'), completed)),
    );
    for (const each of seen) {
      expect(each!.task).toMatchObject({ live: false, state: 'completed' });
      expect(each!.settled).toEqual(calls.map(({ callId }) => ({ callId, settlement: paid })));
    }
    expect([...one.concluded, ...two.concluded].map(({ call }) => call.callId).toSorted()).toEqual(
      calls.map(({ callId }) => callId).toSorted(),
    );
    expect([...one.ended, ...two.ended]).toEqual([['completed', false]]);
    expect(await money()).toEqual([FUNDS - 3n * PRICE, 0n, 3n * (PRICE - FEE)]);
    await audited();
  });

  it('are all settled by the same end where several are seen at once', async () => {
    const { one, two, lock, money, audited } = await tasksWorld(engine);
    for (let n = 0; n < 4; n++) await one.tasks.begin(newTask('task-1'), await lock());
    const ends = Array.from({ length: 12 }, (_, index) => (index % 2 === 0 ? completed : canceled));
    const seen = await Promise.all(
      ends.map((end, index) => [one, two][(index >> 1) % 2]!.tasks.saw(keyOf('task-1'), end)),
    );
    expect(new Set(seen.map((each) => each!.task.state)).size).toBe(1);
    const charged = new Set(seen.flatMap((each) => each!.settled.map(({ settlement }) => settlement.charged)));
    expect([...charged]).toEqual([seen[0]!.task.state === 'completed' ? PRICE : 0n]);
    expect((await money())[1]).toBe(0n);
    await audited();
  });

  it('are each charged what the protocol says of it, and know which was the first', async () => {
    const { one, lock, audited } = await tasksWorld(engine);
    const calls = [await lock('call-a'), await lock('call-b'), await lock('call-c')];
    for (const call of calls) await one.tasks.begin(newTask('task-1'), call);
    const usageOf = ({ callId, price }: TaskCall, first: boolean): ReportedUsage => {
      expect(price).toBe(calls[0]!.price);
      expect(first).toBe(callId === 'call-a');
      return { usage: first ? { call: 2n, prompt: 9n } : { call: 0n }, flags: [] };
    };
    const { settled } = (await one.tasks.saw(keyOf('task-1'), { ...completed, usageOf }))!;
    expect(settled.map(({ callId, settlement }) => [callId, settlement.charged])).toEqual([
      ['call-a', 2n * PRICE],
      ['call-b', 0n],
      ['call-c', 0n],
    ]);
    expect((await one.ledger.find('call-a'))!.usage).toBe('{"prompt":9,"call":2}');
    await audited();
  });

  it('cost no more than was locked', async () => {
    const { one, lock, audited } = await tasksWorld(engine);
    await one.tasks.begin(newTask('task-1'), await lock());
    const { settled } = (await one.tasks.saw(keyOf('task-1'), {
      ...completed,
      usageOf: () => ({ usage: { call: 10n ** 30n }, flags: [] }),
    }))!;
    expect(settled[0]!.settlement).toMatchObject({ charged: ESTIMATE });
    expect(one.concluded[0]!.usage).toEqual({ call: 10n ** 30n });
    expect(await one.ledger.find(one.concluded[0]!.call.callId)).toMatchObject({ state: 'settled' });
    await audited();
  });

  it('cost no more than their own offer may, if more was locked for a dearer one', async () => {
    const { one, lock, audited } = await tasksWorld(engine);
    const most = ESTIMATE - 1n;
    await one.tasks.begin(newTask('task-1'), { ...(await lock()), most });
    const { settled } = (await one.tasks.saw(keyOf('task-1'), {
      ...completed,
      usageOf: () => ({ usage: { call: 10n }, flags: [] }),
    }))!;
    expect(settled[0]!.settlement).toMatchObject({ charged: most });
    await audited();
  });

  it('are free where the task failed by its own words', async () => {
    const { one, lock, money, audited } = await tasksWorld(engine);
    const call = await lock();
    await one.tasks.begin(newTask('task-1'), call);
    const { settled } = (await one.tasks.saw(keyOf('task-1'), {
      ...canceled,
      usageOf: () => ({ usage: { call: 1n }, flags: [] }),
    }))!;
    expect(settled).toEqual([{ callId: call.callId, settlement: nothing }]);
    expect(one.concluded).toMatchObject([{ outcome: 'free', usage: null, flags: [] }]);
    expect(await money()).toEqual([FUNDS, 0n, 0n]);
    await audited();
  });

  it('are free where their provider told no usage, which is held against it', async () => {
    const { one, clock, lock, money, audited } = await tasksWorld(engine);
    const call = await lock();
    await one.tasks.begin(newTask('task-1'), call);
    clock.now += 1_234;
    await one.tasks.saw(keyOf('task-1'), { ...completed, usageOf: () => ({ usage: null, flags: ['usage_missing'] }) });
    expect(one.concluded).toMatchObject([
      { outcome: 'complete', usage: null, flags: ['usage_missing'], providerName: 'Acme', durationMs: 1_234 },
    ]);
    expect(JSON.parse((await one.ledger.find(call.callId))!.detail!)).toEqual({
      service: 'acme/agent',
      providerName: 'Acme',
      outcome: 'complete',
      estimated: false,
      finishReason: 'completed',
      flags: ['usage_missing'],
      durationMs: 1_234,
    });
    expect(await money()).toEqual([FUNDS, 0n, 0n]);
    await audited();
  });

  it('are left to their own run where that is what sees the end, and settled for it where it died', async () => {
    const { one, two, lock, money, audited } = await tasksWorld(engine);
    const [first, own] = [await lock(), await lock('own')];
    for (const call of [first, own]) await one.tasks.begin(newTask('task-1'), call);
    const { task, settled } = (await one.tasks.saw(keyOf('task-1'), completed, 'own'))!;
    expect(task.live).toBe(false);
    expect(settled.map(({ callId }) => callId)).toEqual([first.callId]);
    expect(await one.ledger.find('own')).toMatchObject({ state: 'held' });
    await two.tasks.settleRest(keyOf('task-1'));
    expect(await one.ledger.find('own')).toMatchObject({ state: 'settled', charged: PRICE });
    expect((await money())[1]).toBe(0n);
    await audited();
  });

  it('that their own run has settled stay as they are', async () => {
    const { one, two, lock, audited } = await tasksWorld(engine);
    const own = await lock('own');
    await one.tasks.begin(newTask('task-1'), own);
    await one.tasks.saw(keyOf('task-1'), completed, 'own');
    await one.ledger.settle({
      id: 'own',
      price: own.price,
      provider: 'provider-a',
      charge: PRICE,
      draw: false,
      feeBps: 0,
      usage: '{"call":1}',
      detail: '{}',
    });
    expect((await two.tasks.saw(keyOf('task-1'), completed))!.settled).toEqual([
      { callId: 'own', settlement: { ...paid, fee: 0n } },
    ]);
    expect(two.concluded).toEqual([]);
    await audited();
  });

  it('are not settled again, and their task does not come back, whatever is seen after its end', async () => {
    const { one, two, clock, lock, money, audited } = await tasksWorld(engine);
    await one.tasks.begin(newTask('task-1'), await lock());
    const end = await one.tasks.saw(keyOf('task-1'), { ...completed, snapshot: '{"id":"task-1"}' });
    clock.now += MINUTE_MS;
    expect(await two.tasks.saw(keyOf('task-1'), working)).toEqual({ task: end!.task, settled: [] });
    expect(await two.tasks.saw(keyOf('task-1'), { ...canceled, snapshot: '{}' })).toEqual(end);
    expect(end!.task.snapshot).toBe('{"id":"task-1"}');
    expect(await money()).toEqual([FUNDS - PRICE, 0n, PRICE - FEE]);
    expect(await one.tasks.saw(keyOf('nobodys'), completed)).toBeNull();
    await audited();
  });

  it('wait while it goes on, of which is written what changed', async () => {
    const { one, clock, lock, money } = await tasksWorld(engine);
    await one.tasks.begin(newTask('task-1'), await lock());
    const begun = clock.now;
    clock.now += 1_000;
    expect(
      (await one.tasks.saw(keyOf('task-1'), { state: 'submitted', contextId: 'context-1', end: null }))!.task.updatedAt,
    ).toBe(begun);
    expect(await one.tasks.saw(keyOf('task-1'), { ...working, contextId: 'context-2' })).toMatchObject({
      task: { state: 'working', contextId: 'context-2', updatedAt: clock.now, live: true },
      settled: [],
    });
    clock.now += 1_000;
    expect((await one.tasks.saw(keyOf('task-1'), { ...working, contextId: null }))!.task).toMatchObject({
      contextId: 'context-2',
      updatedAt: clock.now - 1_000,
    });
    expect(await money()).toEqual([FUNDS - ESTIMATE, ESTIMATE, 0n]);
  });

  it('are all settled, also one that was added between the reading of them and the end', async () => {
    const { one, two, gatewayOn, lock, audited } = await tasksWorld(engine);
    const [first, late] = [await lock(), await lock()];
    await one.tasks.begin(newTask('task-1'), first);
    let added = false;
    const query: Database['query'] = async (statement, params) => {
      if (statement.name.endsWith('.endTask') && !added) {
        added = true;
        expect(await two.tasks.begin(newTask('task-1'), late)).toBe('known');
      }
      return one.database.query(statement, params);
    };
    const { settled } = (await gatewayOn({ ...one.database, query }).tasks.saw(keyOf('task-1'), completed))!;
    expect(settled).toEqual([first, late].map(({ callId }) => ({ callId, settlement: paid })));
    await audited();
  });

  it('that are added while the end is seen are either settled with it, or told that it is over', async () => {
    const { one, two, lock, money, audited } = await tasksWorld(engine);
    await one.tasks.begin(newTask('task-1'), await lock());
    const late = await Promise.all(Array.from({ length: 20 }, () => lock()));
    const [results] = await Promise.all([
      Promise.all(late.map((call, index) => [one, two][index % 2]!.tasks.begin(newTask('task-1'), call))),
      two.tasks.saw(keyOf('task-1'), completed),
    ]);
    const { settled } = (await one.tasks.saw(keyOf('task-1'), completed))!;
    const known = late.filter((_, index) => results[index] === 'known').map(({ callId }) => callId);
    expect(
      settled
        .map(({ callId }) => callId)
        .slice(1)
        .toSorted(),
    ).toEqual(known.toSorted());
    for (const [index, { callId }] of late.entries()) {
      const state = results[index] === 'known' ? 'settled' : 'held';
      expect(await one.ledger.find(callId)).toMatchObject({ state });
    }
    expect((await money())[1]).toBe(ESTIMATE * BigInt(results.filter((result) => result === 'over').length));
    await audited();
  });
});
