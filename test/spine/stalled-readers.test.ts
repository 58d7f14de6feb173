import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startFirehose, type Firehose } from '../support/firehose.ts';
import { postLazily } from '../support/lazy-reader.ts';
import { ask, modelBlock, startSpine, type Spine } from '../support/spine.ts';

// A client that takes nothing for too long, or reads too slowly for the clock of its call, pays for what it was given.

const TOKENS = 6_000_000;
const EVENT_BYTES = 16_000;
/** Four bytes are a token, and a million tokens cost 2 USD. */
const EVENT_MICRO_USDC = (EVENT_BYTES / 4) * 2;
let firehose: Firehose;
let spine: Spine;
beforeAll(async () => {
  firehose = await startFirehose({ events: 3_000, eventBytes: EVENT_BYTES });
});
afterAll(() => firehose.stop());
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
});

const start = (stallMs: number, callMs: number, url = firehose.url) =>
  startSpine({
    toml: `
[limits]
client_stall_ms = ${stallMs}
[billing]
drain_bytes = 1000000
[upstream]
call_timeout_ms = ${callMs}
reply_bytes_max = 67108864
${modelBlock({ name: 'test/long', provider: 'Firehose', url, contextLength: 20_000_000, maxOutputTokens: TOKENS })}`,
    credit: '10000',
  });
const long = ask('hello', { model: 'test/long', max_tokens: TOKENS, stream: true });
const uptime = async () => {
  const { data } = (await (await spine.get('/models/test/long/endpoints')).json()) as {
    data: { endpoints: { uptime_last_1h: number | null }[] };
  };
  return data.endpoints[0]!.uptime_last_1h;
};
/** Waits until the one call of this spine has begun and is resolved. */
const resolved = async () => {
  while ((await spine.locks()).length === 0 || (await spine.balance()).locked > 0n)
    await new Promise((resolve) => setTimeout(resolve, 20));
  return spine.generation((await spine.locks())[0]!);
};

test('a client that stops reading for good is as good as gone: cut off, and charged for what was produced', async () => {
  spine = await start(400, 60_000);
  const reader = await postLazily(spine.origin, spine.key, long);
  const cut = once(reader.socket, 'close');
  const generation = await resolved();
  expect(generation).toMatchObject({ state: 'settled', estimated: true, cancelled: true });
  expect(generation.cost_micro_usdc).toBeGreaterThan(100_000);
  reader.socket.resume();
  await cut;
  // Nor is it held against the provider.
  expect(await uptime()).not.toBe(0);
});

test('a client that reads too slowly for the clock of its call does not get it for nothing', async () => {
  spine = await start(60_000, 2_000);
  const reader = await postLazily(spine.origin, spine.key, long);
  while ((await spine.balance()).locked === 0n) await new Promise((resolve) => setTimeout(resolve, 5));
  // The clock of the call is over while a chunk is with the client.
  await firehose.cutOff();
  let received = 0;
  reader.socket.on('data', (part: Buffer) => (received += part.length));
  await reader.readAll();
  const generation = await resolved();
  expect(generation).toMatchObject({ state: 'settled', estimated: true });
  // Its lock outlasts whatever such a client may do.
  const { createdAt, expiresAt } = (await spine.app.ledger.find(generation.id))!;
  expect(expiresAt - createdAt).toBeGreaterThan(2_000 + 60_000 + 34_000);
  // It pays for each event that it got. How many there were in that time depends on how busy the machine is.
  const events = Math.floor(received / (EVENT_BYTES + 1_000));
  expect(events).toBeGreaterThan(0);
  expect(generation.cost_micro_usdc).toBeGreaterThanOrEqual(events * EVENT_MICRO_USDC);
  expect(await uptime()).not.toBe(0);
});

test('a whole reply that nobody fetches is not kept, nor its connection; one that is fetched slowly arrives', async () => {
  // More than the sockets between hold, even on loopback. Two of them fit into the memory for replies.
  const content = 'x'.repeat(16_000_000);
  const reply = JSON.stringify({
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 10, completion_tokens: 5 },
  });
  const provider = createServer((request, response) => {
    request.resume().on('end', () => response.setHeader('content-type', 'application/json').end(reply));
  }).listen(0, '127.0.0.1');
  await once(provider, 'listening');
  spine = await start(2_000, 60_000, `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`);
  const [idle, slow] = await Promise.all(
    [1, 2].map(() => postLazily(spine.origin, spine.key, { ...long, stream: false })),
  );
  const closed = once(idle!.socket, 'close');
  const sips = setInterval(() => slow!.sip(), 10);
  let fetched = 0;
  let head = '';
  slow!.socket.on('data', (part: Buffer) => {
    if (fetched === 0) head = part.toString('latin1', 0, 1_000);
    fetched += part.length;
  });
  await once(slow!.socket, 'close');
  clearInterval(sips);
  expect(fetched, head).toBeGreaterThan(content.length);
  while ((await connections()) > 0) await new Promise((resolve) => setTimeout(resolve, 20));
  idle!.socket.resume();
  await closed;
  provider.close();
});

const connections = () =>
  new Promise<number>((resolve, reject) =>
    spine.app.server.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );
