import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startFirehose, type Firehose } from '../support/firehose.ts';
import { postLazily } from '../support/lazy-reader.ts';
import { ask, modelBlock, startSpine, type Spine } from '../support/spine.ts';

// A client that takes nothing for too long, or reads too slowly for the clock of its call, pays for what it was given.

const TOKENS = 6_000_000;
let firehose: Firehose;
let spine: Spine;
beforeAll(async () => {
  firehose = await startFirehose({ events: 3_000, eventBytes: 16_000 });
});
afterAll(() => firehose.stop());
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
});

const start = (stallMs: number, callMs: number) =>
  startSpine({
    toml: `
[limits]
client_stall_ms = ${stallMs}
[billing]
drain_bytes = 1000000
[upstream]
call_timeout_ms = ${callMs}
${modelBlock({ name: 'test/long', provider: 'Firehose', url: firehose.url, contextLength: 20_000_000, maxOutputTokens: TOKENS })}`,
    credit: '10000',
  });
const long = ask('hello', { model: 'test/long', max_tokens: TOKENS, stream: true });
const uptime = async () => {
  const { data } = (await (await spine.get('/models/test/long/endpoints')).json()) as { data: { endpoints: { uptime_last_1h: number | null }[] } };
  return data.endpoints[0]!.uptime_last_1h;
};
/** Waits until the one call of this spine has begun and is resolved. */
const resolved = async () => {
  while ((await spine.locks()).length === 0 || (await spine.balance()).locked > 0n) await new Promise((resolve) => setTimeout(resolve, 20));
  return spine.generation((await spine.locks())[0]!);
};

test('a client that stops reading for good is as good as gone: cut off, and charged for what was produced', async () => {
  spine = await start(400, 60_000);
  const reader = await postLazily(spine.origin, spine.key, long);
  const cut = once(reader.socket, 'close');
  const generation = await resolved();
  expect(generation).toMatchObject({ state: 'settled', estimated: true, cancelled: true });
  expect(generation.cost_micro_usdc).toBeGreaterThan(1_000_000);
  reader.socket.resume();
  await cut;
  // Nor is it held against the provider.
  expect(await uptime()).not.toBe(0);
});

test('a client that reads too slowly for the clock of its call does not get it for nothing', async () => {
  spine = await start(60_000, 1_000);
  const reader = await postLazily(spine.origin, spine.key, long);
  while ((await spine.balance()).locked === 0n) await new Promise((resolve) => setTimeout(resolve, 5));
  // The clock of the call is over while a chunk is with the client.
  await firehose.cutOff();
  void reader.readAll();
  const generation = await resolved();
  expect(generation).toMatchObject({ state: 'settled', estimated: true });
  expect(generation.cost_micro_usdc).toBeGreaterThan(1_000_000);
  expect(await uptime()).not.toBe(0);
});
