import { describe, expect, it } from 'vitest';
import { chunkOf, chunksIn, delta, events, stream, textOf, USAGE, usualStream } from './support/replies.ts';

const finishes = (sent: string) =>
  chunksIn(sent).flatMap((chunk) => chunk.choices.map((choice) => choice.finish_reason));
const stop = chunkOf([{ index: 0, delta: {}, finish_reason: 'stop' }]);
const usageChunk = chunkOf([], { usage: USAGE });

describe('the last chunk of a stream', () => {
  it('is the finish chunk, held back, with the usage that came after it', () => {
    const { sent, result, end } = stream(usualStream());
    expect(finishes(sent)).toEqual([null, null, null, null]);
    expect(sent).not.toContain('usage');
    expect(sent).not.toContain('[DONE]');
    expect(result!.body).toMatchObject({
      id: 'gen-1',
      model: 'acme/small',
      object: 'chat.completion.chunk',
      created: 1_700_000_000,
    });
    expect(result!.body['choices']).toEqual([{ index: 0, delta: {}, finish_reason: 'stop' }]);
    expect(result!.usage).toEqual(USAGE);
    expect(end).toMatchObject({
      usage: { prompt: 12n, completion: 5n },
      outcome: 'complete',
      estimated: false,
      flags: [],
    });
  });

  it('ends a stream whose first delta gets the role that its provider left out, at a whole second', () => {
    const sloppy = (more: object) => ({ ...chunkOf([more]), created: 1_700_000_000.9, error: {} });
    const { sent, result } = stream(events(sloppy(delta('a')), sloppy(delta('b')), sloppy(delta('', 'eos')), '[DONE]'));
    const seen = [...chunksIn(sent), result!.body as unknown as ReturnType<typeof chunksIn>[number]];
    expect(seen.map(({ created }) => created)).toEqual([1_700_000_000, 1_700_000_000, 1_700_000_000]);
    expect(seen.map(({ choices: [choice] }) => choice!.delta)).toEqual([
      { content: 'a', role: 'assistant' },
      { content: 'b' },
      { content: '' },
    ]);
    expect(result!.body['choices']).toMatchObject([{ finish_reason: 'stop', native_finish_reason: 'eos' }]);
  });

  it.each([
    ['in the finish chunk itself', events(chunkOf([delta('a')]), { ...stop, usage: USAGE }, '[DONE]')],
    [
      'in a chunk with null choices around it',
      events(chunkOf([delta('a')], { usage: null }), { ...stop, usage: null }, usageChunk, '[DONE]'),
    ],
    ['in an event without choices', events(chunkOf([delta('a')]), stop, { usage: USAGE }, '[DONE]')],
    ['before the finish chunk', events(chunkOf([delta('a')]), usageChunk, stop, '[DONE]')],
    [
      'as a running total',
      events(
        chunkOf([delta('a')], { usage: { ...USAGE, completion_tokens: 1, total_tokens: 13 } }),
        { ...stop, usage: USAGE },
        '[DONE]',
      ),
    ],
    [
      'as a running total that falls',
      events(
        chunkOf([delta('a')]),
        { ...stop, usage: USAGE },
        chunkOf([], { usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } }),
        '[DONE]',
      ),
    ],
    [
      'as a running total, of which one part falls',
      events(
        chunkOf([delta('a')], { usage: { ...USAGE, completion_tokens: 1, total_tokens: 13 } }),
        { ...stop, usage: { prompt_tokens: 0, completion_tokens: 5, total_tokens: 5 } },
        '[DONE]',
      ),
    ],
    [
      'before a claim that is invalid',
      events(chunkOf([delta('a')]), { ...stop, usage: USAGE }, chunkOf([], { usage: {} }), '[DONE]'),
    ],
    ['without [DONE]', events(chunkOf([delta('a')]), stop, usageChunk)],
    ['in an event that nothing closes', events(chunkOf([delta('a')]), stop, usageChunk).trimEnd()],
    [
      'beside usage after [DONE], which is too late',
      events(
        chunkOf([delta('a')]),
        stop,
        usageChunk,
        '[DONE]',
        chunkOf([], { usage: { prompt_tokens: 1, completion_tokens: 900 } }),
      ),
    ],
  ])('carries usage once, whether it came %s', (_name, body) => {
    const { sent, result, end } = stream(body);
    expect(sent).not.toContain('usage');
    expect(result!.usage).toEqual(USAGE);
    expect(end!.usage).toEqual({ prompt: 12n, completion: 5n });
    expect(textOf({ sent, result, end, error: null })).toBe('a');
  });

  it.each([
    ['were cached', 90, 0],
    ['were not cached', 0, 20],
  ])('keeps what is known of a count that falls: its tokens %s', (_name, before, later) => {
    const cached = (count: number) => (count === 0 ? {} : { prompt_tokens_details: { cached_tokens: count } });
    const first = { prompt_tokens: 100, completion_tokens: 1, total_tokens: 101, ...cached(before) };
    const last = { prompt_tokens: 20, completion_tokens: 5, total_tokens: 25, ...cached(later) };
    const { result, end } = stream(
      events(chunkOf([delta('a')], { usage: first }), stop, chunkOf([], { usage: last }), '[DONE]'),
    );
    expect(result!.usage).toMatchObject({ prompt_tokens: 100, completion_tokens: 5, total_tokens: 105 });
    expect(end!.details).toEqual({ cached: before, cacheWritten: 0, reasoning: 0 });
  });

  it('keeps the text that comes with the finish reason', () => {
    const outcome = stream(events(chunkOf([delta('a')]), chunkOf([delta('b', 'length')]), usageChunk, '[DONE]'));
    expect(textOf(outcome)).toBe('ab');
    expect(outcome.result!.body['choices']).toEqual([{ index: 0, delta: { content: 'b' }, finish_reason: 'length' }]);
  });

  it('takes a finish reason that stands beside the choices', () => {
    const { result, end } = stream(
      events(
        chunkOf([delta('a')]),
        { ...chunkOf([{ index: 0, delta: {} }]), finish_reason: 'length' },
        usageChunk,
        '[DONE]',
      ),
    );
    expect(result!.body['choices']).toEqual([{ index: 0, delta: {}, finish_reason: 'length' }]);
    expect(JSON.parse(JSON.stringify(result!.body))).not.toHaveProperty('finish_reason');
    expect(end!.flags).toEqual([]);
  });

  it('belongs to the choice that finishes last when there are several', () => {
    const outcome = stream(
      events(
        chunkOf([delta('a', null, 0)]),
        chunkOf([delta('x', null, 1)]),
        chunkOf([delta('', 'stop', 0)]),
        chunkOf([delta('y', null, 1)]),
        chunkOf([delta('z', 'length', 1)]),
        usageChunk,
        '[DONE]',
      ),
    );
    expect([textOf(outcome, 0), textOf(outcome, 1)]).toEqual(['a', 'xyz']);
    expect(finishes(outcome.sent).filter(Boolean)).toEqual(['stop']);
    expect(outcome.result!.body['choices']).toEqual([{ index: 1, delta: { content: 'z' }, finish_reason: 'length' }]);
  });

  it('carries a finish reason once, even if the provider repeats it or talks on', () => {
    const outcome = stream(
      events(chunkOf([delta('a')]), stop, chunkOf([delta('b', 'stop')]), chunkOf([delta('c')]), usageChunk, '[DONE]'),
    );
    expect(textOf(outcome)).toBe('abc');
    expect(finishes(outcome.sent).filter(Boolean)).toEqual([]);
    expect(outcome.result!.body['choices']).toEqual([{ index: 0, delta: {}, finish_reason: 'stop' }]);
  });

  it('is made up when the provider sent none, and the provider is flagged', () => {
    const { result, end } = stream(events(chunkOf([delta('a')]), usageChunk, '[DONE]'));
    expect(result!.body['choices']).toEqual([{ index: 0, delta: {}, finish_reason: 'stop' }]);
    expect(end).toMatchObject({ outcome: 'complete', flags: ['malformed_reply'] });
  });

  it('keeps fields that nobody here knows, wherever they came', () => {
    const { sent, result } = stream(
      events(
        chunkOf([delta('a')], { citations: ['x'] }),
        stop,
        chunkOf([], { usage: USAGE, timings: { ms: 3 } }),
        '[DONE]',
      ),
    );
    expect(chunksIn(sent)[0]!['citations']).toEqual(['x']);
    expect(result!.body['timings']).toEqual({ ms: 3 });
  });
});
