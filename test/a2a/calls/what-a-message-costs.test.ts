import { expect, test } from 'vitest';
import { BRIDGES } from './support/endpoints.ts';
import { costOf, heldBy, LEGACY_RPC, MESSAGE_PRICE, useCallsWorld, WIRES } from './support/calls-world.ts';
import { serveRaw, statusEvent, taskResult, writeEvent } from './support/raw-served.ts';

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

const says = (text: string, taskId?: string) => ({
  message: {
    messageId: `m ${text}`,
    role: 'ROLE_AGENT',
    parts: [{ text }],
    ...(taskId === undefined ? {} : { taskId }),
  },
});

/** An agent whose task says two messages in its stream. The stream ends, and then the task stands as given. */
const serveTalkative = (taskId: string, ends: string, inStream: boolean) =>
  serveRaw(calls.world, (exchange) => {
    const { request, response, result } = exchange;
    if (request.method === 'GetTask') return result(taskResult(taskId, ends).task);
    writeEvent(exchange, taskResult(taskId, 'WORKING'));
    writeEvent(exchange, says('one moment', taskId));
    if (request.method === 'SendStreamingMessage') writeEvent(exchange, says('nearly there'));
    if (inStream || request.method === 'SubscribeToTask') writeEvent(exchange, statusEvent(taskId, ends));
    response.end();
  });

test.each([
  ['FAILED', false, 0n],
  ['FAILED', true, 0n],
  ['COMPLETED', false, MESSAGE_PRICE],
  ['COMPLETED', true, MESSAGE_PRICE],
] as const)(
  'a message in the stream of a task that is %s later (in the stream: %s) costs %s',
  async (ends, inStream, cost) => {
    const taskId = `t-says-${ends}-${inStream}`;
    const { url } = await serveTalkative(taskId, ends, inStream);
    const talk = calls.talk(url);
    expect(
      await calls.spent(async () => {
        const told = JSON.stringify(await (await talk.stream('work')).rest());
        expect(told).toContain('one moment');
        expect(told).toContain('nearly there');
        if (inStream) expect(told).toContain(`TASK_STATE_${ends}`);
        else expect(await calls.locked()).toBe(MESSAGE_PRICE);
        const shown = (await talk.get(taskId)).raw;
        expect(shown['metadata']).toMatchObject({ 'tollgate/generation': { cost: cost === 0n ? '0' : '0.001' } });
      }),
    ).toBe(cost);
  },
);

test('whoever listens to a task hears its messages and its end', async () => {
  const { url } = await serveTalkative('t-heard', 'FAILED', false);
  const talk = calls.talk(url);
  expect(
    await calls.spent(async () => {
      await (await talk.stream('work')).rest();
      const heard = JSON.stringify(await (await talk.subscribe('t-heard')).rest());
      expect(heard).toContain('one moment');
      expect(heard).toContain('TASK_STATE_FAILED');
    }),
  ).toBe(0n);
});

test.each(BRIDGES)('a message in the stream of a task is not its end: $name', async (door) => {
  const failed = await serveTalkative(`t-fails ${door.name}`, 'FAILED', false);
  const done = await serveTalkative(`t-done ${door.name}`, 'COMPLETED', false);
  expect(
    await calls.spent(async () => {
      expect(await door.ask(calls, failed.service)).toMatchObject({ state: 'failed', cost: 0, finish: 'error' });
      const told = await door.ask(calls, done.service);
      expect(told).toMatchObject({ state: 'completed', cost: Number(MESSAGE_PRICE), finish: 'stop' });
      expect(told.said).toContain('nearly there');
    }),
  ).toBe(MESSAGE_PRICE);
});

test('a message of another task breaks the stream, and the task goes on', async () => {
  const { url } = await serveRaw(calls.world, (exchange) => {
    const { request, response, result } = exchange;
    if (request.method === 'GetTask') return result(taskResult('t-own', 'FAILED').task);
    writeEvent(exchange, taskResult('t-own', 'WORKING'));
    writeEvent(exchange, says('not mine', 't-foreign'));
    response.end();
  });
  const talk = calls.talk(url);
  expect(
    await calls.spent(async () => {
      const stream = await talk.stream('work');
      await stream.next();
      await expect(stream.next()).rejects.toThrow('the task continues');
      expect((await talk.get('t-own')).state).toBe('failed');
    }),
  ).toBe(0n);
});
