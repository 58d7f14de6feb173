import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  type Behaviour,
  beginStream,
  chatEvents,
  type FailingUpstream,
  startFailingUpstream,
} from '../support/failing-upstream.ts';
import { ask, modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// A provider opens its stream and then has no quota, is overloaded or says nothing more. Nothing of an answer has come,
// so the next provider is asked, and the client sees its answer alone.

const named = (...events: object[]) =>
  events.map((event) => `event: ${(event as { type: string }).type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
const untyped = (...events: object[]) => events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
const OVERLOADED = { type: 'overloaded_error', message: 'too many requests' };
const response = (status: string, more: object = {}) => ({
  id: 'r1',
  object: 'response',
  model: 'm',
  status,
  output: [],
  ...more,
});
const item = { type: 'message', id: 'i1', role: 'assistant', status: 'in_progress', content: [] };

/** What opens a stream of each wire, and the error that follows. */
const WIRES = {
  chat: { opening: chatEvents.role, error: chatEvents.error(OVERLOADED) },
  messages: {
    opening:
      ': a comment\n\n' +
      named(
        {
          type: 'message_start',
          message: {
            id: 'm1',
            type: 'message',
            role: 'assistant',
            model: 'm',
            content: [],
            usage: { input_tokens: 3, output_tokens: 0 },
          },
        },
        { type: 'ping' },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      ),
    error: named({ type: 'error', error: OVERLOADED }),
  },
  responses: {
    opening: named(
      { type: 'response.created', sequence_number: 0, response: response('in_progress') },
      { type: 'response.in_progress', sequence_number: 1, response: response('in_progress') },
      { type: 'response.output_item.added', sequence_number: 2, output_index: 0, item },
    ),
    error: named({
      type: 'response.failed',
      sequence_number: 3,
      response: response('failed', { error: { code: 'insufficient_quota', message: 'no quota' } }),
    }),
  },
  gemini: {
    opening: untyped({ candidates: [{ content: { role: 'model', parts: [{ text: '' }] }, index: 0 }] }),
    error: untyped({ error: { code: 429, message: 'no quota', status: 'RESOURCE_EXHAUSTED' } }),
  },
} as const;
type Wire = keyof typeof WIRES;

const fine: Behaviour = (reply) =>
  beginStream(reply).end(chatEvents.role + chatEvents.text('spare words') + chatEvents.end);
const failing: Record<string, Behaviour> = { fine };
for (const [wire, { opening, error }] of Object.entries(WIRES)) {
  failing[`${wire}-error`] = (reply) => beginStream(reply).end(opening + error);
  failing[`${wire}-apart`] = (reply) => {
    beginStream(reply).write(opening);
    setTimeout(() => reply.end(error), 100);
  };
  failing[`${wire}-silence`] = (reply) => void beginStream(reply).write(opening);
  failing[`${wire}-closed`] = (reply) => beginStream(reply).end(opening);
}

let upstream: FailingUpstream<string>;
let spine: Spine;
let skew = 0;

beforeAll(async () => {
  upstream = await startFailingUpstream(failing);
  const block = (name: string, provider: string, params: string) =>
    modelBlock({ name: `test/${name}`, provider, url: upstream.urlOf(name), params });
  spine = await startSpine({
    now: () => Date.now() + skew,
    toml: `${UNHURRIED}
[upstream]
cooldown_ms = 0
${block('fine', 'Spare', '')}
${Object.keys(failing)
  .filter((name) => name !== 'fine')
  .map((name) => {
    const [wire] = name.split('-');
    const wires = wire === 'chat' ? '' : `wires = ["${wire}"]\n`;
    return block(name, 'First', `${wires}${name.endsWith('silence') ? 'first_event_timeout_ms = 300' : ''}`);
  })
  .join('')}`,
  });
});
afterAll(async () => {
  await spine.stop();
  upstream.stop();
});
beforeEach(() => {
  skew += 3_600_000;
  upstream.clear();
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

/** A streamed request of each wire, for `model`, with the fallback. */
function post(wire: Wire, model: string): Promise<Response> {
  const routing = { models: ['test/fine'], stream: true };
  const chat = ask('hello', { model, ...routing });
  if (wire === 'chat') return spine.post('/chat/completions', chat);
  if (wire === 'messages') return spine.post('/messages', chat);
  if (wire === 'responses')
    return spine.post('/responses', { model, input: 'hello', max_output_tokens: 50, ...routing });
  return fetch(`${spine.origin}/v1beta/models/${model}:streamGenerateContent?alt=sse`, {
    method: 'POST',
    headers: { 'x-goog-api-key': spine.key, 'content-type': 'application/json' },
    body: JSON.stringify({ contents: [{ parts: [{ text: 'hello' }] }], models: ['test/fine'] }),
  });
}

describe.each(Object.keys(WIRES) as Wire[])('%s', (wire) => {
  test.each([
    ['an error behind the opening', 'error'],
    ['an error after the opening', 'apart'],
    ['silence after the opening', 'silence'],
    ['a close after the opening', 'closed'],
  ])('%s: the next provider answers, alone', async (_name, how) => {
    const before = await spine.balance();
    const reply = await post(wire, `test/${wire}-${how}`);
    const text = await reply.text();
    expect([reply.status, reply.headers.get('x-provider')]).toEqual([200, 'Spare']);
    expect(text).toContain('spare words');
    expect(text).not.toMatch(/quota|overloaded|too many/);
    if (wire === 'messages') expect(text.match(/event: message_start/g)).toHaveLength(1);
    if (wire === 'responses') expect(text.match(/event: response.created/g)).toHaveLength(1);
    expect(upstream.seen(`${wire}-${how}`)).toHaveLength(1);
    await spine.quiet();
    // 10 prompt tokens at 1 and 4 completion tokens at 2 micro-USD a token.
    expect(before.available - (await spine.balance()).available).toBe(18n);
  });
});
