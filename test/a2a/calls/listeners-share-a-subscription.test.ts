import { expect, test } from 'vitest';
import { createFanOut } from '../../../src/a2a/tasks/fan-out.ts';
import { UNHURRIED } from '../../support/spine.ts';
import { LEGACY_RPC, RPC, useCallsWorld } from './support/calls-world.ts';

const calls = useCallsWorld(`${UNHURRIED}listens_max = 6\n`);

const subscriptions = (received: readonly { readonly method: string | null }[]) =>
  received.filter(({ method }) => method === 'SubscribeToTask' || method === 'tasks/resubscribe').length;

test('all who listen to a task have one subscription at its agent, and each is told all, in the version that it speaks', async () => {
  const { url, agent } = await calls.serve();
  const talk = calls.talk(url);
  const { id } = await talk.task('wait', { immediately: true });
  const first = await talk.subscribe(id);
  expect(await first.next()).toMatchObject({ type: 'task', id, state: 'working' });
  agent.progress(id, 'early ');
  expect(await first.next()).toMatchObject({ type: 'artifact' });
  const late = await talk.subscribe(id);
  // What was done by then is in the task that it begins with.
  expect(await late.next()).toMatchObject({ type: 'task', id, state: 'working' });
  const legacy = await calls.talk(url, LEGACY_RPC).subscribe(id);
  expect(await legacy.next()).toMatchObject({ type: 'task', id, state: 'working' });
  agent.progress(id, 'more ');
  agent.finish(id);
  const [one, two, three] = await Promise.all([first.rest(), late.rest(), legacy.rest()]);
  expect(one.map(({ type }) => type)).toEqual(['artifact', 'artifact', 'status']);
  expect(two.map(({ raw }) => raw)).toEqual(one.map(({ raw }) => raw));
  expect(three.map(({ type }) => type)).toEqual(one.map(({ type }) => type));
  expect(subscriptions(agent.received)).toBe(1);
});

test('a subscription ends with the last who listens, and is made again for the next', async () => {
  const { url, agent } = await calls.serve();
  const talk = calls.talk(url);
  const { id } = await talk.task('wait', { immediately: true });
  const streams = [await talk.subscribe(id), await talk.subscribe(id)];
  for (const stream of streams) await stream.next();
  streams[0]!.leave();
  agent.progress(id, 'on ');
  expect(await streams[1]!.next()).toMatchObject({ type: 'artifact' });
  streams[1]!.leave();
  const subscribedAgain = async () => {
    const stream = await talk.subscribe(id);
    await stream.next();
    const made = subscriptions(agent.received);
    stream.leave();
    return made;
  };
  await expect.poll(subscribedAgain).toBeGreaterThan(1);
  agent.finish(id);
  await calls.world.spine.quiet();
});

test('an account listens on so many streams, over all of its tasks, and is told so in the words of its wire', async () => {
  const { url, agent } = await calls.serve();
  const talk = calls.talk(url, RPC);
  const tasks = [await talk.task('wait', { immediately: true }), await talk.task('wait', { immediately: true })];
  const streams = await Promise.all(Array.from({ length: 6 }, (_, index) => talk.subscribe(tasks[index % 2]!.id)));
  for (const stream of streams) await stream.next();
  const refused = await talk.call('SubscribeToTask', { id: tasks[0]!.id });
  expect([refused.status, refused.error]).toMatchObject([
    429,
    { code: -32016, message: expect.stringMatching(/listens on 6 streams/) as string },
  ]);
  streams[0]!.leave();
  await expect
    .poll(async () => {
      const reply = await talk.open('SubscribeToTask', { id: tasks[0]!.id });
      if ('leave' in reply) reply.leave();
      return 'next' in reply;
    })
    .toBe(true);
  for (const { id } of tasks) agent.finish(id);
  await Promise.all(streams.slice(1).map((stream) => stream.rest()));
  await calls.world.spine.quiet();
});

test('a stream of a task whose client has left counts as one that listens; without a place the task is looked at instead, and paid all the same', async () => {
  const { url, agent } = await calls.serve();
  const talk = calls.talk(url);
  const streams = await Promise.all(Array.from({ length: 8 }, () => talk.stream('wait')));
  const ids = await Promise.all(streams.map(async (stream) => ((await stream.next()) as { id: string }).id));
  for (const stream of streams) stream.leave();
  const { id } = await talk.task('wait', { immediately: true });
  await expect.poll(async () => (await talk.call('SubscribeToTask', { id })).status, { timeout: 60_000 }).toBe(429);
  const paid = await calls.spent(async () => {
    for (const each of [...ids, id]) agent.finish(each);
    await calls.pollSoon();
  });
  expect(paid).toBe(0n);
});

test('a client that leaves while the end of its stream is settled takes no place', async () => {
  const { url } = await calls.serve();
  const talk = calls.talk(url);
  const leave = async () => {
    const stream = await talk.stream('stream 1');
    await stream.next();
    stream.leave();
  };
  for (let round = 0; round < 10; round += 1) await Promise.all(Array.from({ length: 6 }, leave));
  await calls.world.spine.quiet();
  const { id } = await talk.task('ask');
  const listeners = await Promise.all(Array.from({ length: 6 }, () => talk.subscribe(id)));
  for (const listener of listeners) listener.leave();
  await talk.call('CancelTask', { id });
});

test('whoever reads slowly is cut, holds nobody up and keeps little; where all do, the source waits', async () => {
  const fan = createFanOut<string, null>();
  const [quick, slow] = [fan.join(), fan.join()];
  for (let n = 0; n < 100; n++) {
    await fan.push(`item ${n}`, 50_000);
    expect(await quick.next()).toEqual({ item: `item ${n}`, bytes: 50_000 });
  }
  expect(await slow.next()).toBe('behind');
  slow.leave();
  await fan.push('a', 50_000);
  let pushed = false;
  const waiting = fan.push('b', 50_000).then(() => (pushed = true));
  await new Promise((resolve) => setImmediate(resolve));
  expect(pushed).toBe(false);
  await quick.next();
  await waiting;
  fan.end(null);
  expect(await quick.next()).toMatchObject({ item: 'b' });
  expect(await quick.next()).toEqual({ end: null });
});

test('what a reader does not keep makes room for the source', async () => {
  const fan = createFanOut<string, null>();
  const reader = fan.join();
  await fan.push('a', 50_000);
  let pushed = false;
  void fan.push('b', 50_000).then(() => (pushed = true));
  reader.keep((waiting) => waiting.map((item) => item === 'b'));
  await new Promise((resolve) => setImmediate(resolve));
  expect(pushed).toBe(true);
  expect(await reader.next()).toMatchObject({ item: 'b' });
});
