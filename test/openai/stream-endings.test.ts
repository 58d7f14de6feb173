import { describe, expect, it } from 'vitest';
import { UpstreamFailure } from '#wire';
import { createChatStreamReader } from '../../src/openai/stream/chat-stream-reader.ts';
import {
  chunkOf,
  chunksIn,
  CONTEXT,
  delta,
  events,
  feed,
  stream,
  textBefore,
  textOf,
  USAGE,
} from './support/replies.ts';

const stop = chunkOf([{ index: 0, delta: {}, finish_reason: 'stop' }]);

const LEFT = { reason: 'cancelled', message: 'its client left', own: false } as const;

const keys = (count: number) => Array(count).fill('"":0').join(',');

describe('a stream that fails', () => {
  it.each([
    ['ends before its finish', events(chunkOf([delta('a')])), 'before the reply was complete'],
    ['ends inside an event', events(chunkOf([delta('a')])) + 'data: {"choices":[{"ind', 'not valid JSON'],
    ['is empty', '', 'without a reply'],
    ['is nothing but [DONE]', events('[DONE]'), 'without a reply'],
    ['is nothing but a role and [DONE]', events(chunkOf([delta('')]), '[DONE]'), 'without an answer'],
    ['has an event that is no JSON', events(chunkOf([delta('a')]), '{oops'), 'not valid JSON'],
    ['has an event that is no object', events('[1]'), 'not a JSON object'],
    ['has a choice that is no object', events(chunkOf([null])), 'choice that is no object'],
    [
      'reports an error',
      events(chunkOf([delta('a')]), { error: { message: 'secret sk-1', code: 500 } }),
      'reported an error',
    ],
    [
      'names an event an error, and then reports usage',
      `${events(chunkOf([delta('a')]))}event: error\ndata: {"message":"overloaded"}\n\n${events(chunkOf([], { usage: USAGE }), '[DONE]')}`,
      'reported an error',
    ],
    [
      'names an event of a known form an error',
      events(...Array(4).fill(chunkOf([delta('a')]))) + `event: error\n${events(chunkOf([delta('a')]))}`,
      'reported an error',
    ],
    [
      'has an error in place of a chunk',
      events(chunkOf([delta('a')]), { object: 'error', message: 'secret sk-1', code: 400 }, '[DONE]'),
      'reported an error',
    ],
  ])('throws when it %s', (_name, body, message) => {
    const { error } = stream(body);
    expect(error).toBeInstanceOf(UpstreamFailure);
    expect(error).toMatchObject({ retryable: true, attributedTo: 'provider', detail: null });
    expect(error!.message).toContain(message);
  });

  it.each([
    ['has a line without end', `data: ${'x'.repeat(1024 * 1024 + 1)}`, CONTEXT, 'longer than 1048576 bytes'],
    ['has an event of more keys than are read', `data: {${keys(100_001)}}\n\n`, CONTEXT, 'more structure than is read'],
  ])('is too large, which nobody is blamed for, when it %s', (_name, body, context, message) => {
    const { error } = stream(body, context);
    expect(error).toMatchObject({ tooLarge: true, retryable: false, attributedTo: 'nobody' });
    expect(error!.message).toContain(message);
  });

  it.each([
    ['comments', ': nothing\n\n'.repeat(30), 'its stream had no output in 200 bytes'],
    ['a role alone', `${events(chunkOf([{ index: 0, delta: { role: 'assistant' } }]))}${': x\n\n'.repeat(50)}`, '200'],
    ['one line of spaces', ' '.repeat(1024 * 1024 + 1), 'had no output: a line of the stream is longer than 1048576'],
    ['one long comment', `: ${'x'.repeat(1024 * 1024)}\n`, 'had no output: a line of the stream is longer than'],
  ])('is its provider’s failure when it says nothing in more bytes than are read: %s', (_name, body, message) => {
    const { error } = stream(body, { ...CONTEXT, replyBytesMax: 200 });
    expect(error).toMatchObject({ tooLarge: false, retryable: true, attributedTo: 'provider' });
    expect(error!.message).toContain(message);
  });

  it('throws when the head cannot be used', () => {
    expect(feed(createChatStreamReader(CONTEXT), [], { 'content-encoding': 'dcb' }).error!.message).toContain(
      'content-encoding: dcb',
    );
    expect(() => createChatStreamReader(CONTEXT).head(302, {})).toThrow(UpstreamFailure);
  });

  it('is not charged as cut when it broke before', () => {
    const reader = createChatStreamReader(CONTEXT);
    reader.head(200, {});
    reader.data([Buffer.from(events(chunkOf([delta('a')])))]);
    expect(() => reader.data([Buffer.from(events('{oops'))])).toThrow(UpstreamFailure);
    expect(() => reader.cut(LEFT)).toThrow(UpstreamFailure);
  });
});

describe('a stream that is free', () => {
  it.each([
    [
      'finishes with error',
      events(chunkOf([delta('a')]), chunkOf([delta('', 'error')], { usage: USAGE }), '[DONE]'),
      'free',
    ],
    [
      'claims no completion and gives no reason',
      events(
        chunkOf([delta('a')]),
        chunkOf([delta('', '')], { usage: { prompt_tokens: 3, completion_tokens: 0 } }),
        '[DONE]',
      ),
      'free',
    ],
    [
      'finished for a reason without output',
      events(chunkOf([delta('')]), { ...stop, usage: { prompt_tokens: 3, completion_tokens: 0 } }, '[DONE]'),
      'complete',
    ],
    [
      'has one failed choice of two',
      events(chunkOf([delta('a', 'error', 0)]), chunkOf([delta('b', 'stop', 1)], { usage: USAGE }), '[DONE]'),
      'complete',
    ],
    [
      'has one failed choice, and one that never finishes',
      events(
        chunkOf([delta('a', null, 0)]),
        chunkOf([delta('b', null, 1)]),
        chunkOf([delta('', 'error', 0)]),
        '[DONE]',
      ),
      'complete',
    ],
    [
      'has two failed choices',
      events(chunkOf([delta('a', 'error', 0)]), chunkOf([delta('b', 'error', 1)], { usage: USAGE }), '[DONE]'),
      'free',
    ],
  ])('when it %s', (_name, body, outcome) => {
    expect(stream(body).end!.outcome).toBe(outcome);
  });
});

describe('a stream that is cut', () => {
  const cutAfter = (body: string) => {
    const reader = createChatStreamReader(CONTEXT);
    reader.head(200, {});
    reader.data([Buffer.from(body)]);
    return reader.cut(LEFT);
  };

  it('is charged by the bytes that came', () => {
    const words = Array.from({ length: 10 }, () => chunkOf([delta('12345678')]));
    expect(cutAfter(events(...words))).toMatchObject({
      usage: { prompt: 10n, completion: 20n },
      estimated: true,
      outcome: 'cut',
      flags: [],
    });
    expect(cutAfter(events(chunkOf([{ index: 0, delta: { reasoning: 'abcd' } }])))).toMatchObject({
      usage: { completion: 1n },
    });
  });

  it('is free when nothing came', () => {
    expect(cutAfter('')).toMatchObject({ usage: null, outcome: 'free' });
    expect(cutAfter(events(chunkOf([{ index: 0, delta: { role: 'assistant', content: '' } }])))).toMatchObject({
      usage: null,
      outcome: 'free',
    });
  });

  it('is charged by the claim when that had come', () => {
    expect(cutAfter(events(chunkOf([delta('a')]), { ...stop, usage: USAGE }))).toMatchObject({
      usage: { prompt: 12n, completion: 5n },
      estimated: false,
      outcome: 'cut',
    });
  });

  it('says why, in the result and in the record', () => {
    const { result, finishReason } = cutAfter(events(chunkOf([delta('a')])));
    expect(finishReason).toBe('cancelled');
    const { body, cut } = result;
    expect(body).toMatchObject({ choices: [{ delta: {}, finish_reason: 'length' }] });
    expect(cut).toMatchObject({
      code: 'reply_cut',
      message: 'The reply was cut: its client left. The part that arrived is charged',
    });
  });

  it('is charged for what it said before it was too large, and hands that out', () => {
    const reader = createChatStreamReader({ ...CONTEXT, replyBytesMax: 200 });
    reader.head(200, {});
    const word = events(chunkOf([delta('12345678')]));
    const noise = ': nothing\n\n'.repeat(3_100);
    expect(() => reader.data([Buffer.from(word + noise)])).toThrow('more than 200 bytes');
    const end = reader.cut({ reason: 'too_large', message: 'too large', own: false });
    expect(end).toMatchObject({ outcome: 'cut', usage: { completion: 2n }, finishReason: 'too_large' });
    expect(textBefore(end.result)).toContain('12345678');
  });

  it('is not too large however much comes beside each word, as its consumer may have asked for that', () => {
    const reader = createChatStreamReader({ ...CONTEXT, replyBytesMax: 200 });
    reader.head(200, {});
    for (let i = 0; i < 1_000; i++)
      reader.data([Buffer.from(events(chunkOf([{ ...delta('a'), logprobs: 'x'.repeat(3_000) }])))]);
    expect(reader.cut(LEFT)).toMatchObject({ outcome: 'cut', usage: { completion: 250n } });
  });
});

describe('a stream that runs past its budget', () => {
  const context = { ...CONTEXT, budget: { ...CONTEXT.budget, completionCap: 10, completionTokensMax: 10 } };

  it('is stopped once it is longer than its tokens can be', () => {
    const reader = createChatStreamReader(context);
    reader.head(200, {});
    const text =
      'A tollgate is where a road is paid for: whoever comes by tells how far, pays so much, and has it back.';
    const word = Buffer.from(events(chunkOf([delta(text)])));
    let sent = 0;
    while (!reader.finished && sent < 1_000) {
      reader.data([word]);
      sent++;
    }
    // The longest tokens have 128 bytes.
    expect(sent).toBe(Math.floor((10 * 128) / text.length) + 1);
    expect(reader.data([word])).toBeNull();
    const end = reader.end();
    expect(end).toMatchObject({
      outcome: 'over_cap',
      flags: ['over_cap'],
      usage: { completion: 10n },
      estimated: true,
    });
    expect((end.result as { body: unknown }).body).toMatchObject({ choices: [{ finish_reason: 'length' }] });
  });

  it('is stopped on the parsed path as well', () => {
    const reader = createChatStreamReader(context, { parseAll: true });
    reader.head(200, {});
    for (let i = 0; i < 60; i++)
      reader.data([Buffer.from(events(chunkOf([delta(` some words of chunk ${i} and more of them`)])))]);
    expect(reader.end().outcome).toBe('over_cap');
  });
});

describe('a stream whose provider answers in one piece', () => {
  const completion = {
    id: 'x',
    object: 'chat.completion',
    created: 7,
    model: 'upstream-small',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: 'hello',
          tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
        finish_reason: 'tool_calls',
      },
    ],
    usage: USAGE,
  };
  const json = { 'content-type': 'application/json' };

  it('is one chunk', () => {
    const outcome = feed(createChatStreamReader(CONTEXT), [Buffer.from(JSON.stringify(completion))], json);
    expect(outcome.sent).toBe('');
    expect(outcome.result!.body).toMatchObject({ id: 'gen-1', object: 'chat.completion.chunk', model: 'acme/small' });
    expect(textOf(outcome)).toBe('hello');
    expect(outcome.result!.body['choices']).toMatchObject([
      { delta: { tool_calls: [{ index: 0, id: 'a' }] }, finish_reason: 'tool_calls' },
    ]);
    expect(outcome.end).toMatchObject({ usage: { prompt: 12n, completion: 5n }, outcome: 'complete' });
    expect(chunksIn(outcome.sent)).toEqual([]);
  });

  it('fails when that is an error', () => {
    expect(feed(createChatStreamReader(CONTEXT), [Buffer.from('{"error":"no"}')], json).error).toBeInstanceOf(
      UpstreamFailure,
    );
  });
});
