import { afterEach, expect, it } from 'vitest';
import { startGateway, type ScriptedReply } from './support/gateway.ts';
import { chunkOf, chunksIn, delta, events } from './support/replies.ts';

let close: () => Promise<unknown>;
afterEach(() => close());

const ask = { model: 'acme/small', stream: true, messages: [{ role: 'user', content: 'hi' }] };

async function streamed(chunks: ScriptedReply['chunks']) {
  const gateway = await startGateway({ reply: () => ({ chunks }) });
  close = gateway.close;
  const response = await gateway.post(ask);
  return { status: response.status, text: await response.text(), state: gateway.state };
}

it.each([
  ['breaks off', [events(chunkOf([delta('half')]))]],
  ['reports an error', [events(chunkOf([delta('half')])), events({ error: { message: 'provider-secret' } })]],
  [
    'names an error',
    [`${events(chunkOf([delta('half')]))}event: error\n`, events({ message: 'provider-secret' }, '[DONE]')],
  ],
  ['sends no JSON', [events(chunkOf([delta('half')])), 'data: {oops\n\n']],
])('a stream that %s after its first byte ends with one error event', async (_name, chunks) => {
  const { status, text, state } = await streamed(chunks);
  expect(status).toBe(200);
  expect(text).not.toContain('[DONE]');
  expect(text).not.toContain('provider-secret');
  const [first, last, ...more] = chunksIn(text);
  expect(more).toEqual([]);
  expect(first!['choices'][0]!.delta.content).toBe('half');
  expect(last).toMatchObject({
    id: 'gen-1',
    model: 'acme/small',
    choices: [{ index: 0, finish_reason: 'error' }],
    error: { code: 500, type: 'provider_unavailable', message: expect.stringContaining('Provider acme failed') },
  });
  expect(last).not.toHaveProperty('usage');
  expect(state.settled).toEqual([]);
  expect(state.errors).toHaveLength(1);
});

it('what we do not know ourselves shows nothing of itself', async () => {
  const { text } = await streamed(
    (async function* () {
      yield events(chunkOf([delta('half')]));
      throw new Error('password is hunter2');
    })(),
  );
  expect(text).not.toContain('hunter2');
  expect(chunksIn(text)[1]).toMatchObject({ error: { code: 500, type: 'internal', message: 'Internal error' } });
});
