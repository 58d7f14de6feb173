import { expect } from 'vitest';
import { expectError, expectRefused, workingTask, type Checks } from '../bench.ts';
import { readTask } from '../shapes.ts';

/** Get Task and Cancel Task (§3.1.3, §3.1.5, §3.2.4; 0.3 §7.3, §7.4). */
export const taskChecks: Checks = {
  'GET-01': async ({ talk }) => {
    const sent = await talk.task('task the result');
    const task = await talk.get(sent.id);
    expect(task).toMatchObject({ id: sent.id, contextId: sent.contextId, state: 'completed' });
    expect(task.artifacts).toEqual(sent.artifacts);
  },
  'GET-02': async (bench) => {
    expectError(await bench.talk.call('GetTask', { id: 'no-such-task' }), 'taskNotFound', bench);
  },
  'GET-03': async ({ talk }) => {
    const { id } = await talk.task('stream 2');
    const reply = await talk.call('GetTask', { id, historyLength: 0 });
    expect(reply.result()).toMatchObject({ id, status: expect.any(Object) });
    expect(reply.result()['history'] ?? []).toEqual([]);
  },
  'GET-04': async ({ talk }) => {
    const { id } = await talk.task('stream 3');
    const { history } = await talk.get(id, 2);
    expect(history.map(({ text }) => text)).toEqual(['step 2', 'step 3']);
  },
  'GET-05': async ({ talk }) => {
    const { id } = await talk.task('stream 2');
    const [first, second] = [await talk.get(id), await talk.get(id)];
    expect(second).toEqual(first);
  },
  'GET-06': async (bench) => {
    expectError(await bench.talk.call('GetTask', {}), 'invalidParams', bench);
  },
  'GET-07': async (bench) => {
    const { id } = await bench.talk.task('task x');
    expectError(await bench.talk.call('GetTask', { id, historyLength: -5 }), 'invalidParams', bench);
  },
  'GET-08': async ({ talk, agent }) => {
    const { id } = await talk.task('wait', { immediately: true });
    expect((await talk.reaches(id, 'working')).artifacts).toEqual([]);
    agent.finish(id);
    const done = await talk.reaches(id, 'completed');
    expect(done.artifacts[0]?.parts[0]?.value).toBe('finished');
  },
  'CANCEL-01': async (bench) => {
    const { talk, agent } = bench;
    const id = await workingTask(bench);
    const reply = await talk.call('CancelTask', { id });
    expect(readTask(reply.result(), talk.version)).toMatchObject({ id, state: 'canceled' });
    expect((await talk.get(id)).state).toBe('canceled');
    expect(agent.waiting).not.toContain(id);
  },
  'CANCEL-02': async (bench) => {
    const { id } = await bench.talk.task('task x');
    expectError(await bench.talk.call('CancelTask', { id }), 'taskNotCancelable', bench);
  },
  'CANCEL-03': async (bench) => {
    expectError(await bench.talk.call('CancelTask', { id: 'no-such-task' }), 'taskNotFound', bench);
  },
  'CANCEL-04': async (bench) => {
    const { talk } = bench;
    const id = await workingTask(bench);
    await talk.call('CancelTask', { id });
    const again = await talk.call('CancelTask', { id });
    // §3.3.1 allows the second one to find nothing, §3.1.5 to find a task that is cancelled already.
    if (again.error) expect([-32001, -32002]).toContain(again.error.code);
    else expect(readTask(again.result(), talk.version).state).toBe('canceled');
    expect((await talk.get(id)).state).toBe('canceled');
  },
  'CANCEL-05': async (bench) => {
    const { talk, agent } = bench;
    const { id } = await talk.task('stubborn', { immediately: true });
    expectError(await talk.call('CancelTask', { id }), 'taskNotCancelable', bench);
    agent.finish(id);
    await talk.reaches(id, 'completed');
  },
  'CANCEL-06': async (bench) => {
    const { talk } = bench;
    const stream = await talk.stream('wait');
    const first = await stream.next();
    if (first?.type !== 'task') throw new Error('a stream begins with its task');
    await talk.call('CancelTask', { id: first.id });
    const rest = await stream.rest();
    expect(rest.at(-1)).toMatchObject({ type: 'status', state: 'canceled' });
  },
  'CANCEL-07': async ({ talk }) => {
    const asked = await talk.task('ask');
    const reply = await talk.call('CancelTask', { id: asked.id });
    expect(readTask(reply.result(), talk.version).state).toBe('canceled');
    expectRefused(await talk.sent('too late', { message: { taskId: asked.id } }));
  },
};
