import { describe, expect, it, vi } from 'vitest';
import type { Database } from '#store';
import { ENGINES } from '../../support/engines.ts';
import { alice, canceled, keyOf, newTask, PRICE, tasksWorld, TTL_MS, working, type Gateway } from './tasks-world.ts';
import { countPolls, startWatch } from './watch-world.ts';

const key = keyOf('task-1');
const output = { ...working, output: true };
const failed = { state: 'failed', end: 'free' } as const;

async function recordOf({ ledger }: Gateway, callId: string) {
  const { detail, charged } = (await ledger.find(callId))!;
  return { charged, ...(JSON.parse(detail!) as object) };
}

describe.each(ENGINES)('a task that has given output, on %s', (engine) => {
  it('costs each of its messages where it is stopped, on whatever gateway that is seen', async () => {
    const { one, two, lock, money, audited } = await tasksWorld(engine);
    const calls = [await lock(), await lock()];
    for (const call of calls) await one.tasks.begin(newTask('task-1'), call);
    expect((await one.tasks.find(key, alice))!.output).toBe(false);
    expect((await one.tasks.saw(key, output))!.task.output).toBe(true);
    // Another gateway, as after a restart.
    expect((await two.tasks.find(key, alice))!.output).toBe(true);
    await two.tasks.saw(key, canceled);
    expect((await money()).slice(0, 2)).toEqual([1_000_000n - 2n * PRICE, 0n]);
    expect(await recordOf(one, calls[0]!.callId)).toMatchObject({
      charged: PRICE,
      outcome: 'cut',
      finishReason: 'canceled',
      flags: [],
    });
    await audited();
  });

  it('costs as much where the end itself shows the output, and nothing where there was none', async () => {
    const { one, lock, money, audited } = await tasksWorld(engine);
    for (const taskId of ['with', 'without']) await one.tasks.begin(newTask(taskId), await lock());
    await one.tasks.saw(keyOf('with'), { ...canceled, output: true });
    await one.tasks.saw(keyOf('without'), canceled);
    expect((await money()).slice(0, 2)).toEqual([1_000_000n - PRICE, 0n]);
    await audited();
  });

  it('is free where it fails by its own words', async () => {
    const { one, lock, money, audited } = await tasksWorld(engine);
    await one.tasks.begin(newTask('task-1'), await lock());
    await one.tasks.saw(key, output);
    await one.tasks.saw(key, failed);
    expect((await money()).slice(0, 2)).toEqual([1_000_000n, 0n]);
    await audited();
  });

  it('costs its messages when its time is over', async () => {
    const { one, clock, lock, money, audited } = await tasksWorld(engine);
    const call = await lock();
    await one.tasks.begin(newTask('task-1'), call);
    await one.tasks.saw(key, { state: 'input-required', end: null, output: true });
    clock.now += TTL_MS;
    const given: string[] = [];
    startWatch(one, clock, countPolls(() => null).poll, { onGivenUp: ({ taskId }) => given.push(taskId) });
    await vi.waitFor(() => expect(given).toEqual(['task-1']), { timeout: 60_000 });
    await vi.waitFor(async () => expect((await money()).slice(0, 2)).toEqual([1_000_000n - PRICE, 0n]), {
      timeout: 60_000,
    });
    expect(await recordOf(one, call.callId)).toMatchObject({ charged: PRICE, outcome: 'cut', finishReason: 'gave_up' });
    await audited();
  });

  it('is noted once, however often it is seen', async () => {
    const { one, gatewayOn, lock, audited } = await tasksWorld(engine);
    await one.tasks.begin(newTask('task-1'), await lock());
    let writes = 0;
    const query: Database['query'] = (statement, params) => {
      if (statement.name.endsWith('.recordObservation')) writes += 1;
      return one.database.query(statement, params);
    };
    const { tasks } = gatewayOn({ ...one.database, query });
    for (let i = 0; i < 5; i++) await tasks.saw(key, output);
    await tasks.saw(key, { state: null, end: null, output: true });
    expect(writes).toBe(1);
    expect((await tasks.find(key, alice))!.state).toBe('working');
    await tasks.saw(key, canceled);
    await audited();
  });

  it('is paid where its output is noted while its end is', async () => {
    const { one, two, gatewayOn, lock, money, audited } = await tasksWorld(engine);
    await one.tasks.begin(newTask('task-1'), await lock());
    let came = false;
    const query: Database['query'] = async (statement, params) => {
      if (statement.name.endsWith('.endTask') && !came) {
        came = true;
        await two.tasks.saw(key, output);
      }
      return one.database.query(statement, params);
    };
    await gatewayOn({ ...one.database, query }).tasks.saw(key, canceled);
    expect(came).toBe(true);
    expect((await money()).slice(0, 2)).toEqual([1_000_000n - PRICE, 0n]);
    await audited();
  });
});
