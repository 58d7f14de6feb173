import { describe, expect, it, vi } from 'vitest';
import type { Database } from '#store';
import { ENGINES } from '../../support/engines.ts';
import { alice, completed, keyOf, MINUTE_MS, newTask, PRICE, tasksWorld, TTL_MS } from './tasks-world.ts';
import { countPolls, HANGS_MS, startWatch } from './watch-world.ts';

describe.each(ENGINES)('a task whose time is over, on %s', (engine) => {
  it('is free, and what was locked for it goes back', async () => {
    const { one, clock, lock, money, audited } = await tasksWorld(engine);
    const calls = [await lock(), await lock()];
    for (const call of calls) await one.tasks.begin(newTask('task-1'), call);
    const given: string[] = [];
    const polls = countPolls(() => completed);
    clock.now += TTL_MS;
    startWatch(one, clock, polls.poll, { onGivenUp: ({ taskId, live }) => given.push(`${taskId} ${live}`) });
    await vi.waitFor(() => expect(given).toEqual(['task-1 false']), { timeout: 60_000 });
    expect(polls.looked).toEqual([]);
    expect(one.ended).toEqual([['submitted', true]]);
    expect(one.concluded).toMatchObject([
      { outcome: 'free', flags: [] },
      { outcome: 'free', flags: [] },
    ]);
    expect(await money()).toEqual([1_000_000n, 0n, 0n]);
    for (const { callId } of calls) {
      const { detail, charged } = (await one.ledger.find(callId))!;
      expect(charged).toBe(0n);
      expect(JSON.parse(detail!)).toMatchObject({ outcome: 'free', finishReason: 'gave_up' });
    }
    await audited();
  });

  it('is not given up where a message came meanwhile', async () => {
    const { one, two, gatewayOn, clock, lock, money, audited } = await tasksWorld(engine);
    await one.tasks.begin(newTask('task-1'), await lock());
    clock.now += TTL_MS;
    expect(await two.tasks.begin(newTask('task-1'), null)).toBe('known');
    expect(await one.tasks.giveUp(keyOf('task-1'))).toBeNull();
    clock.now += TTL_MS;
    let came = false;
    const query: Database['query'] = async (statement, params) => {
      if (statement.name.endsWith('.endTask') && !came) {
        came = true;
        expect(await two.tasks.begin(newTask('task-1'), null)).toBe('known');
      }
      return one.database.query(statement, params);
    };
    expect(await gatewayOn({ ...one.database, query }).tasks.giveUp(keyOf('task-1'))).toBeNull();
    expect(came).toBe(true);
    await one.tasks.saw(keyOf('task-1'), completed);
    expect((await money()).slice(0, 2)).toEqual([1_000_000n - PRICE, 0n]);
    await audited();
  });

  it('is given up once by many gateways, and its end comes too late', async () => {
    const { one, two, clock, lock, money, audited } = await tasksWorld(engine);
    await one.tasks.begin(newTask('task-1'), await lock());
    clock.now += TTL_MS;
    const given = await Promise.all(
      Array.from({ length: 20 }, (_, index) => [one, two][index % 2]!.tasks.giveUp(keyOf('task-1'))),
    );
    expect(given.filter((task) => task !== null)).toHaveLength(1);
    expect((await two.tasks.saw(keyOf('task-1'), completed))!.settled).toMatchObject([{ settlement: { charged: 0n } }]);
    expect(await money()).toEqual([1_000_000n, 0n, 0n]);
    await audited();
  });

  it('is forgotten a while after its end, with its calls, and its id is free again', async () => {
    const { one, two, clock, lock, audited } = await tasksWorld(engine);
    for (const id of ['ended', 'live'])
      await one.tasks.begin(newTask(id, { ttlMs: 30 * 24 * 60 * MINUTE_MS }), await lock(id));
    await one.tasks.saw(keyOf('ended'), completed);
    const polls = countPolls(() => null);
    const day = 24 * 60 * MINUTE_MS;
    startWatch(two, clock, polls.poll, { retentionMs: 2 * day });
    // The watch keeps the lock of the task that runs.
    await vi.waitFor(
      async () => expect((await one.ledger.find('live'))!.expiresAt).toBeGreaterThan(clock.now + 30 * day),
      { timeout: HANGS_MS },
    );
    clock.now += day;
    await polls.reached(1);
    expect(await one.tasks.find(keyOf('ended'), alice)).not.toBeNull();
    clock.now += day;
    await vi.waitFor(async () => expect(await one.tasks.find(keyOf('ended'), alice)).toBeNull(), { timeout: 60_000 });
    expect(await one.tasks.find(keyOf('live'), alice)).not.toBeNull();
    expect(await one.tasks.begin(newTask('ended'), await lock())).toBe('begun');
    await audited();
  });

  it('goes on being settled by the watch where who saw its end broke off', async () => {
    const { one, two, gatewayOn, clock, lock, money, audited } = await tasksWorld(engine);
    const [first, second] = [await lock(), await lock()];
    for (const call of [first, second]) await one.tasks.begin(newTask('task-1'), call);
    const settlePendingCall = (id: string) =>
      id === first.callId
        ? one.ledger.release({ id, detail: '{}' }).then(() => null)
        : Promise.reject(new Error('killed'));
    await expect(gatewayOn(one.database, { settlePendingCall }).tasks.saw(keyOf('task-1'), completed)).rejects.toThrow(
      'killed',
    );
    const polls = countPolls(() => null);
    clock.now += MINUTE_MS;
    startWatch(two, clock, polls.poll);
    await vi.waitFor(() => expect(two.concluded.map(({ call }) => call.callId)).toEqual([second.callId]), {
      timeout: 60_000,
    });
    expect(polls.looked).toEqual([]);
    expect((await money()).slice(0, 2)).toEqual([1_000_000n - PRICE, 0n]);
    await audited();
  });
});
