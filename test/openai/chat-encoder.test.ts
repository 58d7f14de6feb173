import { expect, test } from 'vitest';
import { type CallEvent, textDelta } from '../../src/gateway/bridge/call-event.ts';
import { decodeChunk, createToolCallIds } from '../../src/openai/chat/reply/chat-decoder.ts';
import { createChatEncoder } from '../../src/openai/chat/reply/chat-encoder.ts';
import type { StartedChat } from '../../src/openai/chat/reply/chat-reply.ts';
import { chunksIn } from './support/replies.ts';

const opened = {
  id: 'gen-1',
  about: { id: 'gen-1', model: 'acme/small', startedAt: 1_800_000_000_000, sent: {} },
} as StartedChat;
const encoder = createChatEncoder({ dialect: 'own', asksUsage: false })(opened);
const written = (...events: readonly CallEvent[]) => encoder.events(events, 'Acme "1"');

test('each event is a chunk of the chat wire, with the names of the reply', () => {
  expect(chunksIn(written(textDelta('a "b" \n🌍')))).toEqual([
    {
      id: 'gen-1',
      object: 'chat.completion.chunk',
      created: 1_800_000_000,
      model: 'acme/small',
      provider: 'Acme "1"',
      choices: [{ index: 0, delta: { content: 'a "b" \n🌍' }, finish_reason: null }],
    },
  ]);
});

test('texts that came together are chunks of their own', () => {
  const deltas = chunksIn(written({ type: 'text-delta', json: ['one', '\\"two'] })).map(
    ({ choices }) => choices[0]!.delta,
  );
  expect(deltas).toEqual([{ content: 'one' }, { content: '"two' }]);
});

test('events that are written and decoded again are the same events', () => {
  const events: readonly CallEvent[] = [
    { type: 'reasoning-delta', member: 'reasoning_content', json: ['Hm, \\"well'] },
    textDelta('It is 7.'),
    { type: 'tool-input-start', index: 0, id: 'call_1', name: 'roll' },
    { type: 'tool-input-delta', index: 0, json: ['{\\"dice\\":'] },
    { type: 'tool-input-delta', index: 0, json: ['\\"2d6\\"}'] },
    { type: 'file', file: { kind: 'file', mediaType: 'image/png', name: null, url: null, bytes: 'iVBORw0=' } },
  ];
  const again: CallEvent[] = [];
  for (const chunk of chunksIn(written(...events))) decodeChunk(chunk, createToolCallIds(), again);
  expect(again).toEqual(events);
});

test('what has no chunk of its own is text: data as JSON, a file elsewhere as a link', () => {
  const url = 'https://files.example/a.png';
  const file = { kind: 'file', mediaType: 'image/png', name: null, url, bytes: null } as const;
  const said = chunksIn(written({ type: 'data', data: { a: 1 } }, { type: 'file', file }));
  expect(said.map(({ choices }) => choices[0]!.delta.content)).toEqual(['{"a":1}', `\n![image](${url})\n`]);
});

test('progress is a comment of one line, and a whole chunk passes as it is', () => {
  const chunk = { id: 'x', choices: [], of: 'any provider' };
  expect(written({ type: 'progress', text: 'looking\nfor it' }, { type: 'raw', chunk })).toBe(
    `: looking for it\n\ndata: ${JSON.stringify(chunk)}\n\n`,
  );
});
