import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, expect, test } from 'vitest';
import { startFirehose } from '../support/firehose.ts';
import { postLazily, type LazyReader } from '../support/lazy-reader.ts';
import { ask, modelBlock, UNHURRIED } from '../support/spine.ts';
import { ofFile, spineOfFile } from '../support/of-file.ts';

// A client that reads slowly slows its provider down; it does not fill the gateway's memory, and it pays for what
// was produced.

const MIB = 1024 * 1024;
/** More than the sockets between hold, even on loopback. */
const REPLY_BYTES = 48 * MIB;
const TOKENS = REPLY_BYTES / 8;
const READERS = process.env['TOLLGATE_DEEP'] === '1' ? 20 : 6;
/** Of those who leave. */
const LEFT = READERS - 1;

let readers: readonly LazyReader[] = [];
const firehose = ofFile(
  () => startFirehose({ events: REPLY_BYTES / 16_384, eventBytes: 16_384 }),
  (one) => one.stop(),
);
const spine = spineOfFile(() => ({
  toml: `${UNHURRIED}
[billing]
drain_bytes = ${MIB}
${modelBlock({ name: 'test/long', provider: 'Firehose', url: firehose.url, contextLength: 20_000_000, maxOutputTokens: TOKENS })}`,
  credit: '10000',
}));
afterEach(async () => {
  for (const { socket } of readers) socket.destroy();
  expect(await spine.faults()).toEqual([]);
});

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Bytes that are reachable: objects and buffers. */
function memoryUsed(): number {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test('clients that do not read hold up their providers, not our memory', async () => {
  const before = await spine.balance();
  const used = memoryUsed();
  const body = ask('hello', { model: 'test/long', max_tokens: TOKENS, stream: true });
  readers = await Promise.all(Array.from({ length: READERS }, () => postLazily(spine.origin, spine.key, body)));
  // Until no provider gets rid of another byte, however seldom this process has its turn.
  let sent = 0;
  for (let still = 0; still < 3; still = sent > 0 && sent === firehose.sent.bytes ? still + 1 : 0) {
    sent = firehose.sent.bytes;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  expect(firehose.sent).toMatchObject({ finished: 0, left: 0 });
  // Clients and provider included, which are in this process too. The replies are 48 MiB each. What is dropped is freed
  // a little later.
  await expect.poll(() => memoryUsed() - used, { timeout: 60_000 }).toBeLessThan(20 * MIB);

  // Who reads after all gets everything and pays for it.
  const [patient, ...others] = readers;
  const tail = await patient!.readAll();
  expect(tail).toContain('data: [DONE]');
  const whole = BigInt(10 + 2 * TOKENS);

  // Who hangs up pays for what was produced until the drain's bound, as measured: a token for each 4 bytes.
  for (const { socket } of others) socket.destroy();
  await spine.quiet();
  // The provider hears of it a turn of the event loop later.
  await expect.poll(() => firehose.sent, { timeout: 60_000 }).toMatchObject({ finished: 1, left: LEFT });
  const paid = before.available - (await spine.balance()).available;
  expect(paid).toBeGreaterThan(whole + BigInt(LEFT) * BigInt(MIB / 8 / 4));
  expect(paid).toBeLessThan(whole + BigInt(LEFT) * BigInt((2 * REPLY_BYTES) / 4));
});
