import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { nextClientGone } from '../../support/client-gone.ts';
import { ask, modelBlock } from '../../support/spine.ts';
import { startTunnelSpine, until } from '../../support/tunnel-spine.ts';

/* Answers in one piece whose client leaves, and what is not begun for a client that has left. */

const TEXT = 'x'.repeat(400);
/** One token for each four bytes of the text, and of its role. */
const PROMPT = 101;
const USAGE = { prompt_tokens: 30, completion_tokens: 7, total_tokens: 37 };
const ANSWER = JSON.stringify({
  id: 'x',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello to you' }, finish_reason: 'stop' }],
  usage: USAGE,
});

/** A vendor that answers when it is told to. */
async function startHeld() {
  const asked: ServerResponse[] = [];
  const server = createServer((request, response) => {
    request.resume().once('end', () => void asked.push(response));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, asked };
}

test.each([
  ['an own provider that stops', 'own', '', false, PROMPT],
  ['a provider that dialled in', 'far', '', false, 0],
  ['a provider that stops streams alone', 'own', 'stops = "streams"', true, 44],
  ['a provider that does not stop', 'own', 'stops = false', true, 44],
  ['a provider that dialled in and does not stop', 'far', 'stops = false', true, 44],
])('an answer in one piece of %s', async (_name, side, lines, isReadOn, cost) => {
  const vendor = await startHeld();
  const block = modelBlock({ name: 'acme/model', provider: 'Acme', url: vendor.url, lines });
  const { spine, dialIn } = await startTunnelSpine(side === 'own' ? block : '');
  if (side === 'far') await dialIn({ services: block });
  const leaving = new AbortController();
  const gone = nextClientGone(spine);
  const asking = spine.post(
    '/chat/completions',
    ask(TEXT, { model: 'acme/model' }),
    { 'x-request-id': 'left' },
    leaving.signal,
  );
  asking.catch(() => {});
  await until(() => vendor.asked.length === 1);
  const [answer] = vendor.asked;
  const closed = once(answer!, 'close');
  leaving.abort();
  await gone;
  if (isReadOn) answer!.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER);
  await closed;
  await spine.quiet();
  expect(answer!.writableFinished).toBe(isReadOn);
  const { data } = (await (await spine.get('/generations')).json()) as { data: Record<string, unknown>[] };
  expect(data).toMatchObject([
    { request_id: 'left', cost_micro_usdc: cost, cancelled: true, estimated: cost === PROMPT },
  ]);
});

test('a provider that fails when its client has left is not followed by another', async () => {
  const [vendor, other] = [await startHeld(), await startHeld()];
  const { spine } = await startTunnelSpine(
    modelBlock({ name: 'acme/model', provider: 'First', url: vendor.url }) +
      modelBlock({ name: 'acme/model', provider: 'Second', url: other.url }),
  );
  const leaving = new AbortController();
  const gone = nextClientGone(spine);
  const body = ask('hello', { model: 'acme/model', stream: true, provider: { order: ['First', 'Second'] } });
  spine.post('/chat/completions', body, {}, leaving.signal).catch(() => {});
  await until(() => vendor.asked.length === 1);
  leaving.abort();
  await gone;
  vendor.asked[0]!.writeHead(503).end();
  await spine.quiet();
  expect(other.asked).toEqual([]);
  const { data } = (await (await spine.get('/generations')).json()) as { data: Record<string, unknown>[] };
  expect(data).toMatchObject([{ state: 'released', cancelled: true, cost_micro_usdc: 0 }]);
});

test('a request with an idempotency key is read on, and its head says so', async () => {
  const vendor = await startHeld();
  const { spine } = await startTunnelSpine(modelBlock({ name: 'acme/model', provider: 'Acme', url: vendor.url }));
  const leaving = new AbortController();
  const gone = nextClientGone(spine);
  const body = ask('hello', { model: 'acme/model', stream: true });
  const asking = spine.post('/chat/completions', body, { 'idempotency-key': 'once' }, leaving.signal);
  await until(() => vendor.asked.length === 1);
  const [answer] = vendor.asked;
  const event = (chunk: object) =>
    `data: ${JSON.stringify({ object: 'chat.completion.chunk', id: 'x', ...chunk })}\n\n`;
  answer!.writeHead(200, { 'content-type': 'text/event-stream' });
  answer!.write(event({ choices: [{ index: 0, delta: { content: 'hello' }, finish_reason: null }] }));
  expect((await asking).headers.get('x-tollgate-stops')).toBe('false');
  leaving.abort();
  await gone;
  answer!.end(
    `${event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}${event({ choices: [], usage: USAGE })}data: [DONE]\n\n`,
  );
  await spine.quiet();
  expect(await spine.generation((await asking).headers.get('x-generation-id'))).toMatchObject({
    cost_micro_usdc: 44,
    estimated: false,
  });
});
