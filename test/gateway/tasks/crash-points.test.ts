import { describe, expect, it } from 'vitest';
import { LedgerUnavailable } from '#billing';
import { DatabaseError, type Database } from '#store';
import { ENGINES } from '../../support/engines.ts';
import { alice, completed, keyOf, MINUTE_MS, newTask, PRICE, tasksWorld, TTL_MS } from './tasks-world.ts';

/**
 * The database as a gateway sees it that is killed after so many of its statements: none of the rest has an effect,
 * or an answer.
 */
function dyingAfter(database: Database, statements: number): Database {
  let left = statements;
  const alive = <T>(run: () => Promise<T>): Promise<T> => {
    left -= 1;
    return left >= 0 ? run() : Promise.reject(new DatabaseError('killed', { code: 'killed', unavailable: true }));
  };
  return {
    ...database,
    query: (...of) => alive(() => database.query(...of)),
    batch: (...of) => alive(() => database.batch(...of)),
  };
}

const TELL = { name: 'test/tell', text: 'SELECT 1 AS told' };
const OPEN = { name: 'test/open-task', text: 'SELECT task_id FROM tasks WHERE task_id = $1 AND open = 1' };

/** More than any of these takes. */
const STATEMENTS = 12;

describe.each(ENGINES)('a gateway that dies on %s', (engine) => {
  it('between any two steps of an end leaves what another settles, once', async () => {
    const { one, two, gatewayOn, lock, money, audited } = await tasksWorld(engine);
    let survived = 0;
    for (let statements = 0; statements < STATEMENTS; statements++) {
      const taskId = `task-${statements}`;
      const calls = [await lock(), await lock()];
      for (const call of calls) await one.tasks.begin(newTask(taskId), call);
      const dying = gatewayOn(dyingAfter(one.database, statements));
      const seen = await dying.tasks.saw(keyOf(taskId), completed).catch((error: unknown) => error);
      if (!(seen instanceof Error)) survived += 1;
      const { settled } = (await two.tasks.saw(keyOf(taskId), completed))!;
      expect(settled.map(({ callId, settlement }) => [callId, settlement.charged])).toEqual(
        calls.map(({ callId }) => [callId, PRICE]),
      );
      const told = [...dying.concluded, ...two.concluded].map(({ call }) => call.callId);
      for (const { callId } of calls) expect(told.filter((id) => id === callId)).toHaveLength(1);
    }
    // All its steps were cut, and at last none was.
    expect(survived).toBeGreaterThan(0);
    expect(survived).toBeLessThan(STATEMENTS - 3);
    expect((await money()).slice(0, 2)).toEqual([1_000_000n - 2n * BigInt(STATEMENTS) * PRICE, 0n]);
    await audited();
  });

  it('having seen the end needs no provider to say it again', async () => {
    const { one, two, gatewayOn, lock, audited } = await tasksWorld(engine);
    const calls = [await lock(), await lock()];
    for (const call of calls) await one.tasks.begin(newTask('task-1'), call);
    // It reads the task and its calls, notes the end, and is gone before anything is settled.
    const settlePendingCall = () => Promise.reject(new LedgerUnavailable('killed'));
    await expect(gatewayOn(one.database, { settlePendingCall }).tasks.saw(keyOf('task-1'), completed)).rejects.toThrow(
      LedgerUnavailable,
    );
    expect(await two.tasks.find(keyOf('task-1'), alice)).toMatchObject({ live: false, state: 'completed' });
    await two.tasks.settleRest(keyOf('task-1'));
    for (const { callId } of calls)
      expect(await one.ledger.find(callId)).toMatchObject({ state: 'settled', charged: PRICE });
    await audited();
  });

  it('in the middle of a task’s calls leaves those for another that it had not settled', async () => {
    const { one, two, gatewayOn, lock, audited } = await tasksWorld(engine);
    const calls = [await lock(), await lock(), await lock()];
    for (const call of calls) await one.tasks.begin(newTask('task-1'), call);
    const settlePendingCall = (id: string) =>
      id === calls[1]!.callId
        ? Promise.reject(new LedgerUnavailable('killed'))
        : one.ledger.release({ id, detail: '{}' }).then(() => null);
    await expect(gatewayOn(one.database, { settlePendingCall }).tasks.saw(keyOf('task-1'), completed)).rejects.toThrow(
      LedgerUnavailable,
    );
    await two.tasks.settleRest(keyOf('task-1'));
    expect(two.concluded.map(({ call }) => call.callId)).toEqual([calls[1]!.callId]);
    await audited();
  });

  it('before it keeps the lock of a task that begins leaves no task that nobody pays', async () => {
    const { one, two, gatewayOn, clock, lock, money, audited } = await tasksWorld(engine);
    const call = await lock();
    const keep = () => Promise.reject(new LedgerUnavailable('killed'));
    await expect(
      gatewayOn(one.database, { ledger: { ...one.ledger, keep } }).tasks.begin(newTask('task-1'), call),
    ).rejects.toThrow(LedgerUnavailable);
    expect(await two.tasks.find(keyOf('task-1'), alice)).toBeNull();
    clock.now += MINUTE_MS;
    expect(await one.ledger.expire(clock.now)).toEqual([call.callId]);
    expect((await money())[1]).toBe(0n);
    await audited();
  });

  it('before it notes a task that begins leaves a lock that its call gives back, or that expires', async () => {
    const { one, two, gatewayOn, clock, lock, money, audited } = await tasksWorld(engine);
    const [failed, died] = [await lock(), await lock()];
    const dying = gatewayOn(dyingAfter(one.database, 0));
    for (const call of [failed, died])
      await expect(dying.tasks.begin(newTask('task-1'), call)).rejects.toThrow(DatabaseError);
    expect(await two.tasks.find(keyOf('task-1'), alice)).toBeNull();
    expect(await one.ledger.release({ id: failed.callId, detail: '{}' })).toMatchObject({ ok: true });
    clock.now += 2 * TTL_MS;
    expect(await one.ledger.expire(clock.now)).toEqual([died.callId]);
    expect((await money())[1]).toBe(0n);
    await audited();
  });

  it('begins no task on a lock that has gone back meanwhile', async () => {
    const { one, clock, lock, audited } = await tasksWorld(engine);
    const call = await lock();
    clock.now += MINUTE_MS;
    expect(await one.ledger.expire(clock.now)).toEqual([call.callId]);
    await expect(one.tasks.begin(newTask('task-1'), call)).rejects.toThrow('expired before the provider began');
    expect(await one.tasks.find(keyOf('task-1'), alice)).toBeNull();
    await audited();
  });

  it('while it gives a task up leaves what another gives back, once', async () => {
    const { one, two, gatewayOn, clock, lock, money, audited } = await tasksWorld(engine);
    for (let statements = 0; statements < 6; statements++)
      await one.tasks.begin(newTask(`task-${statements}`), await lock());
    clock.now += TTL_MS;
    for (let statements = 0; statements < 6; statements++) {
      const taskId = `task-${statements}`;
      const dying = gatewayOn(dyingAfter(one.database, statements));
      await dying.tasks.giveUp(keyOf(taskId)).catch(() => {});
      await two.tasks.giveUp(keyOf(taskId));
      await two.tasks.settleRest(keyOf(taskId));
    }
    expect((await money()).slice(0, 2)).toEqual([1_000_000n, 0n]);
    await audited();
  });

  it('while it gives a task up leaves nobody untold: what it could not tell, another tells', async () => {
    const { one, gatewayOn, clock, lock, audited } = await tasksWorld(engine);
    /** It reads the task and its calls, notes the end, tells it, and closes the task. */
    const STEPS = 5;
    for (let statements = 0; statements <= STEPS; statements++)
      await one.tasks.begin(newTask(`task-${statements}`), await lock());
    clock.now += TTL_MS;
    for (let statements = 0; statements <= STEPS; statements++) {
      const taskId = `task-${statements}`;
      const told: string[] = [];
      // As a webhook is told: by what its gateway writes into the database.
      const gateway = (database: Database) =>
        gatewayOn(database, {
          sinks: [
            {
              async tellGivenUp(task) {
                const written = await database.query(TELL).catch(() => null);
                if (written !== null) told.push(task.taskId);
              },
            },
          ],
        });
      await gateway(dyingAfter(one.database, statements))
        .tasks.giveUp(keyOf(taskId))
        .catch(() => {});
      const other = gateway(one.database);
      await other.tasks.giveUp(keyOf(taskId));
      // As the watch does it for an ended task that is not closed.
      if ((await one.database.query(OPEN, [taskId])).length > 0) await other.tasks.settleRest(keyOf(taskId));
      expect(told, `after ${statements} statements`).toContain(taskId);
    }
    await audited();
  });
});
