import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { openSocket } from '../support/raw-http.ts';
import { ask, startSpine, type Spine } from '../support/spine.ts';

// A client that reads slowly slows its provider down; it does not fill the gateway's memory, and it pays for what was produced.

let spine: Spine;
beforeAll(async () => {
  spine = await startSpine({
    toml: `
[limits]
requests_per_minute = 100000
burst = 1000
[billing]
drain_bytes = 1000000
[upstream]
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

test('twenty clients that do not read hold up their providers, not our memory', async () => {
  // About 13 MB each: more than what the sockets between hold.
  const tokens = 60_000;
  const before = await spine.balance();
  const rss = process.memoryUsage().rss;
  const readers = await Promise.all(Array.from({ length: 20 }, () => lazyReader(long(tokens))));
  // Until no provider gets rid of another byte.
  for (let sent = -1; ;) {
    const now = spine.provider.log.reduce((sum, call) => sum + call.bytes, 0);
    if (now === sent && spine.provider.log.length === 20) break;
    sent = now;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  expect(spine.provider.log.every((call) => call.end === null)).toBe(true);
  // Clients and provider included, which are in this process too: far below the 260 MB of the replies.
  expect(process.memoryUsage().rss - rss).toBeLessThan(80 * 1024 * 1024);

  // Who reads after all gets everything and pays for it.
  const [patient, ...others] = readers;
  const { tail } = await patient!.read();
  expect(tail).toContain('data: [DONE]');
  expect(tail).toContain(`"completion_tokens":${tokens}`);

  // Who hangs up pays for what was produced until the drain's bound.
  for (const { socket } of others) socket.destroy();
  await spine.quiet();
  const whole = BigInt(spine.provider.log[0]!.promptTokens + 2 * tokens);
  const paid = before.available - (await spine.balance()).available;
  expect(paid).toBeGreaterThan(whole + 19n * 1_000n);
  expect(paid).toBeLessThan(20n * whole);
}, 60_000);
