import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createChatStreamReader } from '../../src/openai/stream/chat-stream-reader.ts';
import { CONTEXT, chunkOf, delta, events, feed, usualStream, USAGE, type Outcome } from './support/replies.ts';

const deep = process.env['TOLLGATE_DEEP'] === '1';

const visible = ({ sent, end, error }: Outcome) => ({ sent, end, error: error?.message ?? null });
const read = (chunks: readonly Buffer[]) => visible(feed(createChatStreamReader(CONTEXT), chunks));

const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.constantFrom('"', '\\', '\n\n', 'data: [DONE]', '\u2028', 'ü', '🌍', ''),
);
const streams = fc
  .record({
    words: fc.array(text, { maxLength: 20 }),
    reasoning: fc.array(text, { maxLength: 5 }),
    lineEnd: fc.constantFrom('\n', '\r\n', '\r'),
    mark: fc.constantFrom('', '\uFEFF', ': ping\n\n'),
    done: fc.constantFrom('[DONE]', null),
  })
  .map(({ words, reasoning, lineEnd, mark, done }) => {
    const body = events(
      ...reasoning.map((word) => chunkOf([{ index: 0, delta: { reasoning_content: word }, finish_reason: null }])),
      ...words.map((word) => chunkOf([delta(word)])),
      chunkOf([delta('last', 'stop')]),
      chunkOf([], { usage: USAGE }),
      ...(done ? [done] : []),
    );
    return Buffer.from(mark + body.replaceAll('\n', lineEnd));
  });

describe('a stream that is split anywhere', () => {
  it('comes out the same as in one piece', () => {
    fc.assert(
      fc.property(streams, fc.array(fc.nat(), { maxLength: 30 }), (bytes, cuts) => {
        const at = [...new Set(cuts.map((cut) => cut % bytes.length))].sort((a, b) => a - b);
        const chunks = [0, ...at].map((start, i) => bytes.subarray(start, at[i] ?? bytes.length));
        expect(read(chunks)).toEqual(read([bytes]));
      }),
      { numRuns: deep ? 50_000 : 400 },
    );
  });

  it('comes out the same byte by byte', () => {
    const bytes = Buffer.from(usualStream());
    expect(read([...bytes].map((byte) => Buffer.from([byte])))).toEqual(read([bytes]));
    expect(read([bytes]).error).toBeNull();
  });

  it('comes out the same at every single place', () => {
    const bytes = Buffer.from(usualStream().replaceAll('\n', '\r\n'));
    const whole = read([bytes]);
    for (let at = 0; at <= bytes.length; at++) expect(read([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(whole);
  });
});
