import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { ask, MODEL, modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// What reaches the provider: the consumer's request, untouched but for what speaks to the gateway and for the cap
// that was locked.

let spine: Spine;
beforeAll(async () => {
  // Without max_output_tokens: what the context leaves.
  spine = await startSpine({
    toml:
      UNHURRIED +
      modelBlock({ name: 'test/open-end', provider: 'Open', url: '{provider}', contextLength: 2_000 }).replace(
        /max_output.*/,
        '',
      ) +
      modelBlock({
        name: 'test/files',
        provider: 'Files',
        url: '{provider}',
        lines: 'input_modalities = ["text", "image", "file"]',
      }),
  });
});
afterAll(() => spine.stop());
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

async function forwarded(
  body: object | string,
  headers: Record<string, string> = {},
): Promise<Record<string, unknown>> {
  const seen = spine.provider.log.length;
  const response = await spine.post('/chat/completions', body, headers);
  expect(response.status, await response.text()).toBe(200);
  expect(spine.provider.log.length).toBe(seen + 1);
  return spine.provider.log.at(-1)!.body as Record<string, unknown>;
}

test('unknown fields arrive as they were sent, however deep and odd', async () => {
  const odd = {
    seed: -7,
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'x', strict: true, schema: { type: 'object', properties: { a: { enum: [null, 1, 'é'] } } } },
    },
    thinking: { type: 'enabled', nested: { a: null, b: [null, [null, {}], []], c: {} } },
    parallel_tool_calls: false,
    logprobs: true,
    logit_bias: { '50256': -100, '0': 0 },
    unicode: [
      '\u{1F6A7}',
      'e\u0301',
      '\u0000\u001f\u007f',
      '\u2028\u2029',
      '\ufffd',
      'ا\u202eb',
      '\\u0041',
      '"\\/\b\f\n\r\t',
    ],
    numbers: [0, -0.5, 1e21, 1e-7, 5e-324, 1.7976931348623157e308, 9007199254740991, 0.1],
    empty: '',
    'key with "quotes" and \u{1F600}': { '': 1 },
    constructor: { prototype: { polluted: true } },
    toString: 'text',
  };
  const { numbers, ...rest } = odd;
  const got = await forwarded(ask('hello', odd));
  expect(got).toMatchObject(rest);
  expect(got['numbers']).toEqual(numbers);
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
});

test('numbers that a double does not hold arrive digit by digit', async () => {
  const body = JSON.stringify(ask('hello')).replace(
    /}$/,
    ',"seed":1234567890123456789,"big":{"ids":[12345678901234567890,9007199254740993,-18446744073709551615],"far":1e400},"tools":[{"type":"function","function":{"name":"f","parameters":{"maximum":9223372036854775807}}}]}',
  );
  const seen = spine.provider.log.length;
  const response = await spine.post('/chat/completions', body);
  expect(response.status).toBe(200);
  const text = spine.provider.log[seen]!.text;
  for (const number of [
    '"seed":1234567890123456789,',
    '12345678901234567890',
    '9007199254740993',
    '-18446744073709551615',
    '"maximum":9223372036854775807',
    '1e400',
  ])
    expect(text).toContain(number);
});

test('a field called __proto__ pollutes nothing, and inside of other fields it is a field like any other', async () => {
  const body = JSON.stringify(ask('hello')).replace(
    /}$/,
    ',"__proto__":{"polluted":1},"extra":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}}',
  );
  const got = await forwarded(body);
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  expect((got as { polluted?: unknown }).polluted).toBeUndefined();
  expect(JSON.stringify(got['extra'])).toBe('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}');
});

test('messages, tools and content parts arrive as they were sent', async () => {
  const messages = [
    { role: 'system', content: 'be brief', name: 'rules', cache_control: { type: 'ephemeral' } },
    { role: 'developer', content: [{ type: 'text', text: 'x', cache_control: { ttl: '5m' } }] },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' }, extra: 1 }],
    },
    { role: 'tool', tool_call_id: 'c1', content: 'done' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'hello' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=', detail: 'low' } },
        { type: 'file', file: { filename: 'a.txt', file_data: 'data:text/plain;base64,aGk=' } },
      ],
    },
  ];
  const tools = [
    {
      type: 'function',
      function: { name: 'f', parameters: { type: 'object', properties: { a: { type: 'integer' } } }, strict: true },
      cache: true,
    },
  ];
  const got = await forwarded({
    model: 'test/files',
    messages,
    tools,
    tool_choice: 'auto',
    stop: ['a', 'b'],
    user: 'u',
    n: 2,
    temperature: 0.3,
    top_p: 0.9,
    presence_penalty: -2,
    frequency_penalty: 2,
  });
  expect(got).toMatchObject({
    messages,
    tools,
    tool_choice: 'auto',
    stop: ['a', 'b'],
    user: 'u',
    n: 2,
    temperature: 0.3,
    top_p: 0.9,
    presence_penalty: -2,
    frequency_penalty: 2,
  });
});

test('what speaks to the gateway stays here', async () => {
  const got = await forwarded(
    ask('hello', {
      models: [MODEL],
      provider: { sort: 'price' },
      session_id: 's',
      metadata: { purpose: 'canary-of-metadata' },
    }),
    { 'x-session-id': 's', 'idempotency-key': 'k-1' },
  );
  for (const field of ['models', 'provider', 'session_id', 'metadata']) expect(got).not.toHaveProperty(field);
  expect(Object.keys(spine.provider.log.at(-1)!.headers)).not.toEqual(expect.arrayContaining(['x-session-id']));
  expect(Object.keys(spine.provider.log.at(-1)!.headers)).not.toEqual(expect.arrayContaining(['idempotency-key']));
});

test('the model is called by its name at the provider', async () => {
  expect((await forwarded(ask('hello', { model: `${MODEL}:floor` })))['model']).toBe('upstream-model');
});

test('temperature and top_p are not made up where the consumer gave none', async () => {
  const got = await forwarded(ask('hello'));
  expect(got).not.toHaveProperty('temperature');
  expect(got).not.toHaveProperty('top_p');
});

test('max_tokens: the cap that was locked is passed down, under the name that the consumer used', async () => {
  expect(await forwarded(ask('hello', { max_tokens: 33 }))).toMatchObject({ max_tokens: 33 });
  const current = await forwarded(ask('hello', { max_tokens: undefined, max_completion_tokens: 34 }));
  expect(current).toMatchObject({ max_completion_tokens: 34 });
  expect(current).not.toHaveProperty('max_tokens');
  const both = await forwarded(ask('hello', { max_tokens: 20, max_completion_tokens: 34 }));
  expect(both).toMatchObject({ max_tokens: 20 });
  expect(both).not.toHaveProperty('max_completion_tokens');
  // The model declares 4096.
  expect(await forwarded(ask('hello', { max_tokens: undefined }))).toMatchObject({ max_tokens: 4096 });
  expect(await forwarded(ask('hello', { max_tokens: null }))).toMatchObject({ max_tokens: 4096 });
});

test('where the model declares no end and the consumer asks for none, no cap is sent', async () => {
  for (const length of [500, 20_000]) {
    const body = await forwarded(ask('x'.repeat(length), { model: 'test/open-end', max_tokens: undefined }));
    expect(body).not.toHaveProperty('max_tokens');
    expect(body).not.toHaveProperty('max_completion_tokens');
  }
});

test('the lock is what that cap can cost, times n', async () => {
  for (const [more, completion] of [
    [{ max_tokens: 33 }, 33],
    [{ max_tokens: 33, n: 3 }, 99],
    [{ max_tokens: undefined }, 4096],
  ] as const) {
    const response = await spine.post('/chat/completions', ask('hello', more));
    await response.text();
    const lock = (await spine.generation(response.headers.get('x-generation-id'))).entries.find(
      ({ type }) => type === 'lock',
    )!.amount_micro_usdc;
    expect(lock).toBeGreaterThanOrEqual(2 * completion + spine.provider.log.at(-1)!.promptTokens);
    expect(lock).toBeLessThan(2 * completion + 200);
  }
});

test('an image adds its price to the lock and to the bill', async () => {
  const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } };
  const before = await spine.balance();
  const response = await spine.post(
    '/chat/completions',
    ask('', { messages: [{ role: 'user', content: [{ type: 'text', text: '!tokens:2' }, image, image] }] }),
  );
  expect(response.status).toBe(200);
  await spine.quiet();
  // 0.001 USD each.
  expect(before.available - (await spine.balance()).available).toBe(
    BigInt(spine.provider.log.at(-1)!.promptTokens + 2 * 2 + 2 * 1000),
  );
  const entries = (await spine.generation(response.headers.get('x-generation-id'))).entries;
  expect(entries.find(({ type }) => type === 'lock')!.amount_micro_usdc).toBeGreaterThan(2000);
});

test('usage is always asked for in a stream, whatever the consumer said, and other stream options stay', async () => {
  expect(await forwarded(ask('hello', { stream: true }))).toMatchObject({
    stream: true,
    stream_options: { include_usage: true },
  });
  expect(
    await forwarded(
      ask('hello', { stream: true, stream_options: { include_usage: false, include_obfuscation: false } }),
    ),
  ).toMatchObject({
    stream_options: { include_usage: true, include_obfuscation: false },
  });
  expect(await forwarded(ask('hello', { stream: true, stream_options: null }))).toMatchObject({
    stream_options: { include_usage: true },
  });
  expect(await forwarded(ask('hello', { stream: false, stream_options: { include_usage: true } }))).not.toHaveProperty(
    'stream_options',
  );
});

test('duplicate keys: what is checked, locked and forwarded is the same one', async () => {
  const body = JSON.stringify(ask('hello')).replace(
    '"max_tokens":50',
    '"max_tokens":5,"max_tokens":40000,"max_tokens":7',
  );
  const got = await forwarded(body);
  expect(got['max_tokens']).toBe(7);
  expect(spine.provider.log.at(-1)!.text.match(/max_tokens/g)).toHaveLength(1);
});

test.each([
  ['file', { type: 'file', file: { file_id: 'file-1' } }],
  ['image_url', { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=', file_id: 'file-1' } }],
])('a %s in the account of the provider is refused', async (holder, part) => {
  const body = { model: 'test/files', messages: [{ role: 'user', content: [part] }] };
  const response = await spine.post('/chat/completions', body);
  const param = `messages[0].content[0].${holder}.file_id`;
  expect([response.status, await response.json()]).toMatchObject([400, { error: { type: 'invalid_request', param } }]);
});
