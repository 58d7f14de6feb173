import { type Content, type GenerateContentResponse, GoogleGenAI, Type } from '@google/genai';
import { beforeAll, describe, expect, test } from 'vitest';
import { modelBlock, UNHURRIED } from '../../support/spine.ts';
import { call, chunk, completion, startTranscripts, usage, words } from '../translated/support/transcript-upstream.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

// Conversations by Google's SDK as it is on npm: functions, and what their providers want back with them.

const MODEL = 'acme/thinker';
let client: GoogleGenAI;
const upstream = ofFile(startTranscripts, (one) => one.stop());
const spine = spineOfFile(() => {
  const params = 'forward = ["reasoning"]';
  return {
    toml:
      UNHURRIED +
      modelBlock({ name: MODEL, provider: 'Acme', url: upstream.url, params }).replace(
        'context_length',
        'input_modalities = ["text", "image", "audio", "file"]\ncontext_length',
      ),
  };
});
beforeAll(() => {
  client = clientAt(`${spine.origin}/api`);
});

const clientAt = (baseUrl: string, apiKey = spine.key) => new GoogleGenAI({ apiKey, httpOptions: { baseUrl } });
const asked = () => upstream.asked.at(-1)!;
const messages = () => asked()['messages'] as Record<string, unknown>[];

const WEATHER = {
  name: 'weather',
  description: 'The weather of a city.',
  parameters: {
    type: Type.OBJECT,
    properties: { city: { type: Type.STRING, nullable: true }, days: { type: Type.INTEGER } },
    required: ['city'],
  },
};

const TOOLS = [{ functionDeclarations: [WEATHER] }];

const partsOf = (events: readonly GenerateContentResponse[]) =>
  events.flatMap(({ candidates }) => candidates![0]!.content!.parts!);

describe('chats', () => {
  const signed = { google: { thought_signature: 'c2lnbmVk' } };
  const first = (id: string, extra: object = {}) => ({
    id,
    type: 'function',
    ...extra,
    function: { name: 'weather', arguments: '{"city":"Oslo"}' },
  });

  test.each(['sendMessage', 'sendMessageStream'] as const)(
    '%s calls functions over several turns, and gives back what the provider wants back',
    async (method) => {
      const chat = client.chats.create({
        model: MODEL,
        config: { tools: TOOLS, thinkingConfig: { includeThoughts: true } },
      });
      const say = async (message: Parameters<typeof chat.sendMessage>[0]['message']) => {
        const answer = chat[method]({ message });
        if (method === 'sendMessage') return [(await answer) as GenerateContentResponse];
        return Array.fromAsync((await answer) as AsyncGenerator<GenerateContentResponse>);
      };
      const calls = [
        first('call_a', { extra_content: signed }),
        { ...first('call_b'), function: { name: 'weather', arguments: '{"city":"Rome"}' } },
      ];
      upstream.answer = ({ stream }) =>
        stream === true
          ? {
              chunks: [
                chunk({ role: 'assistant', reasoning_content: 'Two ' }),
                chunk({ reasoning_content: 'cities.' }),
                chunk({ content: 'I look' }),
                call(0, { id: 'call_a', name: 'weather', args: '{"city":' }),
                chunk({ tool_calls: [{ index: 0, extra_content: signed, function: { arguments: '"Oslo"}' } }] }),
                call(1, { id: 'call_b', name: 'weather', args: '{"city":"Rome"}' }),
                chunk({}, 'tool_calls'),
                usage(),
              ],
            }
          : {
              body: completion(
                { content: 'I look', reasoning_content: 'Two cities.', tool_calls: calls },
                'tool_calls',
              ),
            };
      const events = await say('Weather in Oslo and Rome?');
      const parts = partsOf(events);
      const thoughts = parts.filter(({ thought }) => thought === true);
      expect(thoughts.map(({ text }) => text).join('')).toBe('Two cities.');
      const called = events.flatMap(({ functionCalls = [] }) => functionCalls);
      expect(called.map(({ name, args }) => [name, args])).toEqual([
        ['weather', { city: 'Oslo' }],
        ['weather', { city: 'Rome' }],
      ]);
      expect(events.at(-1)!.candidates![0]!.finishReason).toBe('STOP');
      for (const { id } of called) expect(id!.length).toBeLessThan(64);

      upstream.answer = ({ stream }) =>
        stream === true ? { chunks: words('Sun', ' and rain') } : { body: completion({ content: 'Sun and rain' }) };
      const results = called.map(({ id, name }, index) => ({
        functionResponse: { id: id!, name: name!, response: index === 0 ? { output: 'sun' } : { rain: 'much' } },
      }));
      const second = await say(results.toReversed());
      expect(
        partsOf(second)
          .map(({ text }) => text)
          .join(''),
      ).toBe('Sun and rain');
      const members = method === 'sendMessage' ? { extra_content: signed } : {};
      expect(messages().slice(1)).toEqual([
        {
          role: 'assistant',
          content: 'I look',
          reasoning_content: 'Two cities.',
          tool_calls: [
            { ...members, id: 'call_a', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } },
            { id: 'call_b', type: 'function', function: { name: 'weather', arguments: '{"city":"Rome"}' } },
          ],
        },
        { role: 'tool', tool_call_id: 'call_b', content: '{"rain":"much"}' },
        { role: 'tool', tool_call_id: 'call_a', content: 'sun' },
      ]);

      await say('Thanks');
      expect(messages()).toHaveLength(6);
      expect(messages().at(-2)).toMatchObject({ role: 'assistant', content: 'Sun and rain' });
    },
  );

  test('a thought that another account or somebody else signed does not go back', async () => {
    upstream.answer = () => ({ body: completion({ content: 'Yes', reasoning_content: 'Secret' }) });
    const ask = { model: MODEL, contents: 'x', config: { thinkingConfig: { includeThoughts: true } } };
    const answer = await client.models.generateContent(ask);
    const contents = (change: (part: Record<string, unknown>) => object): Content[] => [
      { role: 'user', parts: [{ text: 'x' }] },
      {
        role: 'model',
        parts: answer.candidates![0]!.content!.parts!.map((part) => change(part as Record<string, unknown>)),
      },
      { role: 'user', parts: [{ text: 'y' }] },
    ];
    const goOn = async (change: Parameters<typeof contents>[0], by = client) => {
      await by.models.generateContent({ model: MODEL, contents: contents(change) });
      return messages()[1];
    };
    expect(await goOn((part) => part)).toMatchObject({ content: 'Yes', reasoning_content: 'Secret' });
    const other = clientAt(`${spine.origin}/api`, (await spine.tenant('other', '1')).key);
    const changed = (part: Record<string, unknown>) => (part['thought'] === true ? { ...part, text: 'Other' } : part);
    // The signature of the answer has what the model thought.
    expect(await goOn(changed)).toMatchObject({ reasoning_content: 'Secret' });
    const alone = (part: Record<string, unknown>) =>
      part['thought'] === true ? changed(part) : { text: part['text'] };
    expect(await goOn(alone)).not.toHaveProperty('reasoning_content');
    expect(await goOn((part) => part, other)).not.toHaveProperty('reasoning_content');
  });
});
