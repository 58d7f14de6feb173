import { expect, test } from 'vitest';
import type { Agent } from '../../support/a2a-agent/index.ts';
import type { ProviderStream } from '../contract/client-calls.ts';
import { LEGACY_RPC, MESSAGE_PRICE, REST, RPC, useCallsWorld } from './support/calls-world.ts';

const calls = useCallsWorld();

interface Asked {
  readonly talk: ProviderStream;
  readonly agent: Agent;
  readonly id: string;
  readonly contextId: string;
}

/** Each way in which the end of a task is seen here. Resolves when whoever looked has been told of it. */
const WAYS: Readonly<Record<string, (asked: Asked) => Promise<unknown>>> = {
  'the answer to the message that ends it': ({ talk, id, contextId }) =>
    talk.task('blue', { message: { taskId: id, contextId } }),
  'the stream of the message that ends it': async ({ talk, id, contextId }) =>
    (await talk.stream('blue', { message: { taskId: id, contextId } })).rest(),
};

const LOOKING: Readonly<Record<string, (asked: Asked, finish: () => void) => Promise<unknown>>> = {
  'somebody who asks for the task': async ({ talk, id }, finish) => {
    finish();
    await talk.reaches(id, 'completed');
  },
  'somebody who listens to the task': async ({ talk, id }, finish) => {
    const listening = await talk.subscribe(id);
    await listening.next();
    finish();
    await listening.rest();
  },
  'the stream that the message was sent with': async () => {},
  'the gateway itself, which nobody asked': async (_asked, finish) => {
    finish();
    await calls.pollSoon();
    await calls.world.spine.quiet();
  },
};

for (const wire of [RPC, LEGACY_RPC, REST]) {
  test.each(Object.keys(WAYS))(
    `${wire.name}: a task that asks for something keeps its lock, until it is settled by %s`,
    async (way) => {
      const { url, agent } = await calls.serve({ version: 'both' });
      const talk = calls.talk(url, wire);
      const before = await calls.world.spine.balance();
      const { id, contextId, state } = await talk.task('ask');
      expect(state).toBe('input-required');
      expect(await calls.locked()).toBe(MESSAGE_PRICE);
      await talk.get(id);
      expect(await calls.locked()).toBe(MESSAGE_PRICE);
      await WAYS[way]!({ talk, agent, id, contextId });
      expect(await calls.world.spine.balance()).toEqual({
        available: before.available - 2n * MESSAGE_PRICE,
        locked: 0n,
      });
    },
  );

  test.each(Object.keys(LOOKING))(
    `${wire.name}: a task that works keeps its lock, until it is settled by %s`,
    async (way) => {
      const { url, agent } = await calls.serve({ version: 'both' });
      const talk = calls.talk(url, wire);
      const before = await calls.world.spine.balance();
      if (way === 'the stream that the message was sent with') {
        const stream = await talk.stream('wait');
        const id = await agent.waits();
        expect(await calls.locked()).toBe(MESSAGE_PRICE);
        agent.finish(id);
        await stream.rest();
      } else {
        const { id, contextId } = await talk.task('wait', { immediately: true });
        await agent.waits();
        expect(await calls.locked()).toBe(MESSAGE_PRICE);
        await LOOKING[way]!({ talk, agent, id, contextId }, () => agent.finish(id));
      }
      expect(await calls.world.spine.balance()).toEqual({ available: before.available - MESSAGE_PRICE, locked: 0n });
    },
  );
}

test('all of them at once settle it once', async () => {
  const { url, agent } = await calls.serve();
  const talk = calls.talk(url);
  expect(
    await calls.spent(async () => {
      const { id } = await talk.task('wait', { immediately: true });
      await agent.waits();
      const streams = await Promise.all(Array.from({ length: 5 }, () => talk.subscribe(id)));
      await Promise.all(streams.map((stream) => stream.next()));
      agent.finish(id);
      await Promise.all([...streams.map((stream) => stream.rest()), ...Array.from({ length: 10 }, () => talk.get(id))]);
      await talk.reaches(id, 'completed');
    }),
  ).toBe(MESSAGE_PRICE);
});
