import { describe, expect, it } from 'vitest';
import { ChatReplyReader } from '../../src/openai/chat/reply/chat-reply-reader.ts';
import { createChatStreamReader } from '../../src/openai/stream/chat-stream-reader.ts';
import { outputBytesMax } from '../../src/openai/chat/reply/output-bound.ts';
import { chunkOf, CONTEXT, delta, events, feed, textOf } from './support/replies.ts';

const contextOf = (tokens: number) => ({
  ...CONTEXT,
  budget: { ...CONTEXT.budget, completionCap: tokens, completionTokensMax: tokens },
});
const usageOf = (tokens: number) => ({ prompt_tokens: 12, completion_tokens: tokens, total_tokens: 12 + tokens });
const JSON_HEAD = { 'content-type': 'application/json' };

function whole(message: object, tokens: number, claim = tokens, more: object = {}) {
  const choice = { index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop', ...more };
  const body = {
    id: 'x',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [choice],
    usage: usageOf(claim),
    output_text: 'again',
  };
  return feed(new ChatReplyReader(contextOf(tokens)), [Buffer.from(JSON.stringify(body))], JSON_HEAD);
}
function streamed(words: readonly string[], tokens: number, parseAll = false, key = 'content') {
  const chunks = words.map((word) => chunkOf([{ index: 0, delta: { [key]: word }, finish_reason: null }]));
  const text = events(...chunks, chunkOf([delta('', 'stop')]), chunkOf([], { usage: usageOf(tokens) }), '[DONE]');
  return feed(createChatStreamReader(contextOf(tokens), { parseAll }), [Buffer.from(text)]);
}

describe('the most bytes that a completion can have', () => {
  it('is near its cap: one of the longest tokens for a cap of one, and no constant on top of many', () => {
    const most = (tokens: number) => outputBytesMax(contextOf(tokens).budget);
    expect(most(1)).toBe(128);
    expect(most(10)).toBe(1_280);
    expect(most(100)).toBe(100 * 16 + 16 * 112);
    expect(most(100_000) / 100_000).toBeLessThan(16.1);
  });

  it('is the average of so many tokens where the gateway alone keeps the cap', () => {
    expect(outputBytesMax({ completionTokensMax: 10, keptBy: 'gateway' })).toBe(40);
  });
});

// Tokens as the usual tokenizers make them where they make the fewest.
const HONEST: readonly (readonly [string, readonly string[]])[] = [
  ['English', Array.from({ length: 400 }, (_, n) => [' international', ' responsibilities', ' the', ' of'][n % 4]!)],
  ['emoji', Array.from({ length: 400 }, (_, n) => ['😀', '🚧', '👩‍💻', '🇫🇷'][n % 4]!)],
  ['Chinese', Array.from({ length: 400 }, (_, n) => ['人工智能', '的', '中华人民', '发展'][n % 4]!)],
  ['Tamil', Array.from({ length: 400 }, (_, n) => ['தமிழ்', ' அவர்', 'கள்', ' என்று'][n % 4]!)],
  ['base64', Array.from({ length: 400 }, (_, n) => ['AAAA', 'wMD', 'iVBOR', 'gg'][n % 4]!)],
  ['indented code', Array.from({ length: 400 }, (_, n) => [`\n${' '.repeat(40)}`, 'return', ' value', ';'][n % 4]!)],
  ['nothing but spaces', Array.from({ length: 400 }, () => ' '.repeat(128))],
  ['nothing but line ends', Array.from({ length: 400 }, () => '\n'.repeat(16))],
  ['rules of dashes', Array.from({ length: 400 }, () => '-'.repeat(64))],
  ['rules of box drawing', Array.from({ length: 400 }, () => '─'.repeat(32))],
];

describe.each(HONEST)('%s', (_name, tokens) => {
  it.each([1, 2, 10, 400])('of a model that keeps its cap of %i is not cut', (cap) => {
    const words = tokens.slice(0, cap);
    const text = words.join('');
    for (const parseAll of [false, true]) {
      const outcome = streamed(words, cap, parseAll);
      expect(outcome.end).toMatchObject({ outcome: 'complete', flags: [], usage: { completion: BigInt(cap) } });
      expect(textOf(outcome)).toBe(text);
    }
    const reply = whole({ content: text }, cap);
    expect(reply.end).toMatchObject({ outcome: 'complete', flags: [] });
    expect(reply.result!.body['choices']).toMatchObject([{ message: { content: text } }]);
  });
});

it('reasoning that is given under both of its names is one text', () => {
  const reasoning = 'thought '.repeat(16);
  expect(whole({ content: '', reasoning, reasoning_content: reasoning }, 1).end).toMatchObject({
    outcome: 'complete',
    flags: [],
  });
  const cut = whole({ content: '', reasoning: reasoning.repeat(2), reasoning_content: reasoning.repeat(2) }, 1);
  expect(cut.result!.body['choices']).toMatchObject([{ message: { reasoning, reasoning_content: reasoning } }]);
});

it('calls of tools with large arguments are not cut', () => {
  const rows = Array.from({ length: 100 }, (_, n) => ({ id: n, name: `row ${n}`, tags: ['a', 'b'] }));
  const call = { id: 'c', type: 'function', function: { name: 'insert', arguments: JSON.stringify({ rows }) } };
  const tokens = Math.ceil(call.function.arguments.length / 4);
  expect(whole({ content: null, tool_calls: [call] }, tokens)).toMatchObject({
    end: { outcome: 'complete', flags: [] },
  });
});

describe('a whole reply that ran past its cap', () => {
  it('is cut to what the cap can be, in whole characters, and nothing has the rest in another form', () => {
    const text = '汉'.repeat(1_000);
    const logprobs = { content: [{ token: '汉', logprob: 0 }] };
    const { end, result } = whole({ content: text, reasoning: 'x'.repeat(900), annotations: [text] }, 1, 1_200, {
      logprobs,
      text,
    });
    expect(end).toMatchObject({
      outcome: 'over_cap',
      flags: ['over_cap'],
      estimated: true,
      finishReason: 'length',
      usage: { completion: 1n },
    });
    expect(result!.body).toEqual({
      id: 'gen-1',
      object: 'chat.completion',
      created: 1,
      model: 'acme/small',
      provider: 'Acme',
      system_fingerprint: null,
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: '汉'.repeat(42), reasoning: 'xx' },
          finish_reason: 'length',
        },
      ],
    });
  });

  it('keeps the calls of tools that fit, and the beginning of the next', () => {
    const call = (n: number) => ({
      id: `c${n}`,
      type: 'function',
      function: { name: 'f', arguments: JSON.stringify({ n, pad: 'abcdefghijklm'.repeat(3) }) },
    });
    const { result, end } = whole({ content: null, tool_calls: [call(1), call(2), call(3)] }, 1);
    expect(end).toMatchObject({ outcome: 'over_cap' });
    const [choice] = result!.body['choices'] as { message: { content: null; tool_calls: ReturnType<typeof call>[] } }[];
    expect(choice!.message.content).toBeNull();
    const [first, second, third, ...more] = choice!.message.tool_calls;
    expect([first, second, more]).toEqual([call(1), call(2), []]);
    expect(call(3).function.arguments.startsWith(third!.function.arguments)).toBe(true);
    expect(third!.function.arguments.length).toBeLessThan(20);
  });

  it('is free where the provider says that it failed', () => {
    expect(whole({ content: 'word '.repeat(1_000) }, 1, 1, { finish_reason: 'error' }).end).toMatchObject({
      outcome: 'free',
    });
  });

  it('is cut as well where it came in one piece to a request for a stream', () => {
    const choice = { index: 0, message: { role: 'assistant', content: 'word '.repeat(1_000) }, finish_reason: 'stop' };
    const reader = createChatStreamReader(contextOf(1));
    const { result, end } = feed(
      reader,
      [Buffer.from(JSON.stringify({ choices: [choice], usage: usageOf(1_000) }))],
      JSON_HEAD,
    );
    expect(end).toMatchObject({ outcome: 'over_cap' });
    expect(result!.body['choices']).toMatchObject([
      { delta: { content: 'word '.repeat(26).slice(0, 128) }, finish_reason: 'length' },
    ]);
  });
});

describe('a stream that runs past its cap', () => {
  it.each([false, true])('gives out what fits of the chunk that does not (every chunk parsed: %s)', (parseAll) => {
    const words = Array.from({ length: 50 }, (_, n) => `word number ${n} `);
    const outcome = streamed(words, 2, parseAll);
    expect(outcome.end).toMatchObject({ outcome: 'over_cap' });
    expect(textOf(outcome)).toBe(words.join('').slice(0, 256));
  });

  it('is cut where all of it is one chunk', () => {
    expect(textOf(streamed([Array.from({ length: 500 }, (_, n) => `w${n} `).join('')], 1))).toHaveLength(128);
  });

  it('gets no more room for words by runs, also where they are written with escapes', () => {
    const outcome = streamed(
      [...Array.from({ length: 30 }, () => '\n'.repeat(100)), ...Array.from({ length: 500 }, (_, n) => ` word${n}`)],
      2,
    );
    expect(outcome.end).toMatchObject({ outcome: 'over_cap' });
    expect(textOf(outcome).trim().length).toBeLessThanOrEqual(256);
  });
});
