import Anthropic from '@anthropic-ai/sdk';
import { beforeAll, describe, expect, test } from 'vitest';
import { MESSAGES_PASSTHROUGH } from '../../../src/openai/messages/passthrough.ts';
import { modelBlock, UNHURRIED } from '../../support/spine.ts';
import { call, chunk, completion, startTranscripts, usage, words } from '../translated/support/transcript-upstream.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

// Anthropic's SDK as it is on npm, with nothing but the address and the key of a gateway.

const MODEL = 'acme/thinker';
let client: Anthropic;
const upstream = ofFile(startTranscripts, (one) => one.stop());
const spine = spineOfFile(() => {
  const block = modelBlock({ name: MODEL, provider: 'Acme', url: upstream.url });
  return { toml: UNHURRIED + block };
});
beforeAll(() => {
  client = new Anthropic({ baseURL: `${spine.origin}/api`, apiKey: spine.key, maxRetries: 0 });
});

const WEATHER: Anthropic.Tool = {
  name: 'weather',
  description: 'The weather of a city.',
  input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};
const ask = (
  content: Anthropic.MessageParam['content'],
  more: object = {},
): Anthropic.MessageCreateParamsNonStreaming => ({
  model: MODEL,
  max_tokens: 50,
  messages: [{ role: 'user', content }],
  ...more,
});

const DEEP = `${'{"a":'.repeat(200)}1${'}'.repeat(200)}`;

describe('messages.create', () => {
  test('a text that comes back without citations is no reason to prefer some providers', () => {
    const text = (citations: unknown) => JSON.stringify({ content: [{ type: 'text', text: 'Hi', citations }] });
    expect([text(null), text([]), text([{ cited_text: 'Hi' }])].map((one) => MESSAGES_PASSTHROUGH.loses(one))).toEqual([
      false,
      false,
      true,
    ]);
  });

  test.each([
    ['an integer that a double cannot hold', '{"id":12345678901234567890}', '{"id":12345678901234567890}'],
    ['text that is no JSON', 'Oslo', '{"arguments":"Oslo"}'],
    ['a list', '[1]', '{"arguments":"[1]"}'],
    ['a structure that is too deep to read', DEEP, `{"arguments":${JSON.stringify(DEEP)}}`],
    ['nothing', ' ', '{}'],
  ])('writes the arguments of a call as the model wrote them: %s', async (_name, given, input) => {
    const tool_calls = [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: given } }];
    upstream.answer = () => ({ body: completion({ content: null, tool_calls }, 'tool_calls') });
    const reply = await client.messages.create(ask('x', { tools: [WEATHER] })).asResponse();
    expect(await reply.text()).toContain(`"name":"weather","input":${input}}`);
  });
});

describe('messages.stream', () => {
  test('joins thinking, text and two calls whose arguments are mixed', async () => {
    upstream.answer = () => ({
      chunks: [
        chunk({ role: 'assistant', content: '' }),
        chunk({ reasoning_content: 'Two ' }),
        chunk({ reasoning_content: 'cities.' }),
        chunk({ content: 'I look ' }),
        chunk({ content: 'at "both" \\ \n🌍' }),
        chunk({ content: ' now' }),
        call(0, { id: 'a', name: 'weather', args: '{"ci' }),
        call(1, { id: 'b', name: 'weather' }),
        call(1, { args: '{"city":"Rome"}' }),
        call(0, { args: 'ty":"Oslo"}' }),
        chunk({}, 'tool_calls'),
        usage(),
      ],
    });
    const stream = client.messages.stream({
      ...ask('Both?', { tools: [WEATHER], thinking: { type: 'enabled', budget_tokens: 1024 } }),
    });
    const message = await stream.finalMessage();
    expect(message.content).toEqual([
      { type: 'thinking', thinking: 'Two cities.', signature: expect.stringMatching(/^tg1\./) as string },
      { type: 'text', text: 'I look at "both" \\ \n🌍 now', citations: [] },
      { type: 'tool_use', id: 'a', name: 'weather', input: { city: 'Oslo' }, caller: { type: 'direct' } },
      { type: 'tool_use', id: 'b', name: 'weather', input: { city: 'Rome' }, caller: { type: 'direct' } },
    ]);
    expect(message).toMatchObject({ stop_reason: 'tool_use', usage: { input_tokens: 15, output_tokens: 9 } });

    // What it thought goes back to it as it was. What somebody else signed does not.
    upstream.answer = () => ({ chunks: words('Fine.') });
    const [thought, ...rest] = message.content as [Anthropic.ThinkingBlock, ...Anthropic.ContentBlock[]];
    const results = ['a', 'b'].map((id) => ({ type: 'tool_result' as const, tool_use_id: id, content: 'sun' }));
    const goOn = (first: Anthropic.ThinkingBlock) =>
      client.messages
        .stream({
          ...ask('Both?', { tools: [WEATHER] }),
          messages: [
            { role: 'user', content: 'Both?' },
            { role: 'assistant', content: [first, ...rest] },
            { role: 'user', content: results },
          ],
        })
        .finalText();
    expect(await goOn(thought)).toBe('Fine.');
    expect((upstream.asked.at(-1)!['messages'] as object[])[1]).toMatchObject({ reasoning_content: 'Two cities.' });
    await goOn({ ...thought, thinking: 'Three cities.' });
    expect((upstream.asked.at(-1)!['messages'] as object[])[1]).not.toHaveProperty('reasoning_content');
  });

  test('fails where the stream breaks off after its first words', async () => {
    upstream.answer = () => ({ cut: `data: ${JSON.stringify(chunk({ content: 'Half' }))}\n\n` });
    const before = await spine.balance();
    await expect(client.messages.stream(ask('Hi')).finalMessage()).rejects.toThrow(/Provider Acme failed/);
    await spine.quiet();
    expect((await spine.balance()).available).toBe(before.available);
  });
});

test('the tool runner of the SDK calls tools until the model answers', async () => {
  upstream.answer = ({ messages }) =>
    (messages as { role: string }[]).some(({ role }) => role === 'tool')
      ? { body: completion({ content: 'Sunny.' }) }
      : {
          body: completion(
            {
              content: 'Let me see.',
              tool_calls: [{ id: 'c', type: 'function', function: { name: 'weather', arguments: '{"city":"Rome"}' } }],
            },
            'tool_calls',
          ),
        };
  const seen: unknown[] = [];
  const message = await client.beta.messages.toolRunner({
    ...ask('Rome?'),
    tools: [
      {
        type: 'custom',
        name: 'weather',
        description: 'x',
        input_schema: { type: 'object' },
        parse: (input: unknown) => input,
        run: (input: unknown) => {
          seen.push(input);
          return 'sun';
        },
      },
    ],
  } as never);
  expect(seen).toEqual([{ city: 'Rome' }]);
  expect((message as Anthropic.Message).content).toEqual([{ type: 'text', text: 'Sunny.', citations: [] }]);
});

describe('a provider that wants back what it sent with a call', () => {
  const extra_content = { google: { thought_signature: 'S' } };
  const named = { type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } };
  const calls = [
    { id: 'call_1', ...named, extra_content },
    { id: 'call_2', ...named },
  ];
  const indexed = calls.map((one, index) => ({ index, ...one }));
  const WHOLE = { body: completion({ content: null, reasoning: 'Cold.', tool_calls: calls }, 'tool_calls') };
  const STREAM = {
    chunks: [
      chunk({ reasoning: 'Co' }),
      chunk({ reasoning: 'ld.' }),
      chunk({ tool_calls: [indexed[0]] }),
      chunk({ tool_calls: [indexed[1]] }),
      chunk({}, 'tool_calls'),
      usage(),
    ],
  };

  test.each([
    ['whole, without thinking', WHOLE, {}, { reasoning: 'Cold.' }],
    ['streamed, without thinking', STREAM, {}, { reasoning: 'Cold.' }],
    ['streamed, with thinking', STREAM, { thinking: { type: 'adaptive' } }, { reasoning: 'Cold.' }],
  ])('gets it, %s', async (_, answer, more, reasoning) => {
    upstream.answer = () => answer;
    const asked = ask('Weather?', { tools: [WEATHER], ...more });
    const { content } = await ('chunks' in answer
      ? client.messages.stream(asked).finalMessage()
      : client.messages.create(asked));
    const ids = content.flatMap((block) => (block.type === 'tool_use' ? [block.id] : []));
    expect(ids).toEqual([expect.stringMatching(/^tg3_[a-zA-Z0-9_-]+$/) as string, 'call_2']);
    const results = ids.map((id) => ({ type: 'tool_result' as const, tool_use_id: id, content: 'rain' }));
    upstream.answer = () => ({ body: completion({ content: 'Bring a coat.' }) });
    await client.messages.create({
      ...asked,
      messages: [...asked.messages, { role: 'assistant', content }, { role: 'user', content: results }],
    });
    expect((upstream.asked.at(-1)!['messages'] as unknown[]).slice(1)).toEqual([
      { role: 'assistant', content: null, ...reasoning, tool_calls: calls },
      { role: 'tool', tool_call_id: 'call_1', content: 'rain' },
      { role: 'tool', tool_call_id: 'call_2', content: 'rain' },
    ]);
  });
});

test('countTokens is an estimate that costs nothing', async () => {
  const before = await spine.balance();
  const { input_tokens } = await client.messages.countTokens({
    model: MODEL,
    messages: [{ role: 'user', content: 'x'.repeat(400) }],
  });
  expect(input_tokens).toBeGreaterThan(100);
  expect(input_tokens).toBeLessThan(150);
  expect(await spine.balance()).toEqual(before);
});
