import { describe, expect, it, vi } from 'vitest';
import type { Database } from '#store';
import type { Observation } from '../../../src/gateway/tasks/task.ts';
import { adHoc } from '../../support/ad-hoc.ts';
import { ENGINES } from '../../support/engines.ts';
import { alice, completed, keyOf, newTask, PRICE, tasksWorld, working } from './tasks-world.ts';
import { countPolls, HANGS_MS, startWatch } from './watch-world.ts';

describe.each(ENGINES)('the watch of tasks on %s', (engine) => {
  it('looks at a task 2 s after it began, then ever more rarely, up to the longest pause', async () => {
    const { one, clock } = await tasksWorld(engine);
    await one.tasks.begin(newTask('task-1'), null);
    const polls = countPolls(() => null);
    const chance = { value: 0 };
    startWatch(one, clock, polls.poll, { lookMsMax: 10_000, random: () => chance.value });
    const pauses = [await untilNextPoll(one, clock)];
    for (let n = 1; n <= 6; n++) {
      clock.now += pauses.at(-1)!;
      await polls.reached(n);
      await released(one, clock);
      pauses.push(await untilNextPoll(one, clock));
    }
    expect(pauses).toEqual([2_000, 3_200, 5_120, 8_192, 10_000, 10_000, 10_000]);
    // What is left to chance makes a pause shorter, by a fifth at most.
    chance.value = 1;
    clock.now += 10_000;
    await polls.reached(7);
    await released(one, clock);
    expect(await untilNextPoll(one, clock)).toBe(8_000);
  });

  it('looks in the last part of the time of a task, and when its time is over', async () => {
    const { one, clock } = await tasksWorld(engine);
    await one.tasks.begin(newTask('task-1', { ttlMs: 2_400 }), null);
    await one.tasks.begin(newTask('task-2', { ttlMs: 1_500 }), null);
    const polls = countPolls(() => null);
    const given: string[] = [];
    startWatch(one, clock, polls.poll, { onGivenUp: ({ taskId }) => given.push(taskId) });
    clock.now += 1_500;
    await vi.waitFor(() => expect(given).toEqual(['task-2']), { timeout: HANGS_MS });
    clock.now += 500;
    await polls.reached(1);
    await released(one, clock);
    expect(await untilNextPoll(one, clock)).toBe(100);
    clock.now += 100;
    await polls.reached(2);
    await released(one, clock);
    expect(await untilNextPoll(one, clock)).toBe(300);
  });

  it('settles by the end that it sees', async () => {
    const { one, clock, lock, money, audited } = await tasksWorld(engine);
    await one.tasks.begin(newTask('task-1'), await lock());
    const polls = countPolls(() => completed);
    startWatch(one, clock, polls.poll);
    clock.now += 2_000;
    await vi.waitFor(() => expect(one.concluded).toHaveLength(1), { timeout: HANGS_MS });
    await vi.waitFor(
      async () =>
        expect(await one.tasks.find(keyOf('task-1'), alice)).toMatchObject({ live: false, state: 'completed' }),
      { timeout: HANGS_MS },
    );
    expect((await money()).slice(0, 2)).toEqual([1_000_000n - PRICE, 0n]);
    await audited();
  });

  it('looks again soon where a task was seen to change, by whatever path, also while it is looked at', async () => {
    const { one, two, clock } = await tasksWorld(engine);
    await one.tasks.begin(newTask('task-1'), null);
    const polls = countPolls(async () => {
      if (polls.looked.length === 6) await two.tasks.saw(keyOf('task-1'), working);
      return null;
    });
    startWatch(one, clock, polls.poll);
    for (let n = 1; n <= 6; n++) {
      clock.now += 60_000;
      await polls.reached(n);
      await released(one, clock);
    }
    expect(await untilNextPoll(one, clock)).toBe(2_000);
    clock.now += 2_000;
    await polls.reached(7);
    await released(one, clock);
    expect(await untilNextPoll(one, clock)).toBe(3_200);
    await two.tasks.saw(keyOf('task-1'), { state: 'input-required', end: null });
    expect(await untilNextPoll(one, clock)).toBe(2_000);
  });

  it('gives a look up that takes too long or throws, and tries again', async () => {
    const { one, clock } = await tasksWorld(engine);
    for (const id of ['throws', 'rejects']) await one.tasks.begin(newTask(id), null);
    const polls = countPolls(({ taskId }) => {
      if (taskId === 'throws') throw new Error('broken');
      return Promise.reject(new Error('broken'));
    });
    startWatch(one, clock, polls.poll);
    clock.now += 2_000;
    await polls.reached(2);
    await vi.waitFor(() => expect(polls.now).toBe(0), { timeout: HANGS_MS });
    await released(one, clock);
    clock.now += 60_000;
    await polls.reached(4);
  });

  it('asks no provider that is away, and looks soon after it has come back', async () => {
    const { one, clock } = await tasksWorld(engine);
    await one.tasks.begin(newTask('task-1'), null);
    const polls = countPolls(() => completed);
    let here = false;
    let asked = 0;
    startWatch(one, clock, polls.poll, {
      present: () => {
        asked += 1;
        return here;
      },
    });
    for (let n = 1; n <= 10; n++) {
      clock.now += 10_000;
      await vi.waitFor(() => expect(asked).toBe(n), { timeout: HANGS_MS });
      await released(one, clock);
    }
    expect(polls.looked).toEqual([]);
    here = true;
    clock.now += 10_000;
    await polls.reached(1);
  });

  it('looks at a task of another account before it has seen all that are due of one', async () => {
    const { one, clock } = await tasksWorld(engine);
    for (let n = 0; n < 120; n++)
      await one.tasks.begin(newTask(`greedy-${n}`, { service: `acme/agent-${n % 8}` }), null);
    clock.now += 1_000;
    await one.tasks.begin(newTask('patient', { account: 'bob', service: 'acme/other' }), null);
    clock.now += 60_000;
    const polls = countPolls(() => completed);
    startWatch(one, clock, polls.poll);
    await vi.waitFor(() => expect(polls.looked).toContain('patient'), { timeout: HANGS_MS });
    expect(polls.looked.indexOf('patient')).toBeLessThan(16);
  });

  it('has at most 16 looks at once, and 4 at the tasks of one offer', async () => {
    const { one, clock } = await tasksWorld(engine);
    for (let n = 0; n < 60; n++)
      await one.tasks.begin(
        newTask(`task-${n}`, { service: `acme/agent-${n % 6}`, offerId: `offer-${n < 40 ? 0 : n % 6}` }),
        null,
      );
    const held: (() => void)[] = [];
    let hold = true;
    const polls = countPolls(() =>
      hold ? new Promise<Observation>((resolve) => held.push(() => resolve(completed))) : completed,
    );
    startWatch(one, clock, polls.poll, { slowMs: 60_000 });
    clock.now += 2_000;
    await polls.reached(16);
    expect(polls.looked).toHaveLength(16);
    hold = false;
    for (const go of held) go();
    await vi.waitFor(() => expect(polls.looked).toHaveLength(60), { timeout: HANGS_MS });
    expect(polls.most).toEqual({ all: 16, offer: 4, task: 1 });
  });

  it('has places for others however many offers hang, each with many tasks that are due before', async () => {
    const { one, clock } = await tasksWorld(engine);
    for (let n = 0; n < 20; n++)
      await Promise.all(
        Array.from({ length: 10 }, (_, i) =>
          one.tasks.begin(newTask(`hangs-${n}-${i}`, { offerId: `hanging-${n}` }), null),
        ),
      );
    clock.now += 1;
    for (let n = 0; n < 3; n++) await one.tasks.begin(newTask(`good-${n}`, { offerId: 'good' }), null);
    const ended: string[] = [];
    const polls = countPolls(({ taskId, offerId }, signal) => {
      if (offerId === 'good') return completed;
      return new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          ended.push(taskId);
          resolve(null);
        });
      });
    });
    const watch = startWatch(one, clock, polls.poll, { slowMs: 10 });
    clock.now += 2_000;
    await vi.waitFor(() => expect(one.ended).toHaveLength(3), { timeout: HANGS_MS });
    expect(polls.most.offer).toBe(4);
    // All hang, each with as many as one offer may have: more than may be slow at once, so that some were ended.
    await vi.waitFor(() => expect(ended.length).toBeGreaterThanOrEqual(16), { timeout: HANGS_MS });
    await watch.close();
  });

  it('never looks at a task from two gateways at once', async () => {
    const { one, two, clock } = await tasksWorld(engine);
    for (let n = 0; n < 80; n++) await one.tasks.begin(newTask(`task-${n}`, { offerId: `offer-${n % 10}` }), null);
    let ends = false;
    const polls = countPolls(async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return ends ? completed : null;
    });
    startWatch(one, clock, polls.poll);
    startWatch(two, clock, polls.poll);
    for (const pause of [2_000, 3_200, 5_120]) {
      const before = polls.looked.length;
      clock.now += pause;
      await polls.reached(before + 80);
      await vi.waitFor(() => expect(polls.now).toBe(0), { timeout: HANGS_MS });
      await released(one, clock);
      // Each was looked at once.
      expect(new Set(polls.looked.slice(before)).size).toBe(80);
      expect(polls.looked).toHaveLength(before + 80);
    }
    ends = true;
    clock.now += 10_000;
    await vi.waitFor(() => expect(one.ended.length + two.ended.length).toBe(80), { timeout: HANGS_MS });
    expect(polls.most.task).toBe(1);
  });

  it('takes over what a gateway that died was looking at', async () => {
    const { one, two, clock } = await tasksWorld(engine);
    await one.tasks.begin(newTask('task-1'), null);
    const silent = countPolls(() => new Promise(() => {}));
    const dead = startWatch(
      { ...one, database: { ...one.database, batch: () => Promise.reject(new Error('dead')) } },
      clock,
      silent.poll,
    );
    clock.now += 2_000;
    await silent.reached(1);
    await dead.close();
    const polls = countPolls(() => completed);
    startWatch(two, clock, polls.poll);
    await two.tasks.begin(newTask('task-2'), null);
    clock.now += 14_000;
    await polls.reached(1);
    clock.now += 1_000;
    await polls.reached(2);
    expect(polls.looked).toEqual(['task-2', 'task-1']);
  });

  it('goes on at once with what its own process left, where nobody else has the database', async () => {
    const { one, clock } = await tasksWorld(engine);
    await one.tasks.begin(newTask('task-1'), null);
    const silent = countPolls(() => new Promise(() => {}));
    const dead = startWatch(
      { ...one, database: { ...one.database, batch: () => Promise.reject(new Error('dead')) } },
      clock,
      silent.poll,
    );
    clock.now += 2_000;
    await silent.reached(1);
    await dead.close();
    const polls = countPolls(() => completed);
    startWatch(one, clock, polls.poll, { alone: true });
    await polls.reached(1);
  });

  it('stops at once when it is closed, and leaves what it looked at to others', async () => {
    const { one, two, clock } = await tasksWorld(engine);
    for (let n = 0; n < 6; n++) await one.tasks.begin(newTask(`task-${n}`), null);
    const aborted: boolean[] = [];
    const silent = countPolls(
      (_task, signal) => new Promise(() => signal.addEventListener('abort', () => aborted.push(true))),
    );
    const watch = startWatch(one, clock, silent.poll);
    clock.now += 2_000;
    await silent.reached(4);
    await watch.close();
    expect(aborted).toHaveLength(4);
    const polls = countPolls(() => completed);
    startWatch(two, clock, polls.poll);
    await polls.reached(6);
    expect(silent.looked).toHaveLength(4);
  });

  it('does not hear what a look sees after it was closed', async () => {
    const { one, clock, lock } = await tasksWorld(engine);
    await one.tasks.begin(newTask('task-1'), await lock());
    let say = (_observation: Observation) => {};
    const polls = countPolls(() => new Promise<Observation>((resolve) => (say = resolve)));
    const watch = startWatch(one, clock, polls.poll);
    clock.now += 2_000;
    await polls.reached(1);
    await watch.close();
    say(completed);
    for (let n = 0; n < 10; n++) expect(await one.tasks.find(keyOf('task-1'), alice)).toMatchObject({ live: true });
  });
});

const CLAIMED = adHoc('SELECT count(*) AS tasks FROM tasks WHERE open = 1 AND claimed_until > $1');

/** No task is claimed any more. */
async function released(
  { database }: { readonly database: Database },
  { now }: { readonly now: number },
): Promise<void> {
  await vi.waitFor(async () => expect(await database.query(CLAIMED, [now])).toEqual([{ tasks: 0n }]), {
    timeout: HANGS_MS,
  });
}

const NEXT_LOOK = adHoc('SELECT min(next_look_at) AS at FROM tasks WHERE open = 1');

async function untilNextPoll(
  { database }: { readonly database: Database },
  { now }: { readonly now: number },
): Promise<number> {
  return Number((await database.query(NEXT_LOOK))[0]!['at']) - now;
}
