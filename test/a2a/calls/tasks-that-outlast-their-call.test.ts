import { expect, test } from 'vitest';
import { atThisLoad } from '../../support/at-this-load.ts';
import { serveBreaking } from './support/breaking-agent.ts';
import { MESSAGE_PRICE, useCallsWorld } from './support/calls-world.ts';
import { BRIDGES, STREAMED_CHAT } from './support/endpoints.ts';
import { taskResult } from './support/raw-served.ts';

// A task that outlasts the call of a client that has no other way to it ends with that call: what the answer says
// of money is all that is ever charged.

const calls = useCallsWorld(`[upstream]\ncall_timeout_ms = ${Math.min(atThisLoad(3_000), 10_000)}\n`);
const PRICE = Number(MESSAGE_PRICE);
const HALF = [{ artifactId: 'a', parts: [{ text: 'half of it' }] }];

/** How log and record show a call whose task was cut. */
const MARK = { error_code: 'reply_cut', status: 500 };

// The routes wait for the same time-out: they wait together.
test('a task that has given output and does not end in time is canceled and charged before the answer ends, at every door', async () => {
  const cases = BRIDGES.flatMap((door) =>
    (['breaks', 'hangs'] as const).map((stream) => ({ door, stream, name: `${door.name}, its stream ${stream}` })),
  );
  expect(
    await calls.spent(async () => {
      const asked = await Promise.all(
        cases.map(async ({ door, stream, name }) => {
          const agent = await serveBreaking(calls, {
            gives: 'half of it',
            stream,
            // Only the answer says so: a look at the task at this moment would see its end before the call does.
            cancels: ({ result }, { taskId }) => result(taskResult(taskId, 'CANCELED', { artifacts: HALF }).task),
          });
          return { agent, name, told: await door.ask(calls, agent.service) };
        }),
      );
      expect(await calls.locked()).toBe(0n);
      for (const { agent, told, name } of asked) {
        expect(told, name).toMatchObject({
          said: expect.stringContaining('half of it'),
          state: 'canceled',
          cost: PRICE,
          finish: 'length',
        });
        expect(told.error, name).toContain('is charged');
        expect(
          agent.agent.received.map(({ method }) => method),
          name,
        ).toContain('CancelTask');
        expect(await calls.world.spine.generation(told.id), name).toMatchObject({
          outcome: 'cut',
          finish_reason: 'timeout',
          cost_micro_usdc: PRICE,
          ...MARK,
          error: expect.stringMatching(/^The reply was cut: .* The part that arrived is charged$/) as string,
        });
        // The agent does it all the same.
        agent.stands('COMPLETED');
        expect(JSON.stringify(await calls.talk(agent.url).get(agent.taskId)), name).toContain('half of it');
      }
    }),
  ).toBe(MESSAGE_PRICE * BigInt(cases.length));
});

test('a task that has given nothing in time is canceled, and free for good, at every door', async () => {
  expect(
    await calls.spent(async () => {
      const asked = await Promise.all(
        BRIDGES.map(async (door) => {
          const agent = await serveBreaking(calls, {
            gives: null,
            stream: 'hangs',
            cancels: ({ error }) => error(-32603, 'not now'),
          });
          return { agent, name: door.name, told: await door.ask(calls, agent.service) };
        }),
      );
      expect(await calls.locked()).toBe(0n);
      for (const { agent, told, name } of asked) {
        expect(told, name).toMatchObject({
          state: 'failed',
          cost: 0,
          finish: 'error',
          error: expect.stringContaining('Nothing is charged'),
        });
        expect(
          agent.agent.received.map(({ method }) => method),
          name,
        ).toContain('CancelTask');
        expect(await calls.world.spine.generation(told.id), name).toMatchObject({
          outcome: 'free',
          cost_micro_usdc: 0,
        });
        agent.stands('COMPLETED', { artifacts: [{ artifactId: 'a', parts: [{ text: 'late' }] }] });
        // Nor is what came too late given for nothing.
        const shown = JSON.stringify(await calls.talk(agent.url).get(agent.taskId));
        expect(shown, name).toContain('CANCELED');
        expect(shown, name).not.toContain('late');
      }
    }),
  ).toBe(0n);
});

test('a task that ended while nobody heard of it is told as it ended, though its time is over', async () => {
  const agent = await serveBreaking(calls, {
    gives: 'half ',
    stream: 'hangs',
    cancels: ({ error }, { stands }) => {
      stands('COMPLETED', { artifacts: [{ artifactId: 'a', parts: [{ text: 'half and whole' }] }] });
      error(-32002, 'it is completed');
    },
  });
  expect(
    await calls.spent(async () => {
      expect(await STREAMED_CHAT.ask(calls, agent.service)).toMatchObject({
        said: 'half and whole',
        state: 'completed',
        cost: PRICE,
        finish: 'stop',
      });
    }),
  ).toBe(MESSAGE_PRICE);
});
