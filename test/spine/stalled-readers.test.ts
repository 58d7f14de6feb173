import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { openSocket } from '../support/raw-http.ts';
import { ask, startSpine, type Spine } from '../support/spine.ts';

// A client that takes nothing for too long, or reads too slowly for the clock of the call, pays for what it was given.

let spine: Spine;
beforeAll(async () => {
  spine = await startSpine({
    toml: `
[limits]
requests_per_minute = 100000
burst = 1000
client_stall_ms = 700
[billing]
drain_bytes = 1000000
[upstream]
call_timeout_ms = 3000
cooldown_ms = 0
${BIG}`,
  });
});
afterAll(() => spine.stop());
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const BIG = `
[[models]]
name = "test/long"
display_name = "Test: Long"
provider_name = "Test"
context_length = 1000000
max_output_tokens = 500000
[models.pricing]
prompt = 1
completion = 2
[models.params]
model = "long"
api_base = "{provider}"
api_key = ""
`;

const long = (tokens: number) => ask(`hello !tokens:${tokens}`, { model: 'test/long', max_tokens: tokens, stream: true });

/** A client that reads nothing until `read` is called. */
async function lazyReader(body: unknown, key = spine.key) {
  const socket = await openSocket(spine.origin);
  socket.pause();
  const text = JSON.stringify(body);
  socket.write(
    `POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`,
  );
  let bytes = 0;
  let tail = '';
  socket.on('data', (part: Buffer) => {
    bytes += part.length;
    tail = (tail + part.toString('latin1')).slice(-400);
  });
  socket.pause();
  return {
    socket,
    get bytes() {
      return bytes;
    },
    async read() {
      const ended = once(socket, 'close');
      socket.resume();
      await ended;
      return { bytes, tail };
    },
  };
}

test('a client that stops reading for good is as good as gone: cut off, and charged for what was produced', async () => {
  spine.provider.log.length = 0;
  const before = await spine.balance();
  const reader = await lazyReader(long(60_000));
  await spine.provider.settled(1);
  await spine.quiet();
  const paid = before.available - (await spine.balance()).available;
  expect(paid).toBeGreaterThan(1_000n);
  expect(await spine.generation((await spine.locks()).at(-1)!)).toMatchObject({ state: 'settled', estimated: true, cancelled: true });
  const closed = once(reader.socket, 'close');
  reader.socket.resume();
  await closed;
});

test('a client that reads all the time, but too slowly for the clock, does not get it for nothing', async () => {
  spine.provider.log.length = 0;
  const before = await spine.balance();
  const { data: earlier } = (await (await spine.get('/providers')).json()) as { data: { uptime: number }[] };
  const reader = await lazyReader(long(200_000));
  const sip = setInterval(() => {
    reader.socket.resume();
    setImmediate(() => reader.socket.pause());
  }, 50);
  await spine.provider.settled(1);
  clearInterval(sip);
  reader.socket.resume();
  await spine.quiet();
  reader.socket.destroy();
  expect(before.available - (await spine.balance()).available).toBeGreaterThan(1_000n);
  // Nor is it held against the provider.
  const { data: later } = (await (await spine.get('/providers')).json()) as { data: { uptime: number }[] };
  expect(later[0]!.uptime ?? 1).toBe(earlier[0]!.uptime ?? 1);
});
