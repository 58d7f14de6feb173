import { expect, test } from 'vitest';
import { useCallsWorld } from './support/calls-world.ts';
import { serveRaw, statusEvent, taskResult } from './support/raw-served.ts';
import type { RawExchange } from '../../support/a2a-agent/index.ts';

// Events that an agent writes at once go on at once to a client of another API. None of them waits for the next read.

const calls = useCallsWorld();

const eventOf = (id: unknown, result: object) => `data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`;
const artifact = (taskId: string, text: string, append: boolean) => ({
  artifactUpdate: {
    taskId,
    contextId: `context-of-${taskId}`,
    artifact: { artifactId: 'a', parts: [{ text }] },
    append,
  },
});

test.each([
  ['nothing', ''],
  ['a comment', ': still here\n\n'],
  ['an event id alone', 'id: 7\n\n'],
  ['the beginning of an event', 'da'],
])('what came before %s does not wait', async (_what, behind) => {
  const goOn = Promise.withResolvers<void>();
  const taskId = `t-together-${behind.length}`;
  const answer = async ({ request, response }: RawExchange) => {
    const { id } = JSON.parse(request.body) as { id: unknown };
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const said = ['It ', 'rains', '.'].map((text, index) => eventOf(id, artifact(taskId, text, index > 0)));
    response.write(eventOf(id, taskResult(taskId, 'WORKING')) + said.join('') + behind);
    await goOn.promise;
    response.end(eventOf(id, statusEvent(taskId, 'COMPLETED')).slice(behind === 'da' ? behind.length : 0));
  };
  const { service } = await serveRaw(calls.world, answer, { pricing: 'per_task = 0.001' });
  await expectWordsBefore(service, goOn);
});

// The agent breaks its stream off, and the gateway looks at its task until it ends.
test('what came together with an error does not wait for the end of the task', async () => {
  const goOn = Promise.withResolvers<void>();
  let isOver = false;
  void goOn.promise.then(() => (isOver = true));
  const taskId = 't-broken-off';
  const answer = ({ request, response }: RawExchange) => {
    const { id, method } = JSON.parse(request.body) as { id: unknown; method: string };
    if (method === 'GetTask') {
      const { task } = taskResult(taskId, isOver ? 'COMPLETED' : 'WORKING');
      response.writeHead(200, { 'content-type': 'application/json' });
      return void response.end(JSON.stringify({ jsonrpc: '2.0', id, result: task }));
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const said = ['It ', 'rains', '.'].map((text, index) => eventOf(id, artifact(taskId, text, index > 0)));
    const error = `data: ${JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32603, message: 'broken' } })}\n\n`;
    response.end(eventOf(id, taskResult(taskId, 'WORKING')) + said.join('') + error);
  };
  const { service } = await serveRaw(calls.world, answer, { pricing: 'per_task = 0.001' });
  await expectWordsBefore(service, goOn);
});

/** Asks the agent by chat. Its words have to come before the agent goes on. */
async function expectWordsBefore(service: string, goOn: PromiseWithResolvers<void>): Promise<void> {
  const { origin, key } = calls.world.spine;
  const response = await fetch(`${origin}/api/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: `a2a/${service}`, stream: true, messages: [{ role: 'user', content: 'rain?' }] }),
  });
  expect(response.status).toBe(200);
  let text = '';
  const words = () => [...text.matchAll(/"content":"((?:[^"\\]|\\.)*)"/g)].map(([, word]) => word);
  const decoder = new TextDecoder();
  for await (const bytes of response.body!) {
    text += decoder.decode(bytes, { stream: true });
    if (words().join('') === 'It rains.') goOn.resolve();
  }
  expect(words().filter((word) => word !== '')).toEqual(['It ', 'rains', '.']);
  expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true);
}
