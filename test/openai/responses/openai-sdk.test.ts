import OpenAI from 'openai';
import { zodTextFormat } from 'openai/helpers/zod';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import {
  call,
  chunk,
  completion,
  startTranscripts,
  usage,
  words,
  type TranscriptUpstream,
} from '../translated/support/transcript-upstream.ts';

// The Responses API by OpenAI's SDK as it is on npm. Its stream joins the events, and fails where their order is wrong.

const MODEL = 'acme/thinker';
let upstream: TranscriptUpstream;
let spine: Spine;
let client: OpenAI;
beforeAll(async () => {
  upstream = await startTranscripts();
  spine = await startSpine({ toml: UNHURRIED + modelBlock({ name: MODEL, provider: 'Acme', url: upstream.url }) });
  client = new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 });
});
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await upstream.stop();
  }
});

const asked = () => upstream.asked.at(-1)!;
const TOOLS = [
  { type: 'function', name: 'weather', parameters: { type: 'object' }, strict: false },
  {
    type: 'custom',
    name: 'apply_patch',
    description: 'Patch files',
    format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' },
  },
  {
    type: 'namespace',
    name: 'files',
    description: 'Files',
    tools: [{ type: 'function', name: 'read', parameters: { type: 'object' } }],
  },
  { type: 'web_search' },
] as unknown as OpenAI.Responses.Tool[];

test('responses.create answers a text, with the use and the cost of it', async () => {
  upstream.answer = () => ({ body: completion({ content: 'Good morning' }) });
  const { data, response } = await client.responses
    .create({ model: MODEL, input: 'Hi', instructions: 'Be kind.', max_output_tokens: 60 })
    .withResponse();
  expect(data).toMatchObject({
    object: 'response',
    status: 'completed',
    model: MODEL,
    output_text: 'Good morning',
    store: true,
    usage: {
      input_tokens: 20,
      input_tokens_details: { cached_tokens: 5, cache_write_tokens: 0 },
      output_tokens: 9,
      total_tokens: 29,
      cost: 0.000038,
    },
  });
  expect(response.headers.get('x-tollgate-wire')).toBe('translated');
  expect(await spine.generation(response.headers.get('x-generation-id'))).toMatchObject({ cost_micro_usdc: 38 });
  expect(asked()).toMatchObject({
    messages: [
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'Hi' },
    ],
    max_completion_tokens: 60,
  });
});

test('pages that a chat model cites are annotations of its text', async () => {
  const page = { url: 'https://a.example/', title: 'A', start_index: 4, end_index: 8 };
  const annotations = [
    { type: 'url_citation', url_citation: page },
    { type: 'file' },
    null,
    { url_citation: { title: 'B' } },
  ];
  const cited = [{ type: 'url_citation', ...page }];
  upstream.answer = () => ({ body: completion({ content: 'See this', annotations }) });
  const whole = await client.responses.create({ model: MODEL, input: 'Hi' });
  expect(whole.output).toMatchObject([{ content: [{ text: 'See this', annotations: cited }] }]);

  const said = [
    chunk({ content: 'See ' }),
    chunk({ content: 'this' }),
    chunk({ annotations }),
    chunk({}, 'stop'),
    usage(),
  ];
  upstream.answer = () => ({ chunks: said });
  const stream = client.responses.stream({ model: MODEL, input: 'Hi' });
  const added: unknown[] = [];
  stream.on('response.output_text.annotation.added', (event) => added.push(event));
  expect((await stream.finalResponse()).output).toMatchObject([
    { content: [{ text: 'See this', annotations: cited }] },
  ]);
  expect(added).toMatchObject([{ output_index: 0, content_index: 0, annotation_index: 0, annotation: cited[0] }]);
});

test('responses.parse reads an answer of a schema', async () => {
  upstream.answer = () => ({ body: completion({ content: '{"city":"Oslo"}' }) });
  const format = zodTextFormat(z.object({ city: z.string() }), 'place');
  const { output_parsed: parsed } = await client.responses.parse({ model: MODEL, input: 'Where?', text: { format } });
  expect(parsed).toEqual({ city: 'Oslo' });
  expect(asked()['response_format']).toMatchObject({
    type: 'json_schema',
    json_schema: { name: 'place', strict: true },
  });
});

test('a reply that reached its cap is incomplete', async () => {
  upstream.answer = () => ({ body: completion({ content: 'Good' }, 'length') });
  const reply = await client.responses.create({ model: MODEL, input: 'Hi' });
  expect(reply).toMatchObject({
    status: 'incomplete',
    incomplete_details: { reason: 'max_output_tokens' },
    output: [{ type: 'message', status: 'incomplete' }],
  });
});

describe('a call that was cut does not come as completed', () => {
  const PATCH = '{"content":"*** Beg';
  const calls = [
    call(0, { id: 'a', name: 'weather', args: '{"c":1}' }),
    call(1, { id: 'b', name: 'apply_patch', args: PATCH }),
    call(2, { id: 'c', name: 'weather', args: '{"path":"/ho' }),
  ];
  const output = [
    { type: 'message', status: 'completed' },
    { type: 'function_call', call_id: 'a', status: 'completed', arguments: '{"c":1}' },
    { type: 'custom_tool_call', call_id: 'b', status: 'incomplete', input: '' },
    { type: 'function_call', call_id: 'c', status: 'incomplete', arguments: '{"path":"/ho' },
  ];
  const asked = { model: MODEL, input: 'x', tools: TOOLS };
  const eventsOf = async () => {
    const events: OpenAI.Responses.ResponseStreamEvent[] = [];
    for await (const event of await client.responses.create({ ...asked, stream: true })) events.push(event);
    return events;
  };
  const named = (events: readonly OpenAI.Responses.ResponseStreamEvent[], name: string) =>
    events.flatMap((event) => (event.type === name ? [event] : []));

  test('at its cap, in a stream', async () => {
    upstream.answer = () => ({ chunks: [chunk({ content: 'I look' }), ...calls, chunk({}, 'length'), usage()] });
    const events = await eventsOf();
    const done = named(events, 'response.output_item.done') as OpenAI.Responses.ResponseOutputItemDoneEvent[];
    expect(done.map(({ item }) => item)).toMatchObject(output);
    expect(named(events, 'response.function_call_arguments.done')).toMatchObject([{ arguments: '{"c":1}' }]);
    expect(named(events, 'response.custom_tool_call_input.done')).toEqual([]);
    expect(events.at(-1)).toMatchObject({ type: 'response.incomplete', response: { status: 'incomplete', output } });
    const joined = await client.responses.stream(asked).finalResponse();
    expect(joined.output).toMatchObject(output);
  });

  test('at its cap, in one piece', async () => {
    const tool_calls = [
      { id: 'a', type: 'function', function: { name: 'weather', arguments: '{"c":1}' } },
      { id: 'b', type: 'function', function: { name: 'apply_patch', arguments: PATCH } },
      { id: 'c', type: 'function', function: { name: 'weather', arguments: '{"path":"/ho' } },
    ];
    upstream.answer = () => ({ body: completion({ content: 'I look', tool_calls }, 'length') });
    expect((await client.responses.create(asked)).output).toMatchObject(output);
  });

  test('at its cap, also if its arguments are whole', async () => {
    upstream.answer = () => ({ chunks: [calls[0]!, chunk({}, 'length'), usage()] });
    const { output: items } = await client.responses.stream(asked).finalResponse();
    expect(items).toMatchObject([{ type: 'function_call', status: 'incomplete', arguments: '{"c":1}' }]);
  });

  test('where the provider breaks off', async () => {
    const said = [chunk({ content: 'I look' }), ...calls];
    upstream.answer = () => ({ cut: said.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('') });
    const events = await eventsOf();
    const done = named(events, 'response.output_item.done') as OpenAI.Responses.ResponseOutputItemDoneEvent[];
    expect(done.map(({ item }) => item)).toMatchObject([output[0]]);
    expect(named(events, 'response.function_call_arguments.done')).toEqual([]);
    const failed = { status: 'failed', output: [output[0]] };
    expect(events.at(-1)).toMatchObject({ type: 'response.failed', response: failed });
  });
});

test('thinking and text that reached the cap are incomplete', async () => {
  const thinking = { reasoning: { summary: 'auto' as const } };
  upstream.answer = () => ({ chunks: [chunk({ reasoning_content: 'Hm' }), chunk({}, 'length'), usage()] });
  const thought = await client.responses.stream({ model: MODEL, input: 'x', ...thinking }).finalResponse();
  expect(thought.output).toMatchObject([{ type: 'reasoning', status: 'incomplete' }]);
  const said = [chunk({ reasoning_content: 'Hm' }), chunk({ content: 'Half' }), chunk({}, 'length'), usage()];
  upstream.answer = () => ({ chunks: said });
  const { output } = await client.responses.stream({ model: MODEL, input: 'x', ...thinking }).finalResponse();
  expect(output).toMatchObject([
    { type: 'reasoning' },
    { type: 'message', status: 'incomplete', content: [{ text: 'Half' }] },
  ]);
  expect(output[0]).not.toHaveProperty('status');
});

describe('responses.stream', () => {
  const ask = (input: unknown) => ({
    model: MODEL,
    input: input as OpenAI.Responses.ResponseInput,
    include: ['reasoning.encrypted_content' as const],
    reasoning: { summary: 'auto' as const, effort: 'low' as const },
    tools: TOOLS,
  });

  test('joins thinking, text and calls that are mixed, and all of it can be sent back', async () => {
    upstream.answer = () => ({
      chunks: [
        chunk({ reasoning_content: 'Hm, ' }),
        chunk({ reasoning_content: 'well.' }),
        ...['I "see" ', '🌍 it', ' all'].map((content) => chunk({ content })),
        call(0, { id: 'a', name: 'weather', args: '{"c":' }),
        call(1, { id: 'b', name: 'apply_patch', args: '{"content":"*** Begin' }),
        call(0, { args: '1}' }),
        call(1, { args: '\\n\\"x\\""}' }),
        call(2, { id: 'c', name: 'files__read', args: '{}' }),
        chunk({}, 'tool_calls'),
        usage(),
      ],
    });
    const stream = client.responses.stream(
      ask([
        { role: 'developer', content: 'Be brief.' },
        { role: 'user', content: 'Look' },
      ]),
    );
    const sequence: number[] = [];
    stream.on('event', (event) => sequence.push(event.sequence_number));
    const { output, status, usage: used } = await stream.finalResponse();
    expect(sequence).toEqual(sequence.map((_, index) => index));
    expect([status, used!.total_tokens]).toEqual(['completed', 29]);
    expect(output).toMatchObject([
      {
        type: 'reasoning',
        summary: [{ type: 'summary_text', text: 'Hm, well.' }],
        encrypted_content: expect.stringMatching(/^tg2\./) as string,
      },
      { type: 'message', content: [{ type: 'output_text', text: 'I "see" 🌍 it all' }] },
      { type: 'function_call', call_id: 'a', name: 'weather', arguments: '{"c":1}' },
      { type: 'custom_tool_call', call_id: 'b', name: 'apply_patch', input: '*** Begin\n"x"' },
      { type: 'function_call', call_id: 'c', name: 'read', namespace: 'files', arguments: '{}' },
    ]);
    expect(asked()).toMatchObject({
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Look' },
      ],
      tools: [
        { function: { name: 'weather' } },
        {
          function: {
            name: 'apply_patch',
            description: expect.stringMatching(/Patch files.*lark grammar:\nstart: "x"/s) as string,
            parameters: { required: ['content'] },
          },
        },
        { function: { name: 'files__read' } },
      ],
    });
    expect(asked()).not.toHaveProperty('reasoning_effort');

    upstream.answer = () => ({ chunks: words('Fine.') });
    const outputs = [
      { type: 'function_call_output', call_id: 'a', output: 'sun' },
      { type: 'custom_tool_call_output', call_id: 'b', output: [{ type: 'input_text', text: 'patched' }] },
      { type: 'function_call_output', call_id: 'c', output: 'content' },
    ];
    const next = await client.responses
      .stream(ask([{ role: 'user', content: 'Look' }, ...output, ...outputs]))
      .finalResponse();
    expect(next.output).toMatchObject([{ type: 'message', content: [{ text: 'Fine.' }] }]);
    const named = (id: string, name: string, args: string) => ({
      id,
      type: 'function',
      function: { name, arguments: args },
    });
    expect(asked()['messages']).toEqual([
      { role: 'user', content: 'Look' },
      {
        role: 'assistant',
        content: 'I "see" 🌍 it all',
        reasoning_content: 'Hm, well.',
        tool_calls: [
          named('a', 'weather', '{"c":1}'),
          named('b', 'apply_patch', '{"content":"*** Begin\\n\\"x\\""}'),
          named('c', 'files__read', '{}'),
        ],
      },
      { role: 'tool', tool_call_id: 'a', content: 'sun' },
      { role: 'tool', tool_call_id: 'b', content: 'patched' },
      { role: 'tool', tool_call_id: 'c', content: 'content' },
    ]);
  });

  test('ends with response.failed where the provider breaks off, and costs nothing', async () => {
    upstream.answer = () => ({ cut: `data: ${JSON.stringify(chunk({ content: 'Half' }))}\n\n` });
    const before = await spine.balance();
    const types: string[] = [];
    const stream = await client.responses.create({ model: MODEL, input: 'x', stream: true });
    for await (const event of stream) {
      types.push(event.type);
      if (event.type === 'response.failed') expect(event.response.error!.code).toBe('server_error');
    }
    expect([types[0], types.at(-1)]).toEqual(['response.created', 'response.failed']);
    await spine.quiet();
    expect(await spine.balance()).toEqual(before);
  });
});

describe('a provider that wants back what it sent with a call', () => {
  const extra_content = { google: { thought_signature: 'S' } };
  const weather = { id: 'a', type: 'function', function: { name: 'weather', arguments: '{}' }, extra_content };
  const patch = { id: 'b', type: 'function', function: { name: 'apply_patch', arguments: '{"content":"x"}' } };
  const calls = [weather, { ...patch, extra_content }];
  const message = { content: null, reasoning_content: 'Cold.', tool_calls: calls };

  test.each([
    ['whole', false, []],
    ['streamed', true, []],
    ['streamed, with encrypted thinking', true, ['reasoning.encrypted_content' as const]],
  ])('gets it, %s', async (_, stream, include) => {
    upstream.answer = () =>
      stream
        ? {
            chunks: [
              chunk({ reasoning_content: 'Cold.' }),
              chunk({ tool_calls: calls.map((one, index) => ({ index, ...one })) }),
              chunk({}, 'tool_calls'),
              usage(),
            ],
          }
        : { body: completion(message, 'tool_calls') };
    const input = [{ role: 'user' as const, content: 'Look' }];
    const given = { model: MODEL, input, tools: TOOLS, include };
    const { output }: OpenAI.Responses.Response = await (stream
      ? client.responses.stream(given).finalResponse()
      : client.responses.create(given));
    const results: Readonly<Record<string, string>> = { function_call: 'sun', custom_tool_call: 'patched' };
    const outputs = output.flatMap((item) =>
      'call_id' in item ? [{ type: `${item.type}_output`, call_id: item.call_id, output: results[item.type] }] : [],
    );
    const sealed = { call_id: expect.stringMatching(/^tg3_[a-zA-Z0-9_-]+$/) as string };
    expect(outputs).toMatchObject([sealed, sealed]);
    upstream.answer = () => ({ body: completion({ content: 'Fine.' }) });
    await client.responses.create({
      ...given,
      input: [...input, ...output, ...outputs] as OpenAI.Responses.ResponseInput,
    });
    expect((asked()['messages'] as unknown[]).slice(1)).toEqual([
      { role: 'assistant', ...message },
      { role: 'tool', tool_call_id: 'a', content: 'sun' },
      { role: 'tool', tool_call_id: 'b', content: 'patched' },
    ]);
  });
});

describe('a request that cannot be answered', () => {
  test.each([
    [{ previous_response_id: 'r' }, 400, /^Previous response with id 'r' not found\.$/],
    [{ conversation: 'conv_1' }, 400, /conversation is not supported, .* Name the last one in previous_response_id/],
    [{ background: true, store: false }, 400, /background: true needs store: true/],
    [{ input: [{ type: 'item_reference', id: 'x' }] }, 404, /^Item with id 'x' not found/],
    [{ input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] }] }, 400, /image_url must be/],
    [{ tools: [{ type: 'web_search' }], tool_choice: { type: 'web_search' } }, 422, /runs only at OpenAI/],
    [
      { tools: [{ type: 'mcp', server_label: 'x', server_url: 'https://elsewhere.example' }] },
      422,
      /only tools of its own services/,
    ],
    ...['always', {}, { always: { tool_names: ['a'] } }, { never: { tool_names: ['a'] } }].map(
      (approval): [object, number, RegExp] => [
        { tools: [{ type: 'mcp', service: 'kit', allowed_tools: ['a', 'b'], require_approval: approval }] },
        422,
        /cannot ask for an approval .* tools\[0\]\.require_approval/,
      ],
    ),
    [
      { tools: [{ type: 'mcp', service: 'kit', allowed_tools: { tool_names: ['a', 'b'], read_only: true } }] },
      422,
      /only by their names.* tools\[0\]\.allowed_tools\.read_only/,
    ],
    [{ model: 'nobody/has' }, 404, /Model not found/],
    [{ input: [] }, 400, /input must be/],
    [{ input: [{ type: 'foo' }, { role: 'user', content: 'x' }] }, 400, /^input\[0\]\.type must be .*, and is "foo"$/],
  ])('%j', async (more, status, message) => {
    const reply = await spine.post('/responses', { model: MODEL, input: 'x', ...more });
    expect(reply.status).toBe(status);
    expect(((await reply.json()) as { error: { message: string } }).error.message).toMatch(message);
  });

  test('fields that no chat provider gets are named', async () => {
    upstream.answer = () => ({ body: completion({ content: 'ok' }) });
    const input = [
      { type: 'web_search_call', id: 'ws_1', status: 'completed' },
      { role: 'user', content: 'x' },
    ];
    const more = { zzz: 1, top_logprobs: 2, max_tool_calls: null, truncation: 'auto', include: [], store: false };
    const reply = await spine.post('/responses', { model: MODEL, input, ...more });
    expect([reply.status, reply.headers.get('x-tollgate-dropped')]).toEqual([200, 'zzz, top_logprobs']);
  });

  test('tokens of a model that does not exist are not counted', async () => {
    const counted = client.responses.inputTokens.count({ model: 'nobody/has', input: 'x' });
    await expect(counted).rejects.toMatchObject({ status: 404, message: expect.stringMatching(/Model not found/) });
  });
});
