import { describe, expect, it } from 'vitest';
import { UpstreamFailure } from '#wire';
import { ChatReplyReader } from '../../src/openai/chat/reply/chat-reply-reader.ts';
import { createToolCallIds, saidBy } from '../../src/openai/chat/reply/chat-decoder.ts';
import { endHere } from '../../src/openai/chat/reply/whole-reply.ts';
import { CONTEXT, feed, USAGE } from './support/replies.ts';

const completion = (rest: Record<string, unknown> = {}) => ({
  id: 'chatcmpl-9',
  object: 'chat.completion',
  created: 1_700_000_000,
  model: 'upstream-small',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
  usage: USAGE,
  ...rest,
});
const read = (
  body: unknown,
  headers: Record<string, string> = { 'content-type': 'application/json' },
  context = CONTEXT,
) => {
  const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  return feed(new ChatReplyReader(context), [bytes.subarray(0, 7), bytes.subarray(7)], headers);
};

const SLOPPY = [
  null,
  'x',
  { id: '', function: { name: 'a', arguments: { b: 1 } } },
  { id: 'mine', type: 'function', function: {} },
  { function: { name: 'c', arguments: '{}' } },
];
const MADE = [
  { id: 'call_gen-1_0_0', type: 'function', function: { name: 'a', arguments: '{"b":1}' } },
  { id: 'mine', type: 'function', function: { arguments: '' } },
  { id: 'call_gen-1_0_2', type: 'function', function: { name: 'c', arguments: '{}' } },
];
const withCalls = (...all: unknown[][]) =>
  completion({
    choices: all.map((tool_calls, index) => ({ index, message: { tool_calls }, finish_reason: 'tool_calls' })),
  });

const EMPTY = [{ index: 0, message: { content: '' }, finish_reason: '' }];

const LATE = { reason: 'timeout', message: 'the call took longer than 1 s', own: false } as const;

describe('a reply in one piece', () => {
  it('carries our id and the name of the service, and keeps what nobody here knows', () => {
    const { result, end, sent } = read(completion({ system_fingerprint: 'fp', service_tier: { a: 1 } }));
    expect(sent).toBe('');
    expect(result!.body).toMatchObject({
      id: 'gen-1',
      object: 'chat.completion',
      created: 1_700_000_000,
      model: 'acme/small',
      system_fingerprint: 'fp',
      service_tier: { a: 1 },
    });
    expect(end).toMatchObject({
      usage: { prompt: 12n, completion: 5n },
      outcome: 'complete',
      estimated: false,
      flags: [],
    });
  });

  it('has calls with ids of their own, a type, and arguments that are text, as a stream has', () => {
    const { result } = read(withCalls(SLOPPY, SLOPPY));
    const [first, second] = result!.body['choices'] as { message: { tool_calls: { id: string }[] } }[];
    expect(first!.message.tool_calls).toEqual(MADE);
    expect(second!.message.tool_calls.map(({ id }) => id)).toEqual(['call_gen-1_1_0', 'mine', 'call_gen-1_1_2']);
    const { choices } = endHere(CONTEXT, Buffer.from(JSON.stringify(withCalls(SLOPPY))), 'chunk').result.body;
    expect(choices).toMatchObject([{ delta: { tool_calls: MADE.map((call, index) => ({ ...call, index })) } }]);
    const said = saidBy(read(withCalls(SLOPPY)).result!.body, createToolCallIds());
    expect(said.calls.map(({ id, arguments: given }) => [id, given])).toEqual([
      ['call_gen-1_0_0', '{"b":1}'],
      ['mine', ''],
      ['call_gen-1_0_2', '{}'],
    ]);
  });

  it('may not fill the books with a reason', () => {
    const reason = 'z'.repeat(100_000);
    const { end } = read(
      completion({ choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: reason }] }),
    );
    expect(end!.finishReason).toBe('length');
  });

  it.each([
    ['null', null, null],
    ['end_turn', 'stop', 'end_turn'],
    ['STOP_SEQUENCE', 'stop', 'STOP_SEQUENCE'],
    ['eosFound', 'stop', 'eosFound'],
    ['function_call', 'function_call', undefined],
    ['FinishReason.TOOL_CALL', 'tool_calls', 'FinishReason.TOOL_CALL'],
    ['RECITATION', 'content_filter', 'RECITATION'],
    ['network_error', 'error', 'network_error'],
    ['hasOwnProperty', 'length', 'hasOwnProperty'],
  ])('that ends with %s ends with %s of OpenAI', (word, finish_reason, native) => {
    const choice = { index: 0, message: { role: 'assistant', content: 'a' }, finish_reason: word };
    const [said] = read(completion({ choices: [choice] })).result!.body['choices'] as Record<string, unknown>[];
    expect(said!['finish_reason']).toBe(finish_reason);
    expect(said!['native_finish_reason']).toBe(native ?? undefined);
  });

  it.each([[{}], [''], [null], [{ message: '', code: null }]])('is an answer in spite of the error %j', (error) => {
    const { result, end } = read(completion({ error }));
    expect(end!.outcome).toBe('complete');
    expect(JSON.parse(JSON.stringify(result!.body))).not.toHaveProperty('error');
  });

  it('counts tokens that are written as text', () => {
    const usage = { prompt_tokens: '12', completion_tokens: '5', prompt_tokens_details: { cached_tokens: '2' } };
    const { result, end } = read(completion({ usage }));
    expect(end).toMatchObject({ usage: { prompt: 12n, completion: 5n }, flags: [], details: { cached: 2 } });
    expect(result!.usage).toMatchObject({ prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 });
  });

  it('is completed where providers are sloppy', () => {
    const { result, end } = read({
      created: 1_700_000_000.75,
      choices: [{ message: { content: 'hi' } }],
      finish_reason: 'stop',
      usage: { prompt_tokens: 1, completion_tokens: 2 },
    });
    expect(JSON.parse(JSON.stringify(result!.body))).toEqual({
      choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 2 },
      id: 'gen-1',
      object: 'chat.completion',
      created: 1_700_000_000,
      model: 'acme/small',
      provider: 'Acme',
      system_fingerprint: null,
    });
    expect(result!.usage).toEqual({ prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 });
    expect(end!.flags).toEqual([]);
  });

  it('bills input images by their count', () => {
    const context = { ...CONTEXT, size: { ...CONTEXT.size, images: 3 } };
    expect(read(completion(), undefined, context).end!.usage).toEqual({ prompt: 12n, completion: 5n, image: 3n });
  });

  it.each([
    ['no JSON', '<html>', 'not valid JSON'],
    ['empty', '', 'not valid JSON'],
    ['cut off', JSON.stringify(completion()).slice(0, -5), 'not valid JSON'],
    ['no object', '[]', 'not a JSON object'],
    ['an error', { error: { message: 'overloaded' } }, 'reported an error'],
    ['without choices', { id: 'x', usage: USAGE }, 'no choices'],
    ['with no choice', completion({ choices: [] }), 'no choices'],
    [
      'with nothing and its usage',
      completion({ choices: EMPTY, usage: { prompt_tokens: 9, completion_tokens: 0 } }),
      'without an answer',
    ],
    ['with a choice of nothing', { choices: EMPTY }, 'without an answer'],
    ['with a choice without message', completion({ choices: [{ index: 0 }] }), 'without a message'],
  ])('fails when it is %s', (_name, body, message) => {
    const { error } = read(body);
    expect(error).toBeInstanceOf(UpstreamFailure);
    expect(error).toMatchObject({ retryable: true, attributedTo: 'provider', detail: null });
    expect(error!.message).toContain(message);
  });

  it('is too large when it is nested too deeply', () => {
    const { error } = read(`{"choices":${'['.repeat(10_000)}`);
    expect(error).toMatchObject({ tooLarge: true, retryable: false, attributedTo: 'nobody' });
  });

  it('fails when it is a stream or compressed', () => {
    expect(read(completion(), { 'content-type': 'text/event-stream' }).error!.message).toContain('streamed');
    expect(read(completion(), { 'content-encoding': 'dcb' }).error!.message).toContain('content-encoding: dcb');
  });

  it('is free when the provider says that it failed', () => {
    const choice = (finish_reason: string | null, content = '') => ({
      choices: [{ index: 0, message: { content }, finish_reason }],
    });
    expect(read(completion(choice('error', 'half'))).end!.outcome).toBe('free');
    const unsaid = completion({ ...choice(null, 'a'), usage: { prompt_tokens: 9, completion_tokens: 0 } });
    expect(read(unsaid).end!.outcome).toBe('free');
    expect(
      read(completion({ ...choice('stop'), usage: { prompt_tokens: 9, completion_tokens: 0 } })).end!.outcome,
    ).toBe('complete');
  });

  it('is too large, which nobody is blamed for, above its bytes or keys', () => {
    const blameless = { tooLarge: true, retryable: false, attributedTo: 'nobody' };
    const large = read(completion(), undefined, { ...CONTEXT, replyBytesMax: 50 }).error!;
    expect(large).toMatchObject(blameless);
    expect(large.message).toContain('larger than 50');
    expect(read(completion({ logprobs: Array.from({ length: 500_001 }, () => ({ a: 0 })) })).error).toMatchObject(
      blameless,
    );
  });

  it('that is cut is charged for the text that came', () => {
    const reader = new ChatReplyReader(CONTEXT);
    reader.head(200, {});
    reader.data([Buffer.from('{"choices":[{"message":{"content":"12345678')]);
    expect(reader.cut(LATE)).toMatchObject({
      usage: { prompt: 10n, completion: 2n },
      estimated: true,
      outcome: 'cut',
      finishReason: 'timeout',
    });
    const empty = new ChatReplyReader(CONTEXT);
    empty.data([Buffer.from('{"id":"chatcmpl')]);
    expect(empty.cut(LATE)).toMatchObject({ usage: null, outcome: 'free' });
  });
});
