import { expect } from 'vitest';
import { expectError, expectRefused, refusedStream, workingTask, type Checks } from '../bench.ts';
import type { Stream } from '../client-calls.ts';

/** Subscribe to Task (§3.1.6, §3.5.2; 0.3 §7.9). */
export const subscribeChecks: Checks = {
  'SUB-01': async (bench) => {
    const id = await workingTask(bench);
    const stream = await bench.talk.subscribe(id);
    expect(await stream.next()).toMatchObject({ type: 'task', id, state: 'working' });
    bench.agent.finish(id);
    await stream.rest();
  },
  'SUB-02': async (bench) => {
    const id = await workingTask(bench);
    const stream = await bench.talk.subscribe(id);
    await joined(stream);
    bench.agent.progress(id, 'halfway ');
    bench.agent.finish(id);
    const rest = await stream.rest();
    expect(rest.some((event) => event.type === 'artifact')).toBe(true);
    expect(rest.at(-1)).toMatchObject({ type: 'status', state: 'completed' });
  },
  'SUB-03': async (bench) => {
    const { id } = await bench.talk.task('task x');
    expectError(await refusedStream(bench, 'SubscribeToTask', { id }), 'unsupportedOperation', bench);
  },
  'SUB-04': async (bench) => {
    expectError(await refusedStream(bench, 'SubscribeToTask', { id: 'no-such-task' }), 'taskNotFound', bench);
  },
  'SUB-05': async (bench) => {
    const id = await workingTask(bench);
    const [one, two] = await Promise.all([bench.talk.subscribe(id), bench.talk.subscribe(id)]);
    await joined(one);
    await joined(two);
    bench.agent.progress(id, 'a ');
    bench.agent.progress(id, 'b ');
    bench.agent.finish(id);
    const [first, second] = await Promise.all([one.rest(), two.rest()]);
    expect(second.map(({ raw }) => raw)).toEqual(first.map(({ raw }) => raw));
    expect(first.filter(({ type }) => type === 'artifact')).toHaveLength(3);
  },
  'SUB-06': async (bench) => {
    const id = await workingTask(bench);
    const [leaving, staying] = await Promise.all([bench.talk.subscribe(id), bench.talk.subscribe(id)]);
    await joined(leaving);
    await joined(staying);
    leaving.leave();
    bench.agent.progress(id, 'still here ');
    bench.agent.finish(id);
    const rest = await staying.rest();
    expect(rest.at(-1)).toMatchObject({ type: 'status', state: 'completed' });
  },
  'SUB-07': async ({ talk }) => {
    const { id } = await talk.task('task x');
    const reply = await talk.open('SubscribeToTask', { id });
    if (!('next' in reply)) return expectRefused(reply);
    const events = await reply.rest().catch((error: unknown) => String(error));
    if (typeof events === 'string') expect(events).toContain('the stream says');
    else expect(events).toMatchObject([{ type: 'task', id, state: 'completed' }]);
  },
};

/**
 * Reads the first event of a subscription, after which it misses nothing. 0.3 leaves it open whether there is one;
 * every agent here gives the task.
 */
async function joined(stream: Stream): Promise<void> {
  expect(await stream.next()).toMatchObject({ type: 'task' });
}
