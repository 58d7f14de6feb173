import { expect, test } from 'vitest';
import { heldBy, LEGACY_REST, LEGACY_RPC, MESSAGE_PRICE, REST, RPC, useCallsWorld } from './support/calls-world.ts';
import { serveRaw, taskResult } from './support/raw-served.ts';

// A repeat of a message is given the result that was paid for, however large it is.

const BYTES = 1.5 * 1024 * 1024;
const calls = useCallsWorld('[media]\nfree_bytes_min = 1\n');
const saying = (messageId: string) => ({ message: { messageId } });

/** An agent that keeps nothing: each message is answered once. */
const serveLarge = () =>
  serveRaw(calls.world, ({ request, response, id, result }) => {
    if (request.method === 'GetTask') return void response.writeHead(500).end('gone');
    if (request.body.includes('a task')) {
      const artifacts = [{ artifactId: 'a', parts: [{ text: 'x'.repeat(BYTES) }] }];
      return result(taskResult(`task-${String(id)}`, 'COMPLETED', { artifacts }));
    }
    const text = `é ${'x'.repeat(BYTES)}`;
    const message =
      request.method === 'message/send'
        ? { kind: 'message', messageId: 'answer', role: 'agent', parts: [{ kind: 'text', text }] }
        : { message: { messageId: 'answer', role: 'ROLE_AGENT', parts: [{ text }] } };
    response.writeHead(200, { 'content-type': 'application/json' });
    // The ends of lines between its tokens are the agent's own.
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result: message }, null, 1));
  });

test.each([
  ['a message', RPC],
  ['a message', REST],
  ['a message', LEGACY_RPC],
  ['a message', LEGACY_REST],
  ['a task', RPC],
] as const)('%s is repeated as it was, and charged once: %s', async (words, wire) => {
  const { url, agent } = await serveLarge();
  const talk = calls.talk(url, wire);
  expect(
    await calls.spent(async () => {
      const first = await talk.sent(words, saying('large'));
      const again = await talk.sent(words, saying('large'));
      expect([again.status, again.error]).toEqual([200, null]);
      expect(again.text.length).toBeGreaterThan(BYTES);
      expect(heldBy(again)).toEqual(heldBy(first));
      expect(heldBy(again)['metadata']).toMatchObject({ 'tollgate/generation': { cost: '0.001' } });
      if (wire === LEGACY_REST) return;
      // As a stream it is one event.
      const events = await (await talk.stream(words, saying('large'))).rest();
      expect(events).toMatchObject([{ type: words === 'a task' ? 'task' : 'message' }]);
    }),
  ).toBe(MESSAGE_PRICE);
  expect(agent.received.filter(({ body }) => body.includes('"parts"'))).toHaveLength(1);
});

test('a large question that was answered is not asked again: its task is shown', async () => {
  const { url, agent } = await serveRaw(calls.world, ({ request, result }) => {
    if (request.method === 'GetTask') return result(taskResult('asked', 'COMPLETED').task);
    const artifacts = [{ artifactId: 'a', parts: [{ text: 'x'.repeat(BYTES) }] }];
    result(taskResult('asked', request.body.includes('taskId') ? 'COMPLETED' : 'INPUT_REQUIRED', { artifacts }));
  });
  const talk = calls.talk(url);
  expect(
    await calls.spent(async () => {
      const { contextId } = await talk.task('ask', saying('question'));
      await talk.sent('blue', { message: { messageId: 'answer', taskId: 'asked', contextId } });
      expect(await talk.task('ask', saying('question'))).toMatchObject({ id: 'asked', state: 'completed' });
    }),
  ).toBe(2n * MESSAGE_PRICE);
  expect(agent.received.filter(({ body }) => body.includes('"parts"'))).toHaveLength(2);
});

test('a bare message is answered in its own form again, which is none of JSON-RPC', async () => {
  const { url } = await serveLarge();
  const message = { messageId: 'forms', role: 'ROLE_USER', parts: [{ text: 'a message' }] };
  const ask = async (body: object) => {
    const headers = {
      authorization: `Bearer ${calls.world.spine.key}`,
      'content-type': 'application/json',
      'a2a-version': '1.0',
    };
    return (await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).text();
  };
  expect(
    await calls.spent(async () => {
      const first = await ask({ message });
      expect(JSON.parse(first)).toMatchObject({
        status: { state: 'completed' },
        artifacts: [{ artifactId: 'answer' }],
      });
      expect((await ask({ message })) === first).toBe(true);
      const other = await ask({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } });
      expect(other).toMatch(/too long or newer answers replaced it/);
    }),
  ).toBe(MESSAGE_PRICE);
});
