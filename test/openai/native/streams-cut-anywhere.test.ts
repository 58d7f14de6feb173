import { deepEqual, equal } from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createMessagesDecoder } from '../../../src/openai/messages/passthrough.ts';
import { createNativeStreamReader } from '../../../src/openai/native/native-stream-reader.ts';
import type { NativeDecoder } from '../../../src/openai/native/passthrough.ts';
import { createResponsesDecoder } from '../../../src/openai/responses/passthrough.ts';
import { CONTEXT, textBefore } from '../support/replies.ts';
import { cutAt, lengths } from '../translated/support/transcripts.ts';
import { messageEvents, responseEvents } from './support/transcripts.ts';
import { event } from './support/wire-upstream.ts';

// Streams of providers that speak the client's wire, wherever the network cuts them.

const RUNS = process.env['TOLLGATE_DEEP'] === '1' ? 50_000 : 150;
const NAME = 'acme/small';
const COST = { cost: 1 };

/** All that the client gets, and what is billed. */
function read(decoder: NativeDecoder, reads: readonly Buffer[]) {
  const reader = createNativeStreamReader(CONTEXT, decoder);
  reader.head(200, { 'content-type': 'text/event-stream' });
  let text = '';
  for (const one of reads) text += reader.data([one])?.toString() ?? '';
  const { usage, result, outcome, finishReason } = reader.end();
  text += textBefore(result) + result.native!(COST, null);
  return { text, usage, outcome, finishReason };
}

const named = (events: readonly string[]) => events.map((one) => one.replace('upstream-model-2026', NAME));

describe.each([
  ['messages', createMessagesDecoder, messageEvents(), 2],
  ['responses', createResponsesDecoder, responseEvents(), 1],
] as const)('%s', (_name, speechOf, events, held) => {
  const bytes = Buffer.from(events.join(''));
  const whole = read(speechOf(NAME), [bytes]);

  test('have their events as they came, but for those that tell the cost', () => {
    const came = whole.text.split(/(?<=\n\n)/);
    expect(came.slice(0, -held)).toEqual(named(events).slice(0, -held));
    expect(came.length).toBe(events.length);
    expect(JSON.stringify(came.at(-held))).toContain('\\"cost\\":1');
    expect(whole).toMatchObject({ usage: { prompt: 40n, completion: 9n }, outcome: 'complete' });
  });

  test('are the same after a cut at every byte', () => {
    for (let at = 1; at < bytes.length; at++)
      deepEqual(read(speechOf(NAME), [bytes.subarray(0, at), bytes.subarray(at)]), whole);
  });

  test('are the same however their lines end, and with comments between them', () => {
    const crlf = Buffer.from(events.join(': comment\n\n').replaceAll('\n', '\r\n'));
    expect(read(speechOf(NAME), [crlf])).toEqual(whole);
    for (let at = 1; at < crlf.length; at += 7)
      deepEqual(read(speechOf(NAME), [crlf.subarray(0, at), crlf.subarray(at)]), whole);
  });
});

const word = fc
  .oneof(
    fc.string({ unit: 'binary', maxLength: 12 }),
    fc.constantFrom('"', '\\', '\n\n', 'data: {', '","text":"', '🌍', '\u2028', '\u0000', ' '.repeat(200)),
  )
  .map((one) => one.toWellFormed());

test.each([
  [
    'messages',
    createMessagesDecoder,
    (text: string) => event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
    messageEvents(),
  ],
  [
    'responses',
    createResponsesDecoder,
    (delta: string, sequence: number) =>
      event('response.output_text.delta', { item_id: 'm', delta, sequence_number: sequence, obfuscation: 'x' }),
    responseEvents(),
  ],
] as const)('%s: every text passes as it was written', (_name, speechOf, deltaOf, events) => {
  fc.assert(
    fc.property(fc.array(word, { maxLength: 20 }), lengths, (words, cuts) => {
      const said = words.map((one, index) => deltaOf(one, index)).join('');
      const bytes = Buffer.from(events[0] + said + events.slice(-2).join(''));
      const { text, usage } = read(speechOf(NAME), cutAt(bytes, cuts));
      equal(text.includes(said), true, text);
      equal(usage!.completion, 9n);
    }),
    { numRuns: RUNS },
  );
});

test('a response that is cut ends with the next number, and is charged by what it said, wherever it was cut', () => {
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 20 }), lengths, (words, cuts) => {
      const said = words.map((delta, index) =>
        event('response.output_text.delta', { item_id: 'm', delta, sequence_number: index + 90, obfuscation: 'x' }),
      );
      const bytes = Buffer.from(responseEvents()[0] + said.join(''));
      const [whole, pieces] = [[bytes], cutAt(bytes, cuts)].map((reads) => {
        const reader = createNativeStreamReader(CONTEXT, createResponsesDecoder(NAME));
        reader.head(200, { 'content-type': 'text/event-stream' });
        for (const one of reads) reader.data([one]);
        const { usage, result } = reader.cut({ reason: 'cancelled', message: 'it was cancelled', own: false });
        return { usage, last: result.native!(COST, null) };
      });
      deepEqual(pieces, whole);
      equal(whole!.last.includes(`"sequence_number":${words.length + 90},`), true, whole!.last);
    }),
    { numRuns: RUNS },
  );
});
