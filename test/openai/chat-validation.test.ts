import { describe, expect, it } from 'vitest';
import { GatewayError } from '#errors';
import { createCheck } from '#http';
import { chatSchema, type ChatBody } from '../../src/openai/chat/chat-schema.ts';

const check = createCheck<ChatBody>(chatSchema(2048));
const user = { role: 'user', content: 'hi' };
const valid = { model: 'acme/small', messages: [user] };
const image = (url: unknown) => ({
  ...valid,
  messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
});

/** Body, the field that the error names, and words of its message. */
const REFUSED: readonly (readonly [unknown, string | undefined, string])[] = [
  [null, undefined, 'The body must be a JSON object, not null'],
  [[], undefined, 'The body must be a JSON object, not an empty array'],
  ['hi', undefined, 'must be a JSON object'],
  [{ messages: [user] }, 'model', 'model is required: the name of a model'],
  [{ ...valid, model: '' }, 'model', '1 to 256 characters'],
  [{ ...valid, model: 'x'.repeat(257) }, 'model', '1 to 256 characters'],
  [{ ...valid, model: 'a\r\nb' }, 'model', 'without control characters'],
  [{ ...valid, model: 7 }, 'model', 'not 7'],
  [{ ...valid, model: null }, 'model', 'not null'],
  [
    JSON.parse('{"__proto__":{"model":"acme/small"},"messages":[{"role":"user","content":"hi"}]}'),
    'model',
    'is required',
  ],
  [{ model: 'm' }, 'messages', 'messages is required: an array of 1 to 2048 messages'],
  [{ ...valid, messages: [] }, 'messages', 'an array of 1 to 2048 messages, not an empty array'],
  [{ ...valid, messages: Array.from({ length: 2049 }, () => user) }, 'messages', 'not an array of 2049'],
  [{ ...valid, messages: 'hi' }, 'messages', 'not "hi"'],
  [{ ...valid, messages: [user, 'x'] }, 'messages[1]', 'an object with role and content'],
  [{ ...valid, messages: [user, { content: 'x' }] }, 'messages[1].role', 'is required: one of system, developer, user'],
  [
    { ...valid, messages: [user, { role: 'robot', content: 'x' }] },
    'messages[1].role',
    'must be one of system, developer, user, assistant, tool, function, not "robot"',
  ],
  [{ ...valid, messages: [{ role: 'user' }] }, 'messages[0].content', 'is required: a string or an array of parts'],
  [{ ...valid, messages: [{ role: 'user', content: null }] }, 'messages[0].content', 'not null'],
  [{ ...valid, messages: [{ role: 'user', content: 7 }] }, 'messages[0].content', 'a string or an array of parts'],
  [{ ...valid, messages: [{ role: 'user', content: ['x'] }] }, 'messages[0].content[0]', 'an object with a type'],
  [
    { ...valid, messages: [{ role: 'user', content: [{ type: 'text' }] }] },
    'messages[0].content[0].text',
    'is required',
  ],
  [
    { ...valid, messages: [{ role: 'user', content: [{ type: 'text', text: 1 }] }] },
    'messages[0].content[0].text',
    'a string',
  ],
  [{ ...valid, max_price: 0.1 }, 'max_price', 'inside provider'],
  [
    { ...valid, messages: [{ role: 'user', content: [{ type: 'new', x: 1 }] }] },
    'messages[0].content[0].type',
    'one of text, image_url, input_audio',
  ],
  [
    { ...valid, messages: [{ role: 'user', content: [{ type: 'image_url' }] }] },
    'messages[0].content[0].image_url',
    'is required',
  ],
  [
    { ...valid, messages: [{ role: 'user', content: [{ type: 'image_url', image_url: 'https://x' }] }] },
    'messages[0].content[0].image_url',
    'an object',
  ],
  [image('http://example.com/a.png'), 'messages[0].content[0].image_url.url', 'an https URL or a data URL'],
  [image('file:///etc/passwd'), 'messages[0].content[0].image_url.url', 'an https URL'],
  [image('data:text/html;base64,AAAA'), 'messages[0].content[0].image_url.url', 'an https URL'],
  [
    { ...valid, tollgate: { task: 't' } },
    'tollgate.task',
    'tollgate.task is not known here. Known are task_id, context_id, state, cost_pending, note, messages, tool_calls',
  ],
  [image('data:image/png,AAAA'), 'messages[0].content[0].image_url.url', 'an https URL'],
  [image('data:image/png;base64,'), 'messages[0].content[0].image_url.url', 'an https URL'],
  [image('data:image/png;base64,@@@@'), 'messages[0].content[0].image_url.url', 'an https URL'],
  [{ ...valid, temperature: 2.1 }, 'temperature', 'must be a number from 0 to 2, not 2.1'],
  [{ ...valid, temperature: -0.1 }, 'temperature', 'from 0 to 2'],
  [{ ...valid, temperature: '1' }, 'temperature', 'not "1"'],
  [{ ...valid, top_p: 1.01 }, 'top_p', 'from 0 to 1'],
  [{ ...valid, presence_penalty: -2.5 }, 'presence_penalty', 'from -2 to 2'],
  [{ ...valid, frequency_penalty: 3 }, 'frequency_penalty', 'from -2 to 2'],
  [{ ...valid, max_tokens: 0 }, 'max_tokens', 'an integer from 1 to 9007199254740991'],
  [{ ...valid, max_tokens: 1.5 }, 'max_tokens', 'an integer from 1 to 9007199254740991'],
  [{ ...valid, max_tokens: 1e300 }, 'max_tokens', 'an integer from 1 to 9007199254740991'],
  [{ ...valid, max_completion_tokens: -1 }, 'max_completion_tokens', 'an integer from 1 to 9007199254740991'],
  [{ ...valid, n: 0 }, 'n', 'an integer from 1 to 128'],
  [{ ...valid, n: 129 }, 'n', 'an integer from 1 to 128'],
  [{ ...valid, stop: ['a', 'b', 'c', 'd', 'e'] }, 'stop', 'at most 4 strings, not an array of 5'],
  [{ ...valid, stop: [1] }, 'stop[0]', 'a string'],
  [{ ...valid, stop: 4 }, 'stop', 'a string or an array'],
  [{ ...valid, stream: 'yes' }, 'stream', 'true or false'],
  [{ ...valid, stream_options: [] }, 'stream_options', 'an object'],
  [{ ...valid, tools: {} }, 'tools', 'an array of at most 1024 tools'],
  [{ ...valid, tools: [{ function: { name: 'f' } }] }, 'tools[0].type', 'is required'],
  [{ ...valid, tools: [{ type: 'function', function: {} }] }, 'tools[0].function.name', 'is required'],
  [{ ...valid, tool_choice: 3 }, 'tool_choice', 'must be "auto", "none", "required" or an object'],
  [{ ...valid, metadata: 'x' }, 'metadata', 'an object'],
  [{ ...valid, user: {} }, 'user', 'a string'],
  [{ ...valid, session_id: 'x'.repeat(257) }, 'session_id', 'at most 256 characters'],
  [{ ...valid, models: ['a', 1] }, 'models[1]', 'the name of a model'],
  [{ ...valid, models: Array.from({ length: 17 }, String) }, 'models', 'at most 16 model names'],
  [{ ...valid, provider: 'acme' }, 'provider', 'an object'],
  [{ ...valid, provider: { order: 'acme' } }, 'provider.order', 'an array of at most 64'],
  [{ ...valid, provider: { sort: 'beauty' } }, 'provider.sort', 'one of price, latency, throughput, not "beauty"'],
  [{ ...valid, provider: { allow_fallbacks: 1 } }, 'provider.allow_fallbacks', 'true or false'],
  [
    { ...valid, provider: { max_price: { request: 1 } } },
    'provider.max_price.request',
    'is not known here. Known are prompt, completion, image',
  ],
  [
    { ...valid, provider: { max_prices: { prompt: 1 } } },
    'provider.max_prices',
    'is not known here; did you mean max_price? Known are order, only',
  ],
  [{ ...valid, provider: { oder: ['a'] } }, 'provider.oder', 'is not known here; did you mean order?'],
  [{ ...valid, provider: { data_collection: 'never' } }, 'provider.data_collection', 'must be "allow" or "deny"'],
  [{ ...valid, provider: { zdr: 'yes' } }, 'provider.zdr', 'true or false'],
  [{ ...valid, provider: { quantizations: 'fp8' } }, 'provider.quantizations', 'a list of int4, int8'],
  [{ ...valid, provider: { quantizations: ['fp7'] } }, 'provider.quantizations[0]', 'one of int4, int8'],
  [{ ...valid, provider: { region: 'EU' } }, 'provider.region', '1 to 32 small letters'],
  [{ ...valid, provider: { region: ['eu', ''] } }, 'provider.region[1]', '1 to 32 small letters'],
  [
    { ...valid, provider: { enforce_distillable_text: true } },
    'provider.enforce_distillable_text',
    'the gateway does not know the terms of a model',
  ],
  [{ ...valid, provider: { require_parameters: 'yes' } }, 'provider.require_parameters', 'true or false'],
];

const ACCEPTED: readonly (readonly [string, Record<string, unknown>])[] = [
  ['the least', valid],
  [
    'members of OpenRouter that promise nothing',
    {
      ...valid,
      provider: {
        require_parameters: true,
        data_collection: 'allow',
        zdr: false,
        quantizations: [],
        enforce_distillable_text: false,
      },
    },
  ],
  [
    'choices by what providers declare',
    {
      ...valid,
      provider: { data_collection: 'deny', zdr: true, quantizations: ['fp8', 'unknown'], region: ['eu', 'us-east-1'] },
    },
  ],
  [
    'nulls for what is optional',
    {
      ...valid,
      temperature: null,
      top_p: null,
      stop: null,
      n: null,
      max_tokens: null,
      stream: null,
      tools: null,
      tool_choice: null,
      metadata: null,
      user: null,
      provider: null,
      models: null,
      session_id: null,
      stream_options: null,
      presence_penalty: null,
    },
  ],
  [
    'the limits',
    {
      ...valid,
      temperature: 2,
      top_p: 0,
      presence_penalty: -2,
      frequency_penalty: 2,
      n: 128,
      stop: ['a', 'b', 'c', 'd'],
      max_tokens: 1,
    },
  ],
  [
    'fields that nobody here knows',
    {
      ...valid,
      seed: 1,
      response_format: { type: 'json_object' },
      reasoning: { effort: 'high' },
      logit_bias: { 1: 2 },
    },
  ],
  [
    'all that a reply says of itself, sent back',
    {
      ...valid,
      tollgate: {
        task_id: 't',
        context_id: 'c',
        state: 'working',
        cost_pending: true,
        note: { type: 'reply_cut' },
        messages: [user],
        tool_calls: [],
      },
    },
  ],
  [
    'every role',
    {
      ...valid,
      messages: ['system', 'developer', 'user', 'assistant', 'tool', 'function'].map((role) => ({
        role,
        content: 'x',
      })),
    },
  ],
  [
    'an assistant without content',
    {
      ...valid,
      messages: [
        user,
        { role: 'assistant', content: null, tool_calls: [{ id: 'a' }] },
        { role: 'assistant', tool_calls: [] },
        { role: 'tool', tool_call_id: 'a', content: '' },
      ],
    },
  ],
  [
    'parts of other types',
    {
      ...valid,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'input_audio', input_audio: { data: '', format: 'wav' } },
            { type: 'text', text: '' },
            { type: 'file', file: { file_id: 'f' } },
          ],
        },
      ],
    },
  ],
  ['an https image', image('https://example.com/a.png')],
  ['a data URL', image(`data:image/jpeg;base64,${'A'.repeat(1_000_000)}`)],
  [
    'preferences',
    {
      ...valid,
      provider: {
        order: ['a'],
        only: ['a'],
        ignore: [],
        allow_fallbacks: false,
        sort: 'price',
        max_price: { prompt: 1, completion: '2.5', image: null },
      },
    },
  ],
];

describe('the check of a chat request', () => {
  it.each(REFUSED)('refuses %j', (body, param, words) => {
    let thrown: unknown;
    try {
      check(body);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(GatewayError);
    expect(thrown).toMatchObject({ code: 'invalid_request', param });
    expect((thrown as Error).message).toContain(words);
    expect((thrown as Error).message.length).toBeLessThan(400);
  });

  it.each(ACCEPTED)('accepts %s', (_name, body) => {
    expect(check(body)).toBe(body);
  });

  it('never repeats what is long or unprintable', () => {
    expect(() => check({ ...valid, model: 'x'.repeat(100_000) })).toThrow(/^.{1,200}$/);
    expect(() => check({ ...valid, stop: [{}], user: '\u202e\n' })).toThrow(/^[\x20-\x7e“”]*$/);
    expect(() => check({ ...valid, provider: { max_price: { ['\u202e\n'.repeat(100)]: 1 } } })).toThrow(
      /^[\x20-\x7e]*$/,
    );
  });
});
