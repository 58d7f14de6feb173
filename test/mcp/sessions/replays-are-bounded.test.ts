import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import type { ClientAnswer } from '../../../src/server/http/answer.ts';
import { createReplays } from '../../../src/mcp/call/replays.ts';

/** An answer that keeps what it is given. */
function keeping() {
  const written: string[] = [];
  const answer: ClientAnswer = {
    events: async (bytes) => void written.push(Buffer.from(bytes).toString()),
    end: (text) => void written.push(`end ${text}`),
    body: () => null,
    close: () => void written.push('close'),
  };
  return { answer, written };
}

const event = (id: string | null, length = 0) =>
  Buffer.from(`${id === null ? '' : `id: ${id}\n`}data: ${'x'.repeat(length)}\n\n`);

test('an answer without ids is not held', async () => {
  const replays = createReplays({ now: () => 0 });
  const recording = replays.record('s', keeping().answer);
  await recording.events(event(null));
  recording.end('{}', 200);
  expect([recording.isResumable(), replays.bytes]).toEqual([false, 0]);
  expect(await replays.resume('s', '', keeping().answer)).toBe(false);
});

test('one that grows too long cannot be gone on with any more', async () => {
  const replays = createReplays({ now: () => 0, answerBytesMax: 10_000 });
  const recording = replays.record('s', keeping().answer);
  await recording.events(event('1', 9_000));
  expect(recording.isResumable()).toBe(true);
  await recording.events(event('2', 9_000));
  await recording.events(event('3'));
  expect([recording.isResumable(), replays.bytes]).toEqual([false, 0]);
});

test('the oldest answers give way', async () => {
  const replays = createReplays({ now: () => 0, bytesMax: 30_000 });
  const recordings = ['a', 'b', 'c', 'd'].map((session) => replays.record(session, keeping().answer));
  for (const [n, recording] of recordings.entries()) await recording.events(event(String(n), 9_000));
  expect(recordings.map((recording) => recording.isResumable())).toEqual([false, true, true, true]);
  expect(replays.bytes).toBeLessThanOrEqual(30_000);
});

test('short events count with what they take besides their text', async () => {
  const replays = createReplays({ now: () => 0, answerBytesMax: 10_000 });
  const recording = replays.record('s', keeping().answer);
  for (let n = 0; n < 20; n += 1) await recording.events(event(String(n)));
  expect(recording.isResumable()).toBe(true);
  for (let n = 20; n < 40; n += 1) await recording.events(event(String(n)));
  expect(recording.isResumable()).toBe(false);
});

test('what is held keeps nothing of the request that it answered', async () => {
  const replays = createReplays({ now: () => 0 });
  const answered = await (async () => {
    const { answer } = keeping();
    const recording = replays.record('s', answer);
    await recording.events(event('1'));
    recording.end('{}', 200);
    return new WeakRef(answer);
  })();
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  await expect.poll(() => (collect(), answered.deref() === undefined), { timeout: 30_000 }).toBe(true);
  expect(replays.bytes).toBeGreaterThan(0);
});

test('what has ended is held for a minute', async () => {
  let now = 0;
  const replays = createReplays({ now: () => now });
  const recording = replays.record('s', keeping().answer);
  await recording.events(event('1'));
  replays.sweep();
  now = 3_600_000;
  replays.sweep();
  expect(recording.isResumable()).toBe(true);
  recording.end('{}', 200);
  now += 59_999;
  replays.sweep();
  expect(replays.bytes).toBeGreaterThan(0);
  now += 1;
  replays.sweep();
  expect(replays.bytes).toBe(0);
});

test('what comes while the missed part is written comes behind it', async () => {
  const replays = createReplays({ now: () => 0 });
  const recording = replays.record('s', keeping().answer);
  for (const id of ['1', '2', '3']) await recording.events(event(id));
  const slow = keeping();
  const resumed = replays.resume('s', '1', {
    ...slow.answer,
    async events(bytes) {
      await new Promise((resolve) => setImmediate(resolve));
      await slow.answer.events(bytes);
    },
  });
  const live = recording.events(event('4'));
  recording.end('{"done":true}', 200, {}, '5');
  await live;
  expect(await resumed).toBe(true);
  expect(slow.written).toEqual([
    ': resumed\n\n',
    'id: 2\ndata: \n\n',
    'id: 3\ndata: \n\n',
    'id: 4\ndata: \n\n',
    'end {"done":true}',
  ]);
});

test('a client that comes back twice has one stream', async () => {
  const replays = createReplays({ now: () => 0 });
  const recording = replays.record('s', keeping().answer);
  await recording.events(event('1'));
  const [first, second] = [keeping(), keeping()];
  const left = replays.resume('s', '1', first.answer);
  const stays = replays.resume('s', '1', second.answer);
  expect(await left).toBe(true);
  recording.end('{}', 200);
  await stays;
  expect(first.written.at(-1)).toBe('close');
  expect(second.written.at(-1)).toBe('end {}');
});
