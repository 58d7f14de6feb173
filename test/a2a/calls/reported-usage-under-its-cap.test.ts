import { expect, test } from 'vitest';
import { ANSWERED, METERED, claims, flagsOf } from './support/metered.ts';
import { costOf, LEGACY_RPC, RPC, useCallsWorld } from './support/calls-world.ts';
import { serveRaw, taskResult } from './support/raw-served.ts';

const calls = useCallsWorld();

// 2 USD a million prompt tokens, 4 for completion tokens, 0.0001 a second; 0.05 at most.
const CHARGED: readonly (readonly [claim: unknown, micro: bigint])[] = [
  [{ prompt: 1_000, completion: 500 }, 4_000n],
  [{ prompt_tokens: 1_000, completion_tokens: 500 }, 4_000n],
  [{ prompt: 1_000 }, 2_000n],
  [{ second: 2 }, 200n],
  [{ seconds: 1.5 }, 200n],
  [{ prompt: 0, completion: 0 }, 0n],
  [{ prompt: ANSWERED, completion: ANSWERED }, 50_000n],
  [{ completion: Number.MAX_SAFE_INTEGER }, 50_000n],
  [{}, 0n],
];

test.each([RPC, LEGACY_RPC])('what an agent reports is charged, up to the cap that was locked: $name', async (wire) => {
  const { url } = await serveRaw(calls.world, claims, METERED);
  const talk = calls.talk(url, wire);
  for (const [claim, micro] of CHARGED) {
    const before = await calls.world.spine.balance();
    const reply = await talk.sent(JSON.stringify(claim));
    expect({ claim, left: await calls.world.spine.balance() }, reply.text).toEqual({
      claim,
      left: { available: before.available - micro, locked: 0n },
    });
    expect(costOf(reply)).toBe(String(Number(micro) / 1e6));
  }
});

const INVALID = [-1, '10', true, [], {}, 1e300, 2 ** 53];

test('what no usage can be costs nothing, and its provider is flagged for it', async () => {
  const { url } = await serveRaw(calls.world, claims, { ...METERED, provider: 'Liar' });
  const talk = calls.talk(url);
  expect(
    await calls.spent(async () => {
      for (const units of INVALID) expect(costOf(await talk.sent(JSON.stringify({ prompt: units })))).toBe('0');
      // JSON has no NaN and no infinity: an answer with one is none.
      for (const text of ['NaN', 'Infinity']) expect((await talk.sent(`{"prompt":${text}}`)).error).not.toBeNull();
      for (const claim of ['"much"', '7', 'true']) expect(costOf(await talk.sent(claim))).toBe('0');
    }),
  ).toBe(0n);
  expect(flagsOf(calls.world.spine, 'Liar')).toEqual({ usage_invalid: INVALID.length + 3 });
});

test('an agent that reports nothing is paid nothing, and flagged', async () => {
  const offer = { ...METERED, provider: 'Silent' };
  const { url } = await serveRaw(calls.world, ({ result }) => result(taskResult('t-silent', 'COMPLETED')), offer);
  expect(await calls.spent(() => calls.talk(url).task('work'))).toBe(0n);
  expect(flagsOf(calls.world.spine, 'Silent')).toEqual({ usage_missing: 1 });
});

test('while such a task goes on the whole cap is held, and it is what was used that is charged at its end', async () => {
  const { url, agent } = await calls.serve({}, METERED);
  const talk = calls.talk(url);
  expect(
    await calls.spent(async () => {
      const { id } = await talk.task('wait', { immediately: true });
      await agent.waits();
      expect(await calls.locked()).toBe(50_000n);
      agent.finish(id);
      await talk.reaches(id, 'completed');
    }),
  ).toBe(0n);
});

test('per message and by usage: the use is charged once, with the first message, every later one its own price', async () => {
  const pricing = `per_call = 0.001\nprompt = 2\ncompletion = 4\nper_call_max = 0.05`;
  let asked = 0;
  const { url } = await serveRaw(
    calls.world,
    ({ result }) => {
      asked += 1;
      const usage = { metadata: { 'tollgate/usage': { prompt: 1_000, completion: 500 }, notes: 'x'.repeat(1_000) } };
      result(taskResult('t-mixed', asked < 3 ? 'INPUT_REQUIRED' : 'COMPLETED', asked < 3 ? {} : usage));
    },
    { pricing },
  );
  const talk = calls.talk(url);
  const before = await calls.world.spine.balance();
  const { id, contextId } = await talk.task('one');
  const more = { message: { taskId: id, contextId } };
  expect(await calls.locked()).toBe(50_000n);
  await talk.task('two', more);
  expect(await calls.locked()).toBe(51_000n);
  expect((await talk.task('three', more)).state).toBe('completed');
  // 4,000 for its use, and 1,000 for each of three messages.
  expect(await calls.world.spine.balance()).toEqual({ available: before.available - 7_000n, locked: 0n });
});

test('by usage alone: messages that go on with the task cost nothing of their own, and end it as well', async () => {
  let asked = 0;
  const { url } = await serveRaw(
    calls.world,
    ({ result }) => {
      asked += 1;
      const usage = { metadata: { 'tollgate/usage': { prompt: 1_000 }, notes: 'x'.repeat(1_000) } };
      result(taskResult('t-used', asked === 1 ? 'INPUT_REQUIRED' : 'COMPLETED', asked === 1 ? {} : usage));
    },
    METERED,
  );
  const talk = calls.talk(url);
  const before = await calls.world.spine.balance();
  const { id, contextId } = await talk.task('one');
  await talk.task('two', { message: { taskId: id, contextId } });
  expect(await calls.world.spine.balance()).toEqual({ available: before.available - 2_000n, locked: 0n });
});
