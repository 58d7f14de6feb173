import { expect, test } from 'vitest';
import { costOf, heldBy, LEGACY_RPC, MESSAGE_PRICE, useCallsWorld, WIRES } from './support/calls-world.ts';

const calls = useCallsWorld();

test.each(WIRES)(
  'a message that is answered, with a message or a completed task, costs its price at once: $name',
  async (wire) => {
    const { url } = await calls.serve({ version: 'both' });
    const talk = calls.talk(url, wire);
    for (const text of ['echo hello', 'task hello', 'stream 3', 'big 100000']) {
      const before = await calls.world.spine.balance();
      const reply = await talk.sent(text);
      expect(reply.status, reply.text).toBe(200);
      // Settled before the answer is sent: nobody waits for it here.
      const after = await calls.world.spine.balance();
      expect({ text, spent: before.available - after.available, locked: after.locked }).toEqual({
        text,
        spent: MESSAGE_PRICE,
        locked: 0n,
      });
      expect(costOf(reply), text).toBe('0.001');
    }
  },
);

test.each(WIRES)('a task that fails, is rejected or is canceled costs nothing: $name', async (wire) => {
  const { url, agent } = await calls.serve({ version: 'both' });
  const talk = calls.talk(url, wire);
  for (const text of ['fail', 'reject']) {
    const before = await calls.world.spine.balance();
    const reply = await talk.sent(text);
    expect(reply.status, reply.text).toBe(200);
    expect(await calls.world.spine.balance()).toEqual(before);
    expect(costOf(reply), text).toBe('0');
  }
  expect(
    await calls.spent(async () => {
      const { id } = heldBy(
        await talk.sent('wait', {
          immediately: true,
          configuration: wire.version === '1.0' ? { returnImmediately: true } : {},
        }),
      );
      await agent.waits();
      expect(await calls.locked()).toBe(MESSAGE_PRICE);
      const cancelled = await talk.call('CancelTask', { id: String(id) });
      expect(cancelled.status, cancelled.text).toBe(200);
      // Given back before the answer, too.
      expect(await calls.locked()).toBe(0n);
    }),
  ).toBe(0n);
});

test('every message of a task has its own lock and its own price, and all are settled together when the task ends', async () => {
  const { url } = await calls.serve();
  const talk = calls.talk(url);
  const before = await calls.world.spine.balance();
  const task = await talk.task('ask');
  expect(task.state).toBe('input-required');
  expect(await calls.locked()).toBe(MESSAGE_PRICE);
  expect((await talk.task('blue', { message: { taskId: task.id, contextId: task.contextId } })).state).toBe(
    'completed',
  );
  expect(await calls.world.spine.balance()).toEqual({ available: before.available - 2n * MESSAGE_PRICE, locked: 0n });
});

test('each message that a waiting task is sent locks the price once more; when the task fails, all of it goes back', async () => {
  const { url, agent } = await calls.serve();
  const talk = calls.talk(url);
  expect(
    await calls.spent(async () => {
      const task = await talk.task('wait', { immediately: true });
      await agent.waits();
      for (const locked of [2n, 3n, 4n]) {
        // A message to a task that works is taken by the fixture as another run of it: what it says waits as well.
        await talk.sent('wait', { immediately: true, message: { taskId: task.id, contextId: task.contextId } });
        expect(await calls.locked()).toBe(locked * MESSAGE_PRICE);
      }
      agent.finish(task.id, 'failed');
      await talk.reaches(task.id, 'failed');
      expect(await calls.locked()).toBe(0n);
    }),
  ).toBe(0n);
});

test('per task: the first message pays for all of it, follow-ups hold and cost nothing', async () => {
  const { url } = await calls.serve({ version: 'both' }, { pricing: 'per_task = 0.01' });
  for (const wire of [undefined, LEGACY_RPC]) {
    const talk = calls.talk(url, wire);
    const before = await calls.world.spine.balance();
    const task = await talk.task('ask');
    expect(await calls.locked()).toBe(10_000n);
    const done = await talk.sent('blue', { message: { taskId: task.id, contextId: task.contextId } });
    expect(heldBy(done)['id'], done.text).toBe(task.id);
    expect(await calls.world.spine.balance()).toEqual({ available: before.available - 10_000n, locked: 0n });
  }
});

test('per task: a second task in the same context is another one', async () => {
  const { url } = await calls.serve({}, { pricing: 'per_task = 0.01' });
  const talk = calls.talk(url);
  const first = await talk.task('task one');
  expect(await calls.spent(() => talk.task('task two', { message: { contextId: first.contextId } }))).toBe(10_000n);
});
