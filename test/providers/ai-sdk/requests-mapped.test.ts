import { describe, expect, test } from 'vitest';
import { toChatCall } from '../../../src/providers/ai-sdk/worker/call-options.ts';
import { RequestFault, toErrorReply } from '../../../src/providers/ai-sdk/worker/fault.ts';
import { toPrompt } from '../../../src/providers/ai-sdk/worker/prompt.ts';
import { servedTier, toChatUsage, toFinish } from '../../../src/providers/ai-sdk/worker/usage.ts';

// A chat request as the AI SDK takes it.

const mapped = (body: object, provider = 'acme.chat') =>
  toChatCall({ messages: [{ role: 'user', content: 'Hi' }], ...body }, provider);
const optionsOf = (body: object, provider?: string) => {
  const { prompt: _, ...options } = mapped(body, provider).options;
  return options;
};

test.each<[string, object, object]>([
  ['nothing', {}, {}],
  ['null', { temperature: null, tools: null, stop: null, response_format: null }, {}],
  ['the cap', { max_tokens: 5 }, { maxOutputTokens: 5 }],
  ['the newer cap', { max_completion_tokens: 6 }, { maxOutputTokens: 6 }],
  ['sampling', { temperature: 0.5, top_p: 0.9, top_k: 7 }, { temperature: 0.5, topP: 0.9, topK: 7 }],
  ['penalties', { presence_penalty: 1, frequency_penalty: -1 }, { presencePenalty: 1, frequencyPenalty: -1 }],
  ['a seed', { seed: 0 }, { seed: 0 }],
  ['one stop', { stop: 'END' }, { stopSequences: ['END'] }],
  ['stops', { stop: ['A', 'B'] }, { stopSequences: ['A', 'B'] }],
  ['effort', { reasoning_effort: 'high' }, { reasoning: 'high' }],
  ["OpenRouter's effort", { reasoning: { effort: 'low' } }, { reasoning: 'low' }],
  ['JSON', { response_format: { type: 'json_object' } }, { responseFormat: { type: 'json' } }],
  [
    'a schema',
    { response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object' }, strict: true } } },
    { responseFormat: { type: 'json', name: 'n', schema: { type: 'object' } } },
  ],
  [
    'a tool',
    {
      tools: [
        { type: 'function', function: { name: 'f', description: 'd', parameters: { type: 'object' }, strict: true } },
      ],
      tool_choice: { type: 'function', function: { name: 'f' } },
    },
    {
      tools: [{ type: 'function', name: 'f', description: 'd', inputSchema: { type: 'object' }, strict: true }],
      toolChoice: { type: 'tool', toolName: 'f' },
    },
  ],
  [
    'any tool without parameters',
    { tools: [{ type: 'function', function: { name: 'f' } }], tool_choice: 'any' },
    {
      tools: [{ type: 'function', name: 'f', inputSchema: { type: 'object', properties: {} } }],
      toolChoice: { type: 'required' },
    },
  ],
  ['a choice without tools', { tool_choice: 'auto' }, {}],
  ['options', { provider_options: { acme: { deep: true } } }, { providerOptions: { acme: { deep: true } } }],
])('%s', (_name, body, options) => {
  expect(optionsOf(body)).toEqual(options);
  expect(mapped(body).warnings).toEqual([]);
});

test('fields that the AI SDK lacks are options of packages with OpenAI’s options, and warnings elsewhere', () => {
  const body = { parallel_tool_calls: false, logprobs: true, top_logprobs: 2, user: 'u', verbosity: 'low' };
  const openai = { parallelToolCalls: false, logprobs: 2, user: 'u', textVerbosity: 'low' };
  for (const provider of ['openai.responses', 'azure.chat'])
    expect(mapped(body, provider)).toMatchObject({
      options: { providerOptions: { openai } },
      warnings: [],
      logprobs: true,
    });
  const { options, warnings } = mapped(body, 'openaiish.chat');
  expect(options.providerOptions).toBeUndefined();
  expect(warnings).toEqual(Object.keys(body).map((feature) => ({ type: 'unsupported', feature })));
});

test.each<[string, object]>([
  ['n', { n: 2 }],
  ['modalities', { modalities: ['text', 'audio'] }],
  ['functions', { functions: [{ name: 'f' }] }],
  ['reasoning_effort', { reasoning_effort: 'immense' }],
  ['response_format', { response_format: { type: 'grammar' } }],
  ['tools[0]', { tools: [{ type: 'web_search' }] }],
  ['tool_choice', { tools: [{ type: 'function', function: { name: 'f' } }], tool_choice: { type: 'custom' } }],
  ['provider_options', { provider_options: { acme: 1 } }],
  ['messages[0].role', { messages: [{ role: 'function', name: 'f', content: 'x' }] }],
  ['messages[0].content[0].type', { messages: [{ role: 'user', content: [{ type: 'smell' }] }] }],
  ['messages[0].tool_call_id', { messages: [{ role: 'tool', tool_call_id: 'unknown', content: 'x' }] }],
])('%s is refused', (param, body) => {
  expect(() => mapped(body)).toThrow(expect.objectContaining({ name: 'RequestFault', status: 400, param }));
});

describe('a service tier', () => {
  test.each([
    ['openai.responses', 'openai'],
    ['azure.chat', 'openai'],
    ['google.generative-ai', 'google'],
    ['groq.chat', 'groq'],
    ['xai.responses', 'xai'],
    ['amazon-bedrock', 'bedrock'],
  ])('of %s is an option of %s, also beside another one', (provider, name) => {
    const more = { provider_options: { [name]: { user: 'u', serviceTier: 'priority' } } };
    expect(optionsOf({ service_tier: 'flex', ...more }, provider)).toEqual({
      providerOptions: { [name]: { user: 'u', serviceTier: 'flex' } },
    });
  });

  test('is refused where its package would serve the call in another', () => {
    for (const provider of ['google.vertex.chat', 'cohere.chat', 'acme.chat'])
      expect(() => mapped({ service_tier: 'flex' }, provider)).toThrow(
        expect.objectContaining({ name: 'RequestFault', param: 'service_tier' }),
      );
    expect(optionsOf({ service_tier: 'auto' })).toEqual({});
  });

  test('that served is told', () => {
    expect(servedTier({ openai: { serviceTier: 'flex' } })).toEqual({ service_tier: 'flex' });
    expect(servedTier({ acme: {}, bedrock: { serviceTier: { type: 'priority' } } })).toEqual({
      service_tier: 'priority',
    });
    for (const none of [undefined, {}, { google: { serviceTier: null } }]) expect(servedTier(none)).toEqual({});
  });
});

describe('usage beside what the AI SDK has names for', () => {
  const usage = (raw: object) =>
    toChatUsage({
      inputTokens: { total: 100, noCache: 50, cacheRead: 10, cacheWrite: 40 },
      outputTokens: { total: 20, text: 20, reasoning: 0 },
      raw: raw as never,
    });

  test.each([
    [
      'of Anthropic',
      { cache_creation: { ephemeral_1h_input_tokens: 40 }, server_tool_use: { web_search_requests: 2 } },
    ],
    ['of Perplexity', { num_search_queries: 3 }],
  ])('%s', (_name, raw) => {
    expect(usage(raw)).toMatchObject(raw);
  });

  test('sound and pictures', () => {
    expect(usage({ prompt_tokens_details: { audio_tokens: 7 } })).toMatchObject({
      prompt_tokens_details: { cached_tokens: 10, cache_write_tokens: 40, audio_tokens: 7 },
    });
    expect(
      usage({
        promptTokensDetails: [
          { modality: 'TEXT', tokenCount: 93 },
          { modality: 'AUDIO', tokenCount: 7 },
        ],
        candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: 12 }],
      }),
    ).toMatchObject({
      prompt_tokens_details: { audio_tokens: 7 },
      completion_tokens_details: { image_tokens: 12 },
    });
  });
});

describe('messages', () => {
  test('roles, parts and files', () => {
    expect(
      toPrompt([
        { role: 'system', content: 'A' },
        {
          role: 'developer',
          content: [
            { type: 'text', text: 'B' },
            { type: 'text', text: 'C' },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'look' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
            { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
            { type: 'input_audio', input_audio: { data: 'BBBB', format: 'mp3' } },
            { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,CCCC' } },
          ],
        },
      ]),
    ).toEqual([
      { role: 'system', content: 'A' },
      { role: 'system', content: 'B\nC' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'look' },
          { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AAAA' } },
          { type: 'file', mediaType: 'image', data: { type: 'url', url: new URL('https://example.com/a.png') } },
          { type: 'file', mediaType: 'audio/mpeg', data: { type: 'data', data: 'BBBB' } },
          {
            type: 'file',
            mediaType: 'application/pdf',
            data: { type: 'data', data: 'CCCC' },
            filename: 'a.pdf',
          },
        ],
      },
    ]);
  });

  test('an assistant that thought and called, and the results of its calls', () => {
    const call = (id: string, given: string, more: object = {}) => ({
      id,
      type: 'function',
      function: { name: 'f', arguments: given },
      ...more,
    });
    const metadata = { acme: { signature: 's' } };
    expect(
      toPrompt([
        {
          role: 'assistant',
          content: 'Well.',
          reasoning: 'not used beside details',
          reasoning_details: [{ type: 'reasoning.text', index: 0, text: 'Hm.', provider_metadata: metadata }],
          tool_calls: [
            call('1', '{"a":1}', { extra_content: { provider_metadata: metadata } }),
            call('2', ''),
            call('3', '{broken'),
          ],
        },
        { role: 'tool', tool_call_id: '1', content: 'one' },
        { role: 'tool', tool_call_id: '2', content: [{ type: 'text', text: 'two' }] },
        {
          role: 'tool',
          tool_call_id: '3',
          content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }],
        },
        { role: 'assistant', content: null, reasoning_content: 'Hm again.' },
      ]),
    ).toEqual([
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'Hm.', providerOptions: metadata },
          { type: 'text', text: 'Well.' },
          { type: 'tool-call', toolCallId: '1', toolName: 'f', input: { a: 1 }, providerOptions: metadata },
          { type: 'tool-call', toolCallId: '2', toolName: 'f', input: {} },
          { type: 'tool-call', toolCallId: '3', toolName: 'f', input: '{broken' },
        ],
      },
      {
        role: 'tool',
        content: [
          { type: 'tool-result', toolCallId: '1', toolName: 'f', output: { type: 'text', value: 'one' } },
          { type: 'tool-result', toolCallId: '2', toolName: 'f', output: { type: 'text', value: 'two' } },
          {
            type: 'tool-result',
            toolCallId: '3',
            toolName: 'f',
            output: {
              type: 'content',
              value: [{ type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AAAA' } }],
            },
          },
        ],
      },
      { role: 'assistant', content: [{ type: 'reasoning', text: 'Hm again.' }] },
    ]);
  });
});

describe('errors of packages', () => {
  const call = (more: object) => ({ name: 'AI_APICallError', message: 'words of the vendor', ...more });
  test.each<[string, unknown, number, object]>([
    ['a status of the vendor', call({ statusCode: 429, responseHeaders: { 'retry-after': '7' } }), 429, {}],
    [
      'a code of the vendor',
      call({ statusCode: 400, data: { error: { code: 'context_length_exceeded' } } }),
      400,
      { code: 'context_length_exceeded' },
    ],
    ['no answer', call({}), 502, {}],
    ['the last of several tries', { name: 'AI_RetryError', lastError: call({ statusCode: 503 }) }, 503, {}],
    ['an unknown model', { name: 'AI_NoSuchModelError', message: 'no m' }, 404, { code: 'model_not_found' }],
    ['what the model cannot', { name: 'AI_UnsupportedFunctionalityError', message: 'no audio' }, 400, {}],
    ['a missing key', { name: 'AI_LoadAPIKeyError', message: 'no key' }, 401, {}],
    ['a broken reply', { name: 'AI_TypeValidationError', message: 'no choices' }, 502, {}],
    ['a text', 'overloaded', 502, { message: 'overloaded' }],
    ['nothing', undefined, 502, {}],
    ['a fault of the request', new RequestFault('no n', { param: 'n' }), 400, { param: 'n' }],
  ])('%s', (_name, thrown, status, error) => {
    const reply = toErrorReply(thrown);
    expect([reply.status, reply.body]).toMatchObject([status, { error }]);
  });

  test('a pause passes only if it is a header', () => {
    expect(toErrorReply(call({ statusCode: 429, responseHeaders: { 'retry-after': '7' } })).headers).toEqual({
      'retry-after': '7',
    });
    expect(toErrorReply(call({ statusCode: 429, responseHeaders: { 'retry-after': '7\r\nx: y' } })).headers).toEqual(
      {},
    );
  });
});

test.each<[string, unknown, unknown]>([
  ['none', undefined, null],
  ['unknown totals', { inputTokens: {}, outputTokens: {} }, null],
  ['half a claim', { inputTokens: { total: 5 }, outputTokens: {} }, null],
  ['no number', { inputTokens: { total: NaN }, outputTokens: { total: 1 } }, null],
  [
    'parts without a total',
    { inputTokens: { noCache: 1, cacheRead: 2, cacheWrite: 4 }, outputTokens: { text: 8, reasoning: 16 } },
    {
      prompt_tokens: 7,
      completion_tokens: 24,
      total_tokens: 31,
      prompt_tokens_details: { cached_tokens: 2, cache_write_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 16 },
    },
  ],
])('usage: %s', (_name, usage, shown) => {
  expect(toChatUsage(usage as never)).toEqual(shown);
});

test('finish reasons', () => {
  expect(toFinish({ unified: 'content-filter', raw: 'SAFETY' })).toEqual({
    finish_reason: 'content_filter',
    native_finish_reason: 'SAFETY',
  });
  expect(toFinish({ unified: 'new' as never, raw: undefined })).toEqual({ finish_reason: 'stop' });
  expect(toFinish(undefined)).toEqual({ finish_reason: 'stop' });
});
