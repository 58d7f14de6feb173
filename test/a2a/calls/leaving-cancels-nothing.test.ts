import { expect, test } from 'vitest';
import { LEGACY_RPC, MESSAGE_PRICE, REST, RPC, useCallsWorld, type Wire } from './support/calls-world.ts';
import { METHODS } from '../../../src/a2a/wire/protocol.ts';

const calls = useCallsWorld();

/** A request of one's own making that is broken off once the agent has it. */
function leave(url: string, wire: Wire, text: string, messageId: string) {
  const gone = new AbortController();
  const message =
    wire.version === '1.0'
      ? { messageId, role: 'ROLE_USER', parts: [{ text }] }
      : { kind: 'message', messageId, role: 'user', parts: [{ kind: 'text', text }] };
  const rest = wire.binding === 'HTTP+JSON';
  const body = rest ? { message } : { jsonrpc: '2.0', id: 1, method: METHODS[wire.version].send, params: { message } };
  const answered = fetch(`${url}${rest ? '/message:send' : ''}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${calls.world.spine.key}`,
      'content-type': 'application/json',
      'a2a-version': wire.version,
    },
    body: JSON.stringify(body),
    signal: gone.signal,
  });
  return { answered, hangUp: () => gone.abort() };
}

const cancels = (received: readonly { readonly method: string | null; readonly path: string }[]) =>
  received.filter(({ method, path }) => /cancel/i.test(method ?? '') || path.includes(':cancel')).length;

test.each([RPC, LEGACY_RPC, REST])('a client that hangs up while it waits for the answer: $name', async (wire) => {
  const { url, agent } = await calls.serve({ version: 'both' });
  const talk = calls.talk(url, wire);
  expect(
    await calls.spent(async () => {
      const { answered, hangUp } = leave(url, wire, 'wait', `left ${wire.name}`);
      const id = await agent.waits();
      hangUp();
      await expect(answered).rejects.toThrow('aborted');
      expect(await calls.locked()).toBe(MESSAGE_PRICE);
      // The fixture holds the answer back until its task ends.
      agent.finish(id);
      await calls.world.spine.quiet();
      const task = await talk.get(id);
      expect(task).toMatchObject({ state: 'completed', artifacts: [{ parts: [{ value: 'finished' }] }] });
    }),
  ).toBe(MESSAGE_PRICE);
  expect(cancels(agent.received)).toBe(0);
});

test.each([RPC, LEGACY_RPC, REST])('a client that hangs up in the middle of a stream: $name', async (wire) => {
  const { url, agent } = await calls.serve({ version: 'both' });
  const talk = calls.talk(url, wire);
  expect(
    await calls.spent(async () => {
      const stream = await talk.stream('wait');
      await stream.next();
      const id = await agent.waits();
      stream.leave();
      // It may come back and listen on.
      const again = await talk.subscribe(id);
      await again.next();
      agent.progress(id, 'half ');
      again.leave();
      expect(await calls.locked()).toBe(MESSAGE_PRICE);
      agent.finish(id);
      expect(await talk.reaches(id, 'completed')).toMatchObject({ state: 'completed' });
    }),
  ).toBe(MESSAGE_PRICE);
  expect(cancels(agent.received)).toBe(0);
});

test('a client that hangs up while it only listens, with nobody else there: the gateway sees the end by itself', async () => {
  const { url, agent } = await calls.serve();
  const talk = calls.talk(url);
  expect(
    await calls.spent(async () => {
      const { id } = await talk.task('wait', { immediately: true });
      await agent.waits();
      const listening = await talk.subscribe(id);
      await listening.next();
      listening.leave();
      agent.finish(id);
      await calls.pollSoon();
      await calls.world.spine.quiet();
    }),
  ).toBe(MESSAGE_PRICE);
  expect(cancels(agent.received)).toBe(0);
});

test('a hundred clients that hang up at once leave nothing locked and nothing unpaid', async () => {
  const { url, agent } = await calls.serve();
  expect(
    await calls.spent(async () => {
      const left = Array.from({ length: 100 }, (_, index) => leave(url, RPC, 'slow 300', `many ${index}`));
      await expect.poll(() => agent.received.filter(({ method }) => method === 'SendMessage').length).toBe(100);
      for (const { hangUp } of left) hangUp();
      await Promise.allSettled(left.map(({ answered }) => answered));
    }),
  ).toBe(100n * MESSAGE_PRICE);
  expect(cancels(agent.received)).toBe(0);
});
