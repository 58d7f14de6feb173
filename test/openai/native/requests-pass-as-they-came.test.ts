import { beforeAll, describe, expect, test } from 'vitest';
import { MESSAGES_PASSTHROUGH } from '../../../src/openai/messages/passthrough.ts';
import { modelBlock, UNHURRIED } from '../../support/spine.ts';
import { completion } from '../translated/support/transcript-upstream.ts';
import { message, messageEvents, MESSAGE_USAGE, response, responseEvents, SIGNATURE } from './support/transcripts.ts';
import { startWireUpstream } from './support/wire-upstream.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

const NATIVE = 'acme/native';
const MIXED = 'acme/mixed';
const upstream = ofFile(startWireUpstream, (one) => one.stop());
const cheap = ofFile(startWireUpstream, (one) => one.stop());
const spine = spineOfFile(() => {
  const wires = 'wires = ["chat", "messages", "responses"]';
  const pricing = 'input_cache_read = 0.1\ninput_cache_write = 1.25';
  const native = { provider: 'Acme', url: upstream.url, params: wires, pricing };
  return {
    toml:
      UNHURRIED +
      '[upstream]\ncooldown_ms = 1\n' +
      modelBlock({ name: NATIVE, ...native }) +
      modelBlock({ name: MIXED, ...native, prompt: 9, completion: 9 }) +
      modelBlock({ name: MIXED, provider: 'Cheap', url: cheap.url }),
  };
});
beforeAll(() => {
  cheap.answer = () => ({ text: JSON.stringify(completion({ content: 'translated' })) });
});

const post = (path: string, text: string, headers: Record<string, string> = {}) =>
  fetch(`${spine.url}${path}`, {
    method: 'POST',
    headers: { 'x-api-key': spine.key, 'content-type': 'application/json', ...headers },
    body: text,
  });

// White space, escapes, numbers and fields that nobody knows.
const MESSAGES_BODY = `{ "max_tokens":50,
  "model" : "${NATIVE}", "temperature":1.0, "future_field":{"a":[1e3,"\\u00e9"]},
  "system":[{"type":"text","text":"Be brief","cache_control":{"type":"ephemeral"}}],
  "messages":[{"role":"user","content":"Hi \\ud83c\\udf0d"},{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"${SIGNATURE}"},{"type":"text","text":"a"}]},{"role":"user","content":"on"}],
  "tools":[{"type":"tool_search_tool_regex_20251119","name":"tool_search_tool_regex"}] }`;
const RESPONSES_BODY = `{"model":"${NATIVE}","max_output_tokens": 50,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAAAB"}],"include":["reasoning.encrypted_content"],"tools":[{"type":"tool_search"}],"store":false,"stream":true}`;

describe('the bytes of a request', () => {
  test('keep numbers that no double holds', async () => {
    upstream.answer = () => ({ text: message() });
    const body = MESSAGES_BODY.replace('"future_field":{', '"future_field":{"seed":12345678901234567890,');
    expect((await post('/messages', body)).status).toBe(200);
    expect(upstream.reached.at(-1)!.text).toBe(body.replace(`"${NATIVE}"`, '"upstream-of-Acme"'));
  });

  test.each([
    ['messages', MESSAGES_BODY, () => ({ text: message() })],
    ['responses', RESPONSES_BODY, () => ({ text: responseEvents().join('') })],
  ])('of %s reach the provider with another model alone', async (path, body, answer) => {
    upstream.answer = answer;
    const reply = await post(`/${path}`, body);
    expect(reply.status).toBe(200);
    expect(reply.headers.get('x-tollgate-wire')).toBe('native');
    expect(reply.headers.get('x-tollgate-dropped')).toBeNull();
    await reply.text();
    const { text, path: asked } = upstream.reached.at(-1)!;
    expect(asked).toBe(`/v1/${path}`);
    expect(text).toBe(body.replace(`"${NATIVE}"`, '"upstream-of-Acme"'));
  });

  test('lose thinking in a translation, unless this gateway signed it', () => {
    const thinking = (signature: string) => ({ type: 'thinking', thinking: 'x', signature });
    const redacted = (data: string) => ({ type: 'redacted_thinking', data });
    const loses = (block: object) => MESSAGES_PASSTHROUGH.loses(JSON.stringify([block]));
    expect([redacted('EmwK'), redacted('tg2.aaaa'), thinking(SIGNATURE), thinking('tg2.aaaa')].map(loses)).toEqual([
      true,
      false,
      true,
      false,
    ]);
  });

  test('have a lower cap where the model gives no more', async () => {
    upstream.answer = () => ({ text: message() });
    const body = { model: NATIVE, max_tokens: 64_000, messages: [{ role: 'user', content: 'Hi' }] };
    const reply = await post(
      '/messages',
      JSON.stringify({ ...body, thinking: { type: 'enabled', budget_tokens: 9_000 } }),
    );
    expect(upstream.reached.at(-1)!.body).toMatchObject({ max_tokens: 4_096, thinking: { budget_tokens: 4_095 } });
    expect(reply.headers.get('x-max-tokens')).toBe('4096');
    upstream.answer = ({ body: { max_tokens: cap } }) =>
      cap === 1_000
        ? { text: message() }
        : {
            status: 400,
            text: JSON.stringify({
              type: 'error',
              error: {
                type: 'invalid_request_error',
                message: `max_tokens: ${String(cap)} > 1000, which is the maximum allowed number of output tokens for m`,
              },
            }),
          };
    expect((await post('/messages', JSON.stringify(body))).status).toBe(200);
    upstream.answer = () => ({ text: response() });
    await post('/responses', JSON.stringify({ model: NATIVE, input: 'Hi' }));
    // Nobody asked for a cap: the lock is made for this one.
    expect(upstream.reached.at(-1)!.body).toMatchObject({ max_output_tokens: 1_000 });
  });

  test('come with the headers of the wire, and the key of the provider', async () => {
    upstream.answer = () => ({ text: message() });
    await post('/messages?beta=true', MESSAGES_BODY, {
      'anthropic-version': '2023-01-01',
      'anthropic-beta': 'claude-code-20250219,interleaved-thinking-2025-05-14',
      'x-claude-code-session-id': 's',
      'x-stainless-lang': 'js',
      cookie: 'c=1',
    });
    const { headers, path } = upstream.reached.at(-1)!;
    expect(path).toBe('/v1/messages');
    expect(headers).toMatchObject({
      'anthropic-version': '2023-01-01',
      'anthropic-beta': 'claude-code-20250219,interleaved-thinking-2025-05-14',
      'content-type': 'application/json',
    });
    expect(headers['x-api-key']).toBe(headers.authorization!.slice('Bearer '.length));
    expect(headers['x-api-key']).not.toBe(spine.key);
    for (const name of ['cookie', 'x-claude-code-session-id', 'x-stainless-lang'])
      expect(headers).not.toHaveProperty(name);
    await post('/messages', MESSAGES_BODY);
    expect(upstream.reached.at(-1)!.headers['anthropic-version']).toBe('2023-06-01');
  });

  test('with a key that stands twice, or something kept elsewhere, reach nobody', async () => {
    const before = upstream.reached.length;
    const twice = await post('/messages', MESSAGES_BODY.replace('"max_tokens":50,', '"max_tokens":50,"max_tokens":9,'));
    expect(twice.status).toBe(400);
    const said = (content: string) =>
      `{"model":"${NATIVE}","max_tokens":50,"messages":[{"role":"user","content":[${content}]}]}`;
    const input = (part: string) => `{"model":"${NATIVE}","input":[{"role":"user","content":[${part}]}]}`;
    for (const [path, body, key] of [
      [
        'messages',
        said('{"type":"text","text":"Hi","cache_control":{"type":"ephemeral","ttl":"1h","ttl":"5m"}}'),
        'ttl',
      ],
      [
        'messages',
        said(
          '{"type":"document","source":{"type":"file","file_id":"file_1","file_id":null,"type":"text","media_type":"text/plain","data":"x"}}',
        ),
        'file_id',
      ],
      [
        'responses',
        input('{"type":"input_file","file_id":"file_1","file_data":"data:text/plain,a","file_\\u0069d":null}'),
        'file_id',
      ],
      [
        'responses',
        input('{"type":"input_file","file_url":"https://10.0.0.1/a","file_url":"https://a.example/a"}'),
        'file_url',
      ],
    ] as const) {
      const reply = await post(`/${path}`, body);
      expect([reply.status, await reply.text()]).toEqual([
        400,
        expect.stringContaining(`The body cannot be forwarded: duplicate key \\"${key}\\" in an object (at position `),
      ]);
    }
    const kept = await post(
      '/responses',
      JSON.stringify({ model: NATIVE, input: 'Hi', previous_response_id: 'resp_1' }),
    );
    expect(kept.status).toBe(400);
    const item = [{ type: 'item_reference', id: 'msg_1' }];
    expect((await post('/responses', JSON.stringify({ model: NATIVE, input: item }))).status).toBe(404);
    expect(upstream.reached.length).toBe(before);
  });
});

describe('the reply', () => {
  /** 12 × 1 + 20 × 0.1 + 8 × 1.25 + 9 × 2 micro-USD. */
  const COST = { cost: 0.000042, cost_details: { charged_usd: '0.000042', input_cache_read_usd: '0.000002' } };

  test('of messages is the provider’s, with the name that was called and the cost', async () => {
    upstream.answer = () => ({ text: message() });
    const reply = await post('/messages', MESSAGES_BODY);
    const { usage, ...rest } = (await reply.json()) as { usage: object };
    const { usage: _, ...theirs } = JSON.parse(message()) as { usage: object };
    expect(rest).toEqual({ ...theirs, model: NATIVE });
    expect(usage).toMatchObject({ ...MESSAGE_USAGE, ...COST });
    expect(await spine.generation(reply.headers.get('x-generation-id'))).toMatchObject({
      cost_micro_usdc: 42,
      tokens_prompt: 40,
      tokens_cached: 20,
      tokens_cache_written: 8,
      tokens_completion: 9,
      finish_reason: 'tool_use',
      flags: [],
    });
  });

  test('of messages in a stream has every event as it came, and the cost in the last but one', async () => {
    upstream.answer = () => ({ text: messageEvents().join('') });
    const reply = await post('/messages', MESSAGES_BODY.replace('"max_tokens"', '"stream":true,"max_tokens"'));
    const came = (await reply.text()).split(/(?<=\n\n)/);
    const sent = messageEvents();
    expect(came.length).toBe(sent.length);
    expect(came[0]).toBe(sent[0]!.replace('upstream-model-2026', NATIVE));
    expect(came.slice(1, -2)).toEqual(sent.slice(1, -2));
    const last = JSON.parse(came.at(-2)!.split('data: ')[1]!) as object;
    expect(last).toMatchObject({
      type: 'message_delta',
      delta: { stop_reason: 'tool_use', stop_sequence: null },
      usage: { output_tokens: 9, server_tool_use: { web_search_requests: 0 }, ...COST },
    });
    expect(came.at(-1)).toBe(sent.at(-1));
    expect(await spine.generation(reply.headers.get('x-generation-id'))).toMatchObject({ cost_micro_usdc: 42 });
  });

  test('of responses in a stream has every event as it came, and the cost in the last', async () => {
    upstream.answer = () => ({ text: responseEvents().join('') });
    const reply = await post('/responses', RESPONSES_BODY);
    const came = (await reply.text()).split(/(?<=\n\n)/);
    const sent = responseEvents();
    const named = (text: string) => text.replace('upstream-model-2026', NATIVE);
    expect(came.slice(0, -1)).toEqual(sent.slice(0, -1).map(named));
    // 20 × 1 + 20 × 0.1 + 9 × 2 micro-USD.
    expect(JSON.parse(came.at(-1)!.split('data: ')[1]!)).toMatchObject({
      type: 'response.completed',
      response: { model: NATIVE, output: [{}, {}, {}], usage: { input_tokens: 40, output_tokens: 9, cost: 0.00004 } },
    });
    expect(await spine.generation(reply.headers.get('x-generation-id'))).toMatchObject({
      cost_micro_usdc: 40,
      tokens_cached: 20,
      tokens_reasoning: 2,
    });
  });
});

describe('a model that some providers speak the wire of', () => {
  const PLAIN = { model: MIXED, max_tokens: 50, messages: [{ role: 'user', content: 'Hi' }] };
  const order = (name: string) => ({ provider: { order: [name] } });

  test('is asked there first where something would be lost', async () => {
    upstream.answer = () => ({ text: message() });
    for (const more of [
      {
        tools: [{ type: 'tool_search_tool_regex_20251119', name: 'tool_search_tool_regex' }],
        tool_choice: { type: 'tool', name: 'tool_search_tool_regex' },
      },
      { tools: [{ type: 'tool_search_tool_bm25_20251119', name: 'tool_search_tool_bm25' }] },
      { system: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }] },
    ]) {
      const reply = await post('/messages', JSON.stringify({ ...PLAIN, ...more }));
      expect([reply.status, reply.headers.get('x-tollgate-wire')]).toEqual([200, 'native']);
    }
  });

  test('is translated where the consumer wants another provider, with a word of what was lost', async () => {
    const tools = [{ type: 'web_search_20260209', name: 'web_search' }];
    const reply = await post('/messages', JSON.stringify({ ...PLAIN, ...order('Cheap'), tools }));
    expect(reply.headers.get('x-tollgate-wire')).toBe('translated');
    expect(reply.headers.get('x-tollgate-dropped')).toBe('web_search');
    expect(await reply.json()).toMatchObject({ content: [{ type: 'text', text: 'translated' }] });
    const forced = {
      ...PLAIN,
      provider: { only: ['Cheap'] },
      tools,
      tool_choice: { type: 'tool', name: 'web_search' },
    };
    const refused = await post('/messages', JSON.stringify(forced));
    expect(refused.status).toBe(422);
    expect(await refused.text()).toContain('tool_choice names web_search');
  });

  test.each([
    ['fails before its first word', () => ({ status: 500, text: '{}' })],
    ['says something else', () => ({ text: '{"choices":[]}' })],
  ])('is translated where that one %s, and pays the other alone', async (_name, answer) => {
    upstream.answer = answer;
    const reply = await post('/messages', JSON.stringify({ ...PLAIN, ...order('Acme') }));
    expect([reply.status, reply.headers.get('x-tollgate-wire')]).toEqual([200, 'translated']);
    // 20 × 1 + 9 × 2 micro-USD.
    expect(await reply.json()).toMatchObject({ content: [{ text: 'translated' }], usage: { cost: 0.000038 } });
  });

  test('goes on natively where a translated one fails', async () => {
    cheap.answer = () => ({ status: 500, text: '{}' });
    upstream.answer = () => ({ text: messageEvents().join('') });
    const reply = await post('/messages', JSON.stringify({ ...PLAIN, ...order('Cheap'), stream: true }));
    expect(reply.headers.get('x-tollgate-wire')).toBe('native');
    expect((await reply.text()).match(/event: message_start/g)).toHaveLength(1);
    cheap.answer = () => ({ text: JSON.stringify(completion({ content: 'translated' })) });
  });
});

describe('a native provider that fails', () => {
  const BODY = { model: NATIVE, max_tokens: 50, messages: [{ role: 'user', content: 'Hi' }] };

  test('for a prompt that is too long says so in the words on which agents shorten it', async () => {
    upstream.answer = () => ({
      status: 400,
      text: JSON.stringify({
        type: 'error',
        error: { type: 'invalid_request_error', message: 'prompt is too long: 210000 tokens > 200000 maximum' },
      }),
    });
    const reply = await post('/messages', JSON.stringify(BODY));
    expect(reply.status).toBe(400);
    expect(await reply.json()).toMatchObject({
      error: { type: 'invalid_request_error', message: 'prompt is too long: 210000 tokens > 200000 maximum' },
    });
  });

  test('by a claim beyond the budget is paid the budget, and shows what was paid', async () => {
    upstream.answer = () => ({ text: message({ usage: { ...MESSAGE_USAGE, output_tokens: 5_000_000 } }) });
    const reply = await post('/messages', JSON.stringify(BODY));
    expect(await reply.json()).toMatchObject({ usage: { output_tokens: 50, input_tokens: 12 } });
    expect(await spine.generation(reply.headers.get('x-generation-id'))).toMatchObject({
      tokens_completion: 50,
      flags: ['usage_implausible'],
      claims: [{ meter: 'completion', claimed: 5_000_000, most: 50 }],
    });
  });

  // Last, as so many failures rest the provider.
  test('in the middle ends the stream with an error, and costs nothing', async () => {
    const error = 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n';
    for (const [path, events, last] of [
      [
        'messages',
        messageEvents(),
        /event: error\ndata: \{"type":"error","error":\{"type":"(?:api_error|overloaded_error)"/,
      ],
      ['responses', responseEvents(), /event: response.failed\ndata: .*"code":"server_error"/],
    ] as const)
      for (const [tail, breaks] of [
        [error, false],
        ['', true],
        ['', false],
        ['event: x\ndata: {"type":"x"\n\n', false],
        ['event: x\ndata: [1]\n\n', false],
        ['event: x\ndata: {"type":"a\\nb"}\n\n', false],
      ] as const) {
        const { promise: rest, resolve: goOn } = Promise.withResolvers<string>();
        upstream.answer = () => ({ text: events.slice(0, -2).join(''), rest, breaks });
        const more = path === 'messages' ? {} : { input: 'Hi', max_output_tokens: 50 };
        const reply = await post(`/${path}`, JSON.stringify({ ...BODY, ...more, stream: true }));
        goOn(tail);
        const text = await reply.text();
        expect(text).toMatch(last);
        expect(text).not.toContain('message_stop');
        const generation = await spine.generation(reply.headers.get('x-generation-id'));
        expect(generation).toMatchObject({ state: 'released', cost_micro_usdc: 0 });
      }
  });
});
