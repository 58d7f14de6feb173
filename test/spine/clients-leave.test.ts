import { afterEach, beforeEach, expect, test } from 'vitest';
import { nextClientGone } from '../support/client-gone.ts';
import { atThisLoad } from '../support/at-this-load.ts';
import { openSocket } from '../support/raw-http.ts';
import { ask, modelBlock, startSpine, UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// A client that hangs up, at whatever moment, at a provider that does not stop: the work that it did is paid, once, and
// nobody else notices. test/spine/stop/ has providers that stop.

const DEAF = 'test/deaf';
const askDeaf = (text: string, more: object = {}) => ask(text, { model: DEAF, ...more });
const spine = spineOfFile(() => ({
  toml: `${UNHURRIED}\n[billing]\ndrain_ms = ${atThisLoad(20_000)}\n[upstream]\ncooldown_ms = 0\n${modelBlock({ name: DEAF, provider: 'Deaf', url: '{provider}', lines: 'stops = false' })}`,
}));
beforeEach(() => {
  spine.provider.log.length = 0;
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const price = () =>
  spine.provider.log.reduce((sum, call) => sum + BigInt(call.promptTokens + 2 * call.plannedTokens), 0n);
const paid = async (run: () => Promise<unknown>) => {
  const before = await spine.balance();
  await run();
  await spine.quiet();
  return before.available - (await spine.balance()).available;
};
const leave = async (body: object) => {
  const leaving = new AbortController();
  spine.provider.hold(nextClientGone(spine));
  const response = spine.post('/chat/completions', body, {}, leaving.signal).catch(() => null);
  while (spine.provider.log.length === 0) await new Promise((resolve) => setImmediate(resolve));
  leaving.abort();
  await response;
  spine.provider.hold(null);
};

test.each([false, true])('before the provider has said anything: its answer is paid (stream: %s)', async (stream) => {
  const amount = await paid(() => leave(askDeaf('hello !tokens:8', { stream })));
  expect(amount).toBe(price());
  expect(await spine.generation((await spine.locks()).at(-1)!)).toMatchObject({
    state: 'settled',
    cancelled: true,
    estimated: false,
    cost_micro_usdc: Number(amount),
  });
});

test.each([false, true])('and the provider then fails: nothing is paid (stream: %s)', async (stream) => {
  expect(await paid(() => leave(askDeaf('hello !status:500', { stream })))).toBe(0n);
});

test('and the provider never answers: its measured prompt is paid', async () => {
  const brief = await startSpine({ toml: `${UNHURRIED}\n[billing]\ndrain_ms = 300`, provider: spine.provider });
  const before = await brief.balance();
  for (const stream of [false, true]) {
    spine.provider.log.length = 0;
    const leaving = new AbortController();
    const response = brief
      .post('/chat/completions', ask('hello !head-delay:forever', { stream }), {}, leaving.signal)
      .catch(() => null);
    while (spine.provider.log.length === 0) await new Promise((resolve) => setImmediate(resolve));
    leaving.abort();
    await response;
    expect(await brief.faults()).toEqual([]);
    await spine.provider.settled(1);
    expect(spine.provider.log[0]!.end).toBe('client_closed');
  }
  expect(await brief.balance()).toEqual({ ...before, available: before.available - 16n });
  await brief.stop();
});

test('right after the request, before it can have been read', async () => {
  const amount = await paid(async () => {
    const body = JSON.stringify(askDeaf('hello !tokens:4'));
    const socket = await openSocket(spine.origin);
    socket.write(
      `POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${spine.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await new Promise((resolve) => setImmediate(resolve));
    socket.destroy();
    // Another call behind it, so that its fate is decided by now.
    await (await spine.post('/chat/completions', askDeaf('hello !tokens:4'))).text();
  });
  expect(amount).toBe(price());
});

test('in the middle of its own body', async () => {
  const amount = await paid(async () => {
    const socket = await openSocket(spine.origin);
    socket.write(
      `POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${spine.key}\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{"model":`,
    );
    socket.resume().end();
    await new Promise((resolve) => socket.once('close', resolve));
  });
  expect(amount).toBe(0n);
  expect(spine.provider.log).toHaveLength(0);
});

/** Spread over the whole stream: the deep run has a call for each 60 bytes. */
const LEAVING = process.env['TOLLGATE_DEEP'] === '1' ? 100 : 25;

test('at any byte of a stream: each of many calls is paid once, by what was reported', async () => {
  const amount = await paid(async () => {
    await Promise.all(
      Array.from({ length: LEAVING }, async (_, index) => {
        const leaving = new AbortController();
        const response = await spine.post(
          '/chat/completions',
          askDeaf('hello !tokens:30 !split:5', { stream: true }),
          {},
          leaving.signal,
        );
        const reader = response.body!.getReader();
        let bytes = 0;
        try {
          while (bytes < (index * 6_000) / LEAVING) {
            const { done, value } = await reader.read();
            if (done) break;
            bytes += value.length;
          }
        } finally {
          leaving.abort();
        }
      }),
    );
    await spine.provider.settled(LEAVING);
  });
  expect(spine.provider.log).toHaveLength(LEAVING);
  expect(spine.provider.log.every(({ end }) => end === 'finished')).toBe(true);
  expect(amount).toBe(price());
});
