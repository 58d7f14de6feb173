import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import Anthropic from '@anthropic-ai/sdk';
import { type Content, GoogleGenAI, type Part } from '@google/genai';
import { generateText, jsonSchema, type LanguageModel, type ModelMessage, streamText, tool, type ToolSet } from 'ai';
import OpenAI from 'openai';
import { beforeAll, describe, expect, test } from 'vitest';
import { EchoFields } from '../../../src/openai/chat/reply/echo-fields.ts';
import { modelBlock, UNHURRIED } from '../../support/spine.ts';
import { THINKING_FORMS, type ThinkingForm } from './support/thinking-forms.ts';
import { chunk, completion, startTranscripts, usage } from './support/transcript-upstream.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

// The matrix of docs/reference/mappings-chat.md: thinking in each form that providers of the chat API write goes back
// to them as it was, by the SDKs of each API, whole and streamed, of texts and of calls, whether their clients ask for
// it or not.

const MODEL = 'acme/thinker';
let openai: OpenAI;
let anthropic: Anthropic;
let google: GoogleGenAI;
const upstream = ofFile(startTranscripts, (one) => one.stop());
const spine = spineOfFile(() => ({
  toml: UNHURRIED + modelBlock({ name: MODEL, provider: 'Acme', url: upstream.url }),
}));
beforeAll(() => {
  openai = new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 });
  anthropic = new Anthropic({ baseURL: `${spine.origin}/api`, apiKey: spine.key, maxRetries: 0 });
  google = new GoogleGenAI({ apiKey: spine.key, httpOptions: { baseUrl: `${spine.origin}/api` } });
});

type Json = Record<string, unknown>;

const CALL = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } };
type Kind = 'a text' | 'a call';

/** The provider says it once, and then "Fine". Its last request has the conversation. */
function tell({ whole, deltas }: ThinkingForm, kind: Kind): void {
  let turn = 0;
  const said = kind === 'a text' ? { content: 'Hello' } : { tool_calls: [CALL] };
  const finish = kind === 'a text' ? 'stop' : 'tool_calls';
  const { content: parts, ...members } = whole;
  const content = kind === 'a text' ? 'Hello' : null;
  const message = {
    ...members,
    ...said,
    content: Array.isArray(parts) ? (parts as unknown[]).slice(0, kind === 'a text' ? 2 : 1) : content,
  };
  const rest = kind === 'a text' ? [{ content: 'Hel' }, { content: 'lo' }] : [{ tool_calls: [{ index: 0, ...CALL }] }];
  upstream.answer = ({ stream }) => {
    if (turn++ > 0)
      return stream ? { chunks: [chunk({ content: 'Fine' }), chunk({}, 'stop'), usage()] } : { body: FINE };
    if (stream !== true) return { body: completion(message, finish) };
    const all = [{ role: 'assistant', content: '' }, ...deltas, ...rest];
    return { chunks: [...all.map((delta) => chunk(delta)), chunk({}, finish), usage()] };
  };
}
const FINE = completion({ content: 'Fine' });

/** The model's message in the last request. */
const message = (): Json =>
  (upstream.asked.at(-1)!['messages'] as readonly Json[]).find(({ role }) => role === 'assistant')!;

/** A client has an answer, and sends it back. */
type Client = (stream: boolean, kind: Kind) => Promise<void>;

const TOOL = { type: 'function', function: { name: 'f', parameters: { type: 'object' } } } as const;

const byChat: Client = async (stream, kind) => {
  const user = { role: 'user', content: 'x' } as const;
  const ask = { model: MODEL, tools: [TOOL] };
  let said: Json;
  if (stream) {
    const kept = new EchoFields(Infinity);
    let content = '';
    for await (const { choices } of await openai.chat.completions.create({ ...ask, messages: [user], stream: true })) {
      const delta = choices[0]!.delta as Json;
      kept.add(delta);
      if ((delta['content'] ?? null) !== null) expect(delta['content']).toBeTypeOf('string');
      content += (delta['content'] as string | null) ?? '';
    }
    said = { role: 'assistant', content, ...kept.members, ...(kind === 'a call' ? { tool_calls: [CALL] } : {}) };
  } else {
    said = (await openai.chat.completions.create({ ...ask, messages: [user] })).choices[0]!.message as unknown as Json;
    expect(said['content'] ?? '').toBeTypeOf('string');
  }
  const next = kind === 'a text' ? user : ({ role: 'tool', tool_call_id: 'call_1', content: 'y' } as const);
  await openai.chat.completions.create({ ...ask, messages: [user, said as unknown as typeof user, next] });
};

const byMessages =
  (thinking: Anthropic.ThinkingConfigParam | undefined): Client =>
  async (stream) => {
    const ask = {
      model: MODEL,
      max_tokens: 3_000,
      tools: [{ name: 'f', input_schema: { type: 'object' as const } }],
      ...(thinking ? { thinking } : {}),
    };
    const user: Anthropic.MessageParam = { role: 'user', content: 'x' };
    const asked = { ...ask, messages: [user] };
    const { content } = stream
      ? await anthropic.messages.stream(asked).finalMessage()
      : await anthropic.messages.create(asked);
    const results = content.flatMap((block): Anthropic.ToolResultBlockParam[] =>
      block.type === 'tool_use' ? [{ type: 'tool_result', tool_use_id: block.id, content: 'y' }] : [],
    );
    const next: Anthropic.MessageParam = results.length > 0 ? { role: 'user', content: results } : user;
    if (thinking === undefined) expect(content[0]!.type).not.toMatch(/thinking/);
    await anthropic.messages.create({ ...ask, messages: [user, { role: 'assistant', content }, next] });
  };

type ResponseOutput = OpenAI.Responses.Response['output'];
async function responseOf(stream: boolean, ask: OpenAI.Responses.ResponseCreateParamsNonStreaming) {
  if (!stream) return openai.responses.create(ask);
  return openai.responses.stream(ask as never).finalResponse();
}
const resultsOf = (output: ResponseOutput): OpenAI.Responses.ResponseInputItem[] => {
  const results = output.flatMap((item): OpenAI.Responses.ResponseInputItem[] =>
    item.type === 'function_call' ? [{ type: 'function_call_output', call_id: item.call_id, output: 'y' }] : [],
  );
  return results.length > 0 ? results : [{ role: 'user', content: 'y' }];
};
const FUNCTION = { type: 'function', name: 'f', parameters: { type: 'object' }, strict: false } as const;

const byResponses =
  (more: Partial<OpenAI.Responses.ResponseCreateParamsNonStreaming>): Client =>
  async (stream) => {
    const ask = { model: MODEL, tools: [FUNCTION], store: false, ...more };
    const user = { role: 'user' as const, content: 'x' };
    const { output } = await responseOf(stream, { ...ask, input: [user] });
    const back = output as OpenAI.Responses.ResponseInputItem[];
    await openai.responses.create({ ...ask, input: [user, ...back, ...resultsOf(output)] });
  };

const byKeptResponse: Client = async (stream) => {
  const ask = { model: MODEL, tools: [FUNCTION] };
  const { id, output } = await responseOf(stream, { ...ask, input: 'x' });
  await openai.responses.create({ ...ask, previous_response_id: id, input: resultsOf(output) });
};

const byGemini =
  (includeThoughts: boolean, keeps: (part: Part) => boolean): Client =>
  async (stream) => {
    const user: Content = { role: 'user', parts: [{ text: 'x' }] };
    const config = {
      tools: [{ functionDeclarations: [{ name: 'f' }] }],
      ...(includeThoughts ? { thinkingConfig: { includeThoughts } } : {}),
    };
    const ask = { model: MODEL, contents: [user], config };
    const events = stream
      ? await Array.fromAsync(await google.models.generateContentStream(ask))
      : [await google.models.generateContent(ask)];
    const parts = events.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? []);
    const results = parts.flatMap(({ functionCall }): Part[] =>
      functionCall
        ? [
            {
              functionResponse: {
                name: 'f',
                ...(functionCall.id ? { id: functionCall.id } : {}),
                response: { output: 'y' },
              },
            },
          ]
        : [],
    );
    const next: Content = results.length > 0 ? { role: 'user', parts: results } : user;
    await google.models.generateContent({
      ...ask,
      contents: [user, { role: 'model', parts: parts.filter(keeps) }, next],
    });
  };

/** By the AI SDK, which keeps the messages of an answer. */
const byAiSdk =
  (model: () => LanguageModel, providerOptions: Parameters<typeof generateText>[0]['providerOptions'] = {}): Client =>
  async (stream) => {
    const user: ModelMessage = { role: 'user', content: 'x' };
    const tools: ToolSet = { f: tool({ inputSchema: jsonSchema({ type: 'object' }) }) as ToolSet[string] };
    const ask = { model: model(), tools, providerOptions, maxRetries: 0, maxOutputTokens: 3_000 };
    const asked = { ...ask, messages: [user] };
    const { messages } = stream ? await streamText(asked).response : (await generateText(asked)).response;
    const results = messages.flatMap(({ role, content }) =>
      role === 'assistant' && Array.isArray(content)
        ? content.flatMap((part) => (part.type === 'tool-call' ? [part] : []))
        : [],
    );
    const next: ModelMessage[] =
      results.length === 0
        ? [user]
        : [
            {
              role: 'tool',
              content: results.map(({ toolCallId, toolName }) => ({
                type: 'tool-result',
                toolCallId,
                toolName,
                output: { type: 'text', value: 'y' },
              })),
            },
          ];
    await generateText({ ...ask, messages: [user, ...messages, ...next] });
  };

const aiAnthropic = () => createAnthropic({ baseURL: spine.url, apiKey: spine.key })(MODEL);
const aiOpenAi = () => createOpenAI({ baseURL: spine.url, apiKey: spine.key })(MODEL);
const aiGoogle = () => createGoogleGenerativeAI({ baseURL: `${spine.origin}/api/v1beta`, apiKey: spine.key })(MODEL);

const CLIENTS: Readonly<Record<string, Client>> = {
  chat: byChat,
  'messages, without thinking': byMessages(undefined),
  'messages, with thinking': byMessages({ type: 'enabled', budget_tokens: 1_024 }),
  'messages, with thinking omitted': byMessages({ type: 'adaptive', display: 'omitted' }),
  'responses, asking nothing': byResponses({}),
  'responses, with a summary': byResponses({ reasoning: { summary: 'auto' } }),
  'responses, with the encrypted thinking': byResponses({ include: ['reasoning.encrypted_content'] }),
  'responses, kept': byKeptResponse,
  'gemini, without thoughts': byGemini(false, () => true),
  'gemini, with thoughts': byGemini(true, () => true),
  'gemini, by a client that drops thoughts': byGemini(true, ({ thought }) => thought !== true),
  'the AI SDK, messages': byAiSdk(aiAnthropic),
  'the AI SDK, messages with thinking': byAiSdk(aiAnthropic, {
    anthropic: { thinking: { type: 'enabled', budgetTokens: 1_024 } },
  }),
  'the AI SDK, responses': byAiSdk(aiOpenAi),
  'the AI SDK, gemini': byAiSdk(aiGoogle),
  'the AI SDK, gemini with thoughts': byAiSdk(aiGoogle, { google: { thinkingConfig: { includeThoughts: true } } }),
};

describe.each(Object.keys(THINKING_FORMS))('%s', (name) => {
  const form = THINKING_FORMS[name]!;
  test.each(Object.keys(CLIENTS))('by %s', async (client) => {
    for (const kind of ['a text', 'a call'] as const)
      for (const stream of [false, true]) {
        tell(form, kind);
        await CLIENTS[client]!(stream, kind);
        const content = kind === 'a text' ? 'Hello' : null;
        const { role: _, tool_calls: calls, ...said } = message();
        const what = `${kind}, ${stream ? 'streamed' : 'whole'}`;
        const right = form.back?.(content) ?? { content, ...form.whole };
        expect({ ...said, content: said['content'] === '' ? null : said['content'] }, what).toEqual(right);
        expect(calls, what).toEqual(kind === 'a call' ? [CALL] : undefined);
      }
  });
});
