import { expect, test } from 'vitest';
import { ask } from '../../support/spine.ts';
import { AGENT, message, request, useRpcWorld } from './rpc-world.ts';

// What streams is not run, and the error says where it is.

const world = useRpcWorld();

const ENTRIES = [
  [request(1, 'chat/completions', ask('hello', { stream: true })), -32602, 'POST /api/v1/chat/completions'],
  [request(2, 'message/stream', { agent: AGENT, message: message('stream 3') }), -32601, 'POST /a2a/<agent>'],
  [request(3, 'SendStreamingMessage', { agent: AGENT, message: message('stream 3') }), -32601, 'POST /a2a/<agent>'],
  [request(4, 'tasks/resubscribe', { id: 'x' }), -32601, 'POST /a2a/<agent>'],
  [request(5, 'SubscribeToTask', { id: 'x' }), -32601, 'POST /a2a/<agent>'],
  [request(6, 'subscriptions/listen'), -32601, 'POST /mcp/<service>'],
] as const;

test.each(ENTRIES)('%j', async (entry, code, at) => {
  const locks = (await world.spine.locks()).length;
  const response = await world.post(entry);
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({
    id: entry.id,
    error: { code, message: expect.stringContaining(at) as string },
  });
  expect(await world.spine.locks()).toHaveLength(locks);
});

test('in a batch, beside what does not stream', async () => {
  const replies = await world.batch([
    ...ENTRIES.map(([entry]) => entry),
    request(7, 'chat/completions', ask('hello', { stream: false })),
  ]);
  expect(replies.map(({ error }) => error?.code)).toEqual([...ENTRIES.map(([, code]) => code), undefined]);
});
