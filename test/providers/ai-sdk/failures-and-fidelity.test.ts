import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { events, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { CALL, SIGNATURE, THOUGHT } from './support/scene.ts';
import { type SdkWorld, startSdkWorld } from './support/sdk-world.ts';
import { VENDORS } from './support/vendors.ts';

// What goes wrong at a vendor is the same to a client whether the gateway calls the vendor itself or through a package.

const ask = (model: string, content: string, more: object = {}) => ({
  model,
  messages: [{ role: 'user', content }],
  max_tokens: 100,
  ...more,
});

const STATUSES = ['400', '401', '403', '404', '413', '422', '429', '500', '503'];
const STREAMS = ['without-usage', 'error-event', 'broken'];

describe('beside a model with an address', () => {
  let spine: Spine;
  let closed: PromiseWithResolvers<void>;
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString()));
    request.on('end', () => {
      const deed = /deed=([\w-]+)/.exec(text)![1]!;
      const status = Number(deed);
      const chunk = (delta: object, more: object = {}) =>
        response.write(
          `data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, delta, finish_reason: null, ...more }] })}\n\n`,
        );
      if (status > 0) {
        response.writeHead(status, { 'content-type': 'application/json', 'retry-after': '17' });
        return void response.end(JSON.stringify({ error: { message: `vendor says ${status}`, type: 't', code: 'c' } }));
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      chunk({ content: 'Some words. '.repeat(10) });
      if (deed === 'without-usage') {
        chunk({}, { finish_reason: 'stop' });
        response.end('data: [DONE]\n\n');
      } else if (deed === 'error-event') response.end('data: {"error":{"message":"gone wrong"}}\n\n');
      // After the words were given out.
      else if (deed === 'broken') setTimeout(() => response.destroy(), 200);
      else response.on('close', () => closed.resolve());
    });
  });
  beforeAll(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    // Each case has its own two models, because one that failed rests for a while.
    const block = (name: string, params: string) => `
[[models]]
name = "${name}"
provider_name = "${name}"
context_length = 10000
[models.pricing]
prompt = 1
completion = 2
[models.params]
model = "m"
${params}
`;
    const PLAIN = `api_base = "${url}"\napi_key = "std::env::TEST_APIKEY"`;
    const SDK = `sdk = "@ai-sdk/openai-compatible"
sdk_settings = { baseURL = "${url}", name = "acme", includeUsage = true }
sdk_secrets = { apiKey = "std::env::TEST_APIKEY" }`;
    const blocks = [...STATUSES, ...STREAMS, 'other'].map(
      (deed) => block(`plain-${deed}`, PLAIN) + block(`sdk-${deed}`, SDK),
    );
    spine = await startSpine({
      toml: `${UNHURRIED}[billing]\ndrain_ms = 100\n${blocks.join('')}`,
      env: { TEST_APIKEY: 'apiKey-secret' },
    });
  });
  afterAll(async () => {
    await spine.stop();
    server.close();
    server.closeAllConnections();
  });

  /** The answer without what differs from call to call. */
  async function answerOf(model: string, body: object) {
    const response = await spine.post('/chat/completions', { ...body, model });
    const text = (await response.text()).replaceAll(model, 'MODEL');
    const record = await spine.generation(response.headers.get('x-generation-id')).catch(() => null);
    return {
      status: response.status,
      retryAfter: response.headers.get('retry-after'),
      error: text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>)['error'] : null,
      words: text.startsWith('data') ? JSON.stringify(events(text)).includes('Some words.') : null,
      cost: record?.cost_micro_usdc,
      flags: record?.flags,
      estimated: record?.estimated,
    };
  }

  const both = async (deed: string, more: object) => [
    await answerOf(`plain-${deed}`, ask('', `deed=${deed}`, more)),
    await answerOf(`sdk-${deed}`, ask('', `deed=${deed}`, more)),
  ];

  test.each(STATUSES)('status %s', async (deed) => {
    const [plain, sdk] = await both(deed, { stream: true });
    expect(sdk).toEqual(plain);
    expect(sdk!.cost ?? 0).toBe(0);
  });

  test.each(STREAMS)('a stream %s', async (deed) => {
    const [plain, sdk] = await both(deed, { stream: true });
    // The words before an error may come with it, in one read, so that nothing of them is given out.
    if (deed === 'error-event') expect([sdk!.cost, sdk!.flags]).toEqual([0, plain!.flags]);
    else expect(sdk).toEqual(plain);
    if (deed === 'without-usage') expect(sdk!.flags).toEqual(['usage_missing']);
  });

  test('the vendor’s request ends soon after its client has left', async () => {
    closed = Promise.withResolvers();
    const leaving = new AbortController();
    const body = ask('sdk-other', 'deed=endless', { stream: true });
    const response = await spine.post('/chat/completions', body, {}, leaving.signal);
    await response.body!.getReader().read();
    leaving.abort();
    await closed.promise;
    expect(await spine.faults()).toEqual([]);
  });

  test('what a package cannot make is refused before anything is sent', async () => {
    const response = await spine.post('/chat/completions', ask('sdk-other', 'deed=200', { n: 2 }));
    expect([response.status, await response.json()]).toMatchObject([422, { error: { param: 'n' } }]);
  });

  test('the books balance', async () => {
    expect(await spine.faults()).toEqual([]);
  });
});

describe('what passes', () => {
  let world: SdkWorld;
  const names = ['openai', 'anthropic', 'google', 'amazon-bedrock'];
  beforeAll(async () => {
    world = await startSdkWorld(VENDORS.filter(({ name }) => names.includes(name)));
  });
  afterAll(() => world.stop());
  const askedOf = (name: string) => world.vendors.get(name)!.asked.at(-1)!;
  const LONG = ' and say why, in many words, so that the prompt is as long as the tokens of its vendor'.repeat(2);

  async function message(model: string, body: object): Promise<Record<string, unknown>> {
    const response = await world.spine.post('/chat/completions', { model, max_tokens: 500, ...body });
    const text = await response.text();
    expect(response.status, text).toBe(200);
    return (JSON.parse(text) as { choices: { message: Record<string, unknown> }[] }).choices[0]!.message;
  }

  test.each(['anthropic', 'google', 'amazon-bedrock'])(
    '%s gets its signature back from a chat client',
    async (name) => {
      const user = { role: 'user', content: `kind=reasoning${LONG}` };
      const first = await message(`${name}/chat`, { messages: [user], reasoning_effort: 'high' });
      expect(first['reasoning']).toBe(THOUGHT);
      await message(`${name}/chat`, { messages: [user, first, { role: 'user', content: 'And then?' }] });
      expect(askedOf(name).text).toContain(SIGNATURE);
      expect(askedOf(name).text).toContain(THOUGHT);
    },
  );

  test('google gets the signature of a tool call back', async () => {
    const tools = [{ type: 'function', function: { name: CALL.name, parameters: { type: 'object', properties: {} } } }];
    const user = { role: 'user', content: `kind=tools${LONG}` };
    const first = await message('google/chat', { messages: [user], tools });
    const [{ id }] = first['tool_calls'] as [{ id: string }];
    await message('google/chat', {
      messages: [user, first, { role: 'tool', tool_call_id: id, content: 'sun' }],
      tools,
    });
    expect(askedOf('google').text).toContain(`"thoughtSignature":"${SIGNATURE}"`);
  });

  test('a client of the Messages API sends it back, too', async () => {
    const user = { role: 'user', content: `kind=tools${LONG}` };
    const tools = [{ name: CALL.name, description: 'weather', input_schema: { type: 'object', properties: {} } }];
    const body = { model: 'google/chat', max_tokens: 500, tools };
    const first = await world.spine.post('/messages', { ...body, messages: [user] });
    const { content, usage } = (await first.json()) as { content: { type: string; id: string }[]; usage: object };
    expect(content).toMatchObject([{ type: 'tool_use', name: CALL.name, input: CALL.input }]);
    expect(usage).toMatchObject({ input_tokens: 60, cache_read_input_tokens: 40, output_tokens: 20 });
    const result = { type: 'tool_result', tool_use_id: content[0]!.id, content: 'sun' };
    const messages = [user, { role: 'assistant', content }, { role: 'user', content: [result] }];
    const second = await world.spine.post('/messages', { ...body, messages });
    expect(second.status, await second.text()).toBe(200);
    expect(askedOf('google').text).toContain(`"thoughtSignature":"${SIGNATURE}"`);
  });

  test('a schema of the answer, and options of the package', async () => {
    const schema = {
      type: 'object',
      properties: { answer: { type: 'string' } },
      required: ['answer'],
      additionalProperties: false,
    };
    const response_format = { type: 'json_schema', json_schema: { name: 'reply', schema, strict: true } };
    const messages = [{ role: 'user', content: `kind=text${LONG}` }];
    await message('openai/chat', { messages, response_format });
    expect(askedOf('openai').body['text']).toMatchObject({ format: { type: 'json_schema', name: 'reply', schema } });
    await message('google/chat', { messages, response_format });
    expect(askedOf('google').body['generationConfig']).toMatchObject({ responseMimeType: 'application/json' });
    await message('anthropic/chat', {
      messages,
      max_tokens: 2000,
      provider_options: { anthropic: { thinking: { type: 'enabled', budgetTokens: 1500 } } },
    });
    expect(askedOf('anthropic').body['thinking']).toMatchObject({ type: 'enabled', budget_tokens: 1500 });
  });

  test('warnings of a package are in the answer', async () => {
    const body = ask('anthropic/chat', `kind=text${LONG}`, { frequency_penalty: 1, logit_bias: { 5: 1 } });
    const response = await world.spine.post('/chat/completions', body);
    const { warnings } = (await response.json()) as { warnings: object[] };
    expect(warnings).toEqual(
      expect.arrayContaining([
        { type: 'unsupported', feature: 'logit_bias' },
        expect.objectContaining({ feature: 'frequencyPenalty' }),
      ]),
    );
  });

  test('an address of a picture passes where the vendor loads it, and else the gateway loads it', async () => {
    const url = 'https://pictures.invalid/a.png';
    const messages = [
      {
        role: 'user',
        content: [
          { type: 'text', text: `kind=text${LONG}` },
          { type: 'image_url', image_url: { url } },
        ],
      },
    ];
    await message('openai/chat', { messages });
    expect(askedOf('openai').text).toContain(url);
    const before = world.vendors.get('amazon-bedrock')!.asked.length;
    const refused = await world.spine.post('/chat/completions', {
      model: 'amazon-bedrock/chat',
      max_tokens: 50,
      messages,
    });
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('could not be loaded')]);
    expect(world.vendors.get('amazon-bedrock')!.asked).toHaveLength(before);
  });

  test('the books balance', async () => {
    expect(await world.spine.faults()).toEqual([]);
  });
});
