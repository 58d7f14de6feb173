import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { atThisLoad } from '../../support/at-this-load.ts';
import { readItems } from '../../../src/openai/responses/decode-request.ts';
import { ToolNames } from '../../../src/openai/translated/tool-names.ts';
import { chatEndOf, createToolCallIds, decodeChunk } from '../../../src/openai/chat/reply/chat-decoder.ts';
import { type CallEvent, textOf } from '../../../src/gateway/bridge/call-event.ts';
import { serviceAtAddress } from '../../../src/openai/translated/service-names.ts';
import { wireRequest } from './support/wire-request.ts';
import { createSealedCalls } from '../../../src/openai/chat/reply/echo-fields.ts';
import { createSealedThinking } from '../../../src/openai/chat/reply/sealed-thinking.ts';

const sealed = createSealedCalls(randomBytes(32));
const ids = sealed({ account: 'a', model: 'm' });

const choices = (content: string) => [{ index: 0, delta: { content }, finish_reason: null }];

test('an error or a usage of null is none, and a text of nothing is not said', () => {
  const events: CallEvent[] = [];
  for (const content of ['one', 'two', ''])
    decodeChunk({ id: 'c', choices: choices(content), error: null, usage: null }, createToolCallIds(), events);
  expect(events.map((event) => (event.type === 'text-delta' ? textOf(event) : event))).toEqual(['one', 'two']);
  expect(chatEndOf({ id: 'c', choices: [], error: null }, { cost: 1 })).toMatchObject({
    usage: { cost: 1 },
    fault: null,
  });
});

test('thoughts between two calls of one turn do not part it; those of a turn that was broken off are dropped', () => {
  const request = wireRequest();
  const call = (id: string) => ({ type: 'function_call', call_id: id, name: 'f', arguments: '{}' });
  const think = (text: string) => ({
    type: 'reasoning',
    encrypted_content: request.seals.seal({ reasoning_content: text }),
  });
  const { chat } = readItems(
    [
      { role: 'user', content: 'go' },
      think('one'),
      call('a'),
      think('two'),
      call('b'),
      { type: 'function_call_output', call_id: 'a', output: '1' },
      { type: 'function_call_output', call_id: 'b', output: '2' },
      think('lost'),
      { role: 'user', content: 'stop' },
      { role: 'assistant', content: [{ type: 'output_text', text: 'done' }] },
    ],
    { request },
  );
  expect(chat.map(({ role, reasoning_content: thought }) => [role, thought ?? null])).toEqual([
    ['user', null],
    ['assistant', 'onetwo'],
    ['tool', null],
    ['tool', null],
    ['user', null],
    ['assistant', null],
  ]);
});

test(
  'thousands of tools with one beginning are named in a moment',
  () => {
    const registry = new ToolNames();
    const names = Array.from({ length: 10_000 }, (_, at) => registry.short(`${'n'.repeat(70)}${at}`));
    expect(new Set(names).size).toBe(10_000);
    expect(Math.max(...names.map(({ length }) => length))).toBe(64);
  },
  atThisLoad(2_000),
);

test('a character that came in two halves has the signature of the whole', () => {
  const seals = createSealedThinking(randomBytes(32));
  const of = { account: 'a', model: 'm' };
  const signing = seals.signing(of);
  signing.add('toll \ud83d');
  signing.add('\ude00');
  expect(seals.open(of, 'toll \u{1f600}', signing.signature({}))).toEqual({
    reasoning_content: 'toll \u{1f600}',
  });
});

describe('the id of a call', () => {
  const call = { extra_content: { google: { thought_signature: 'S' } } };
  const message = { reasoning_content: 'Hm.' };
  const nothing = { call: {}, message: {} };

  test('contains what the provider wants back, in characters that every client takes', () => {
    const id = ids.seal('call_1', call, message);
    expect(id).toMatch(/^[a-zA-Z0-9_-]+$/);
    expect(ids.open(id)).toEqual({ id: 'call_1', call, message });
  });

  test('is that of the provider if there is nothing to give back', () => {
    expect(ids.seal('call_1', {}, {})).toBe('call_1');
    expect(ids.open('call_1')).toEqual({ id: 'call_1', ...nothing });
  });

  test('contains the members of the call alone if those of the message are too long, and else none', () => {
    const long = 'x'.repeat(13_000);
    expect(ids.open(ids.seal('call_1', call, { reasoning: long }))).toEqual({ id: 'call_1', call, message: {} });
    expect(ids.seal('call_1', { extra_content: long }, message)).toBe('call_1');
  });

  test('is the provider’s own for another model, which gets no members', () => {
    const id = ids.seal('call_1', call, message);
    expect(sealed({ account: 'a', model: 'other' }).open(id)).toEqual({ id: 'call_1', ...nothing });
  });

  test('is short and always the same if another account or gateway made it, or if it was altered', () => {
    const id = ids.seal('call_1', call, message);
    const altered = `${id.slice(0, -9)}${id.at(-9) === 'x' ? 'y' : 'x'}${id.slice(-8)}`;
    const readers = [
      [sealed({ account: 'b', model: 'm' }), id],
      [createSealedCalls(randomBytes(32))({ account: 'a', model: 'm' }), id],
      [ids, altered],
      [ids, `tg3_${'x'.repeat(100_000)}`],
    ] as const;
    for (const [reader, given] of readers) {
      const opened = reader.open(given);
      expect(opened).toEqual({ id: expect.stringMatching(/^call_[0-9a-f]{24}$/) as string, ...nothing });
      expect(reader.open(given)).toEqual(opened);
    }
  });
});

test('an address that is no UTF-8 is of no service', () => {
  const at = (url: string) => serviceAtAddress(url, ['here.example']);
  expect(at('https://here.example/mcp/%E0%A4%A')).toBeNull();
  expect(at('https://here.example/mcp/acme/t%C3%B6ols')).toBe('acme/töols');
});
