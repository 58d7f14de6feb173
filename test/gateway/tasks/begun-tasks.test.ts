import { describe, expect, it } from 'vitest';
import { ENGINES } from '../../support/engines.ts';
import {
  alice,
  bob,
  completed,
  ESTIMATE,
  FIRST_KEPT_MS,
  keyOf,
  MINUTE_MS,
  newTask,
  PRICE,
  tasksWorld,
  TTL_MS,
  working,
} from './tasks-world.ts';

const DAY_MS = 24 * 60 * MINUTE_MS;

describe.each(ENGINES)('a task that begins, on %s', (engine) => {
  it('is known to every gateway, and keeps the lock of its call beyond the call', async () => {
    const { one, two, clock, lock, audited } = await tasksWorld(engine);
    const call = await lock();
    expect(await one.tasks.begin(newTask('task-1'), call)).toBe('begun');
    const at = clock.now;
    expect(await two.tasks.find(keyOf('task-1'), alice)).toEqual({
      askedAt: at,
      sentBytes: 0,
      ...keyOf('task-1'),
      ...alice,
      offerId: 'agent/provider-a:acme/agent',
      provider: 'provider-a',
      contextId: 'context-1',
      state: 'submitted',
      live: true,
      output: false,
      notes: '{"revision":"1.0"}',
      snapshot: null,
      createdAt: at,
      updatedAt: at,
      expiresAt: at + TTL_MS,
    });
    expect(one.begun.map(({ taskId }) => taskId)).toEqual(['task-1']);
    expect(await one.ledger.find(call.callId)).toMatchObject({ state: 'held', isKept: true });
    clock.now = at + TTL_MS - 1;
    expect(await one.ledger.expire(clock.now)).toEqual([]);
    await audited();
  });

  it('takes more calls of its owner, and lasts longer with each, as do the locks of those before', async () => {
    const { one, two, clock, lock } = await tasksWorld(engine);
    const [first, second] = [await lock(), await lock()];
    await one.tasks.begin(newTask('task-1'), first);
    clock.now += TTL_MS - MINUTE_MS;
    expect(await two.tasks.begin(newTask('task-1'), second)).toBe('known');
    expect(two.begun).toEqual([]);
    const { expiresAt } = (await one.tasks.find(keyOf('task-1'), alice))!;
    expect(expiresAt).toBe(clock.now + TTL_MS);
    for (const { callId } of [first, second]) {
      const record = await one.ledger.find(callId);
      expect(record).toMatchObject({ isKept: true });
      expect(record!.expiresAt).toBeGreaterThanOrEqual(expiresAt);
    }
  });

  it('does not prolong the locks of all its calls with each message', async () => {
    const { one, gatewayOn, clock, lock } = await tasksWorld(engine);
    const kept: string[] = [];
    const keep = (id: string, until: number) => {
      kept.push(id);
      return one.ledger.keep(id, until);
    };
    const { tasks } = gatewayOn(one.database, { ledger: { ...one.ledger, keep } });
    for (let n = 0; n < 20; n++) {
      await tasks.begin(newTask('task-1'), await lock());
      clock.now += TTL_MS / 160;
    }
    // Of 20 messages within an eighth of the time.
    expect(kept).toHaveLength(20);
    clock.now += TTL_MS / 8;
    await tasks.begin(newTask('task-1'), null);
    expect(kept).toHaveLength(40);
    const { expiresAt } = (await tasks.find(keyOf('task-1'), alice))!;
    for (const id of kept) expect((await one.ledger.find(id))!.expiresAt).toBeGreaterThanOrEqual(expiresAt);
  });

  it('keeps the lock of a long task for an hour first, and then for its whole time', async () => {
    const { one, two, clock, lock, money, audited } = await tasksWorld(engine);
    const call = await lock();
    const [at, ttlMs] = [clock.now, DAY_MS];
    await one.tasks.begin(newTask('task-1', { ttlMs }), call);
    expect((await one.ledger.find(call.callId))!.expiresAt).toBe(at + FIRST_KEPT_MS);
    // The gateway that began it is gone. Another one prolongs its lock, once.
    clock.now += MINUTE_MS;
    expect(await two.tasks.keepShort(10)).toBe(1);
    const { expiresAt } = (await one.ledger.find(call.callId))!;
    expect(expiresAt).toBeGreaterThan(at + ttlMs);
    expect(await one.tasks.keepShort(10)).toBe(0);
    clock.now = at + ttlMs - MINUTE_MS;
    expect(await one.ledger.expire(clock.now)).toEqual([]);
    expect(await one.tasks.keepShort(10)).toBe(0);
    await two.tasks.saw(keyOf('task-1'), completed);
    expect((await money())[2]).toBe(PRICE - PRICE / 10n);
    await audited();
  });

  it('is in the way of its owner’s money for an hour if the gateway dies before it has stored it', async () => {
    const { one, two, gatewayOn, clock, lock, money, audited } = await tasksWorld(engine);
    const call = await lock();
    const dying = gatewayOn({ ...one.database, batch: () => Promise.reject(new Error('killed')) });
    await expect(dying.tasks.begin(newTask('task-1', { ttlMs: DAY_MS }), call)).rejects.toThrow('killed');
    expect(await two.tasks.keepShort(10)).toBe(0);
    expect(await one.ledger.expire(clock.now + FIRST_KEPT_MS - 1)).toEqual([]);
    clock.now += FIRST_KEPT_MS;
    expect(await two.ledger.expire(clock.now)).toEqual([call.callId]);
    expect((await money())[1]).toBe(0n);
    await audited();
  });

  it('has its lock prolonged only while it runs, the lock that ends first before the others', async () => {
    const { one, two, clock, lock } = await tasksWorld(engine);
    const calls = [await lock('first'), await lock('second'), await lock('over')];
    for (const call of calls) {
      await one.tasks.begin(newTask(`task-${call.callId}`, { ttlMs: DAY_MS }), call);
      clock.now += MINUTE_MS;
    }
    await one.tasks.saw(keyOf('task-over'), completed);
    const untilOf = async (id: string) => (await one.ledger.find(id))!.expiresAt;
    expect(await two.tasks.keepShort(1)).toBe(1);
    expect(await untilOf('first')).toBeGreaterThan(clock.now + FIRST_KEPT_MS);
    expect(await untilOf('second')).toBeLessThan(clock.now + FIRST_KEPT_MS);
    expect(await two.tasks.keepShort(10)).toBe(1);
    expect(await untilOf('second')).toBeGreaterThan(clock.now + FIRST_KEPT_MS);
  });

  it('goes on with a message that is paid already', async () => {
    const { one, clock, lock } = await tasksWorld(engine);
    await one.tasks.begin(newTask('task-1'), await lock());
    clock.now += MINUTE_MS;
    expect(await one.tasks.begin(newTask('task-1'), null)).toBe('known');
    expect((await one.tasks.find(keyOf('task-1'), alice))!.expiresAt).toBe(clock.now + TTL_MS);
  });

  it('cannot have the id of another owner’s or offer’s task, of which nothing changes', async () => {
    const { one, two, clock, lock, money } = await tasksWorld(engine);
    const mine = await lock();
    await one.tasks.begin(newTask('task-1'), mine);
    const before = await one.tasks.find(keyOf('task-1'), alice);
    clock.now += MINUTE_MS / 2;
    const bobs = await lock('bobs', 'bob');
    expect(await two.tasks.begin(newTask('task-1', { ...bob, state: 'working' }), bobs)).toBe('taken');
    const others = await lock('others');
    expect(
      await two.tasks.begin(
        newTask('task-1', { offerId: 'agent/provider-b:acme/agent', provider: 'provider-b' }),
        others,
      ),
    ).toBe('taken');
    expect(await one.tasks.find(keyOf('task-1'), alice)).toEqual(before);
    expect(await one.tasks.find(keyOf('task-1'), bob)).toBeNull();
    // Its end settles its own call alone.
    expect((await one.tasks.saw(keyOf('task-1'), completed))!.settled.map(({ callId }) => callId)).toEqual([
      mine.callId,
    ]);
    expect((await money('bob'))[1]).toBe(ESTIMATE);
    // Their own runs give their money back.
    for (const id of ['bobs', 'others'])
      expect(await one.ledger.release({ id, detail: '{}' })).toMatchObject({ ok: true });
    expect((await money('bob'))[1]).toBe(0n);
  });

  it('has its id in its service alone', async () => {
    const { one, lock } = await tasksWorld(engine);
    await one.tasks.begin(newTask('task-1'), await lock());
    expect(await one.tasks.begin(newTask('task-1', { ...bob, service: 'acme/other' }), await lock('bobs', 'bob'))).toBe(
      'begun',
    );
  });

  it('is over for a call that comes after its end, which its own run settles', async () => {
    const { one, two, lock } = await tasksWorld(engine);
    await one.tasks.begin(newTask('task-1'), await lock());
    await one.tasks.saw(keyOf('task-1'), completed);
    const late = await lock('late');
    expect(await two.tasks.begin(newTask('task-1'), late)).toBe('over');
    expect(await one.ledger.find('late')).toMatchObject({ state: 'held' });
    expect((await one.tasks.saw(keyOf('task-1'), completed))!.settled).toHaveLength(1);
    expect((await one.tasks.find(keyOf('task-1'), alice))!.live).toBe(false);
  });

  it('is begun once by many at once, with the calls of all', async () => {
    const { one, two, lock, audited } = await tasksWorld(engine);
    const calls = await Promise.all(Array.from({ length: 20 }, () => lock()));
    const results = await Promise.all(
      calls.map((call, index) => [one, two][index % 2]!.tasks.begin(newTask('task-1'), call)),
    );
    expect(results.toSorted()).toEqual(['begun', ...Array<string>(19).fill('known')]);
    const { settled } = (await one.tasks.saw(keyOf('task-1'), completed))!;
    expect(settled.map(({ callId }) => callId).toSorted()).toEqual(calls.map(({ callId }) => callId).toSorted());
    await audited();
  });

  it('has hostile words in its texts', async () => {
    const { one } = await tasksWorld(engine);
    for (const taskId of ['', 'x'.repeat(257), 'a\0b', 'half \ud800'])
      await expect(one.tasks.begin(newTask(taskId), null)).rejects.toThrow(RangeError);
    for (const taskId of ["'; DROP TABLE tasks; --", '__proto__', '$1 %s ?', 'ä 😀', 'x'.repeat(256)]) {
      expect(await one.tasks.begin(newTask(taskId), null)).toBe('begun');
      expect(await one.tasks.find(keyOf(taskId), alice)).toMatchObject({ taskId });
    }
    await one.tasks.begin(newTask('task-1', { contextId: 'a\0b', state: 'x'.repeat(5_000) }), null);
    expect(await one.tasks.find(keyOf('task-1'), alice)).toMatchObject({ contextId: null, state: 'unknown' });
    expect((await one.tasks.saw(keyOf('task-1'), { ...working, contextId: 'y'.repeat(5_000) }))!.task).toMatchObject({
      contextId: null,
    });
  });
});
