import { performance } from 'node:perf_hooks';
import { describe, expect, it, vi } from 'vitest';
import { countLiveTasks } from '../../../src/gateway/tasks/create-tasks.ts';
import { ENGINES } from '../../support/engines.ts';
import { completed, newTask, PRICE, tasksWorld } from './tasks-world.ts';
import { countPolls, HANGS_MS, startWatch } from './watch-world.ts';
import { atThisLoad } from '../../support/at-this-load.ts';

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const TASKS = DEEP ? 1_000 : 160;
/** As many as there are connections, so that none waits for one. */
const AT_ONCE = 10;
/** A tick that took no more than a few tasks would need minutes. */
const LOOKED_AT_MS_MAX = 30_000;

describe.each(ENGINES)('after a restart on %s', (engine) => {
  it('tasks that went on are all looked at in one go, and settled once', async () => {
    const { one, two, clock, lock, money, audited } = await tasksWorld(engine);
    // Of one busy offer half of them: it is not asked for all at once, and the others do not wait for it.
    const offerOf = (n: number) => (n % 2 === 0 ? 'offer-0' : `offer-${n % 20}`);
    for (let from = 0; from < TASKS; from += AT_ONCE) {
      const begin = async (n: number) =>
        one.tasks.begin(newTask(`task-${n}`, { offerId: offerOf(n) }), await lock(`call-${n}`));
      await Promise.all(Array.from({ length: AT_ONCE }, (_, index) => begin(from + index)));
    }
    expect(await countLiveTasks(two.database)).toBe(TASKS);
    // The gateway that began them is gone; they have all been due for long.
    clock.now += 60_000;
    const polls = countPolls(() => completed);
    const started = performance.now();
    startWatch(two, clock, polls.poll, { tickMs: 500, alone: engine === 'sqlite' });
    await polls.reached(TASKS);
    expect(performance.now() - started).toBeLessThan(atThisLoad(LOOKED_AT_MS_MAX));
    expect(polls.most).toEqual({ all: expect.any(Number), offer: 4, task: 1 });
    expect(polls.most.all).toBeLessThanOrEqual(16);
    await vi.waitFor(() => expect(two.concluded).toHaveLength(TASKS), { timeout: HANGS_MS });
    expect(new Set(two.concluded.map(({ call }) => call.callId)).size).toBe(TASKS);
    expect(await countLiveTasks(two.database)).toBe(0);
    expect((await money()).slice(0, 2)).toEqual([1_000_000n - BigInt(TASKS) * PRICE, 0n]);
    await audited();
  });
});
