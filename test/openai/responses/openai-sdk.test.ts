import OpenAI from 'openai';
import { zodTextFormat } from 'openai/helpers/zod';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { modelBlock, UNHURRIED } from '../../support/spine.ts';
import { call, chunk, completion, startTranscripts, usage } from '../translated/support/transcript-upstream.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

// The Responses API by OpenAI's SDK as it is on npm. Its stream joins the events, and fails where their order is wrong.

const MODEL = 'acme/thinker';
let client: OpenAI;
const upstream = ofFile(startTranscripts, (one) => one.stop());
const spine = spineOfFile(() => ({
  toml: UNHURRIED + modelBlock({ name: MODEL, provider: 'Acme', url: upstream.url }),
}));
beforeAll(() => {
  client = new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 });
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

describe('responses.stream', () => {
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
  test('tokens of a model that does not exist are not counted', async () => {
    const counted = client.responses.inputTokens.count({ model: 'nobody/has', input: 'x' });
    await expect(counted).rejects.toMatchObject({ status: 404, message: expect.stringMatching(/Model not found/) });
  });
});
