import OpenAI, { type APIError } from 'openai';
import { beforeAll, describe, expect, test } from 'vitest';
import { ask, MODEL, modelBlock, UNHURRIED } from '../support/spine.ts';
import { startWireUpstream, type WireUpstream } from './native/support/wire-upstream.ts';
import { ofFile, spineOfFile } from '../support/of-file.ts';

// `/v1` speaks OpenAI's API as strict clients read it, `/api/v1` speaks the gateway's own dialect.

let client: OpenAI;
const TOO_LONG = { message: "This model's maximum context length is 8 tokens", type: 'invalid_request_error' };
const refuse: WireUpstream['answer'] = ({ body }) => ({
  status: 400,
  text: JSON.stringify({
    error: body['max_tokens'] === 1 ? { ...TOO_LONG, code: 'string_above_max_length' } : { ...TOO_LONG, code: 400 },
  }),
});
const refusing = ofFile(startWireUpstream, (one) => one.stop());
const spine = spineOfFile(() => {
  refusing.answer = refuse;
  const toml = UNHURRIED + modelBlock({ name: 'test/short', provider: 'short', url: refusing.url });
  return { toml };
});
beforeAll(() => {
  client = new OpenAI({ baseURL: `${spine.origin}/v1`, apiKey: spine.key, maxRetries: 0 });
});

const post = (path: string, body: object, more: Record<string, string> = {}) =>
  fetch(spine.origin + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json', ...more },
    body: JSON.stringify(body),
  });
const streamed = async (path: string, content: string, more: object = {}) =>
  (await post(path, ask(content, { stream: true, ...more }))).text();
type Last = { readonly usage?: { readonly cost: number }; readonly choices: readonly { finish_reason: unknown }[] };
/** The events of a stream, without comments and `[DONE]`. */
const chunksIn = (sent: string) =>
  sent
    .split('\n\n')
    .filter((event) => event.startsWith('data: {'))
    .map((event) => JSON.parse(event.slice('data: '.length)) as Record<string, unknown>);
const lastOf = (sent: string, from: number) => chunksIn(sent).slice(from) as unknown as readonly Last[];

test.each(['/v1', '/api/v1'])(
  '%s: each chunk has a choice, also where a provider begins with one that has none',
  async (base) => {
    const filter = { prompt_filter_results: [{ prompt_index: 0, content_filter_results: {} }] };
    const chunk = (choices: object[], more: object = {}) =>
      `data: ${JSON.stringify({ id: '', object: '', created: 0, model: '', choices, ...more })}\n\n`;
    const said = (content: string) => chunk([{ index: 0, delta: { content }, finish_reason: null }]);
    refusing.answer = () => ({
      text: `${chunk([], filter)}${said('one')}${chunk([], { late: 1 })}${chunk([{ index: 0, delta: {}, finish_reason: 'stop' }])}data: [DONE]\n\n`,
    });
    const chunks = chunksIn(await streamed(`${base}/chat/completions`, 'hello', { model: 'test/short' }));
    refusing.answer = refuse;
    for (const { choices } of chunks) expect(choices).toHaveLength(1);
    expect(chunks[0]).toMatchObject({ ...filter, choices: [{ delta: { content: 'one' } }] });
    expect(chunks.filter((one) => one['late'] === 1)).toHaveLength(1);
  },
);

describe('the usage of a stream', () => {
  test('below /v1 is in a chunk of its own, where it was asked for', async () => {
    const sent = await streamed('/v1/chat/completions', 'hello', { stream_options: { include_usage: true } });
    const [finish, usage] = lastOf(sent, -2);
    expect(finish).toMatchObject({ choices: [{ finish_reason: 'stop' }] });
    expect(finish).not.toHaveProperty('usage');
    expect(usage).toMatchObject({ object: 'chat.completion.chunk', model: MODEL, choices: [] });
    expect(usage!.usage!.cost).toBeGreaterThan(0);
    expect(sent.split('"usage"')).toHaveLength(2);
    expect(sent.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(new Set(chunksIn(sent).map(({ id, created, provider }) => [id, created, provider].join())).size).toBe(1);
  });

  test.each(['/v1', '/api/v1'])('below %s is in chunks that all name the model that answered', async (base) => {
    refusing.answer = () => ({ status: 503, text: '{"error":{"message":"busy"}}' });
    const more = { model: 'test/short', models: [MODEL], stream_options: { include_usage: true } };
    const chunks = chunksIn(await streamed(`${base}/chat/completions`, 'hello', more));
    refusing.answer = refuse;
    expect(chunks.at(-1)).toHaveProperty('usage');
    expect([...new Set(chunks.map(({ model }) => model))]).toEqual([MODEL]);
  });

  test.each([{}, { stream_options: { include_usage: false } }, { stream_options: null }])(
    'below /v1 is left out otherwise, and the id of the call leads to it: %j',
    async (more) => {
      const response = await post('/v1/chat/completions', ask('hello', { stream: true, ...more }));
      const sent = await response.text();
      expect(sent).not.toContain('"usage"');
      expect(lastOf(sent, -1)[0]).toMatchObject({ choices: [{ finish_reason: 'stop' }] });
      expect(sent.endsWith('data: [DONE]\n\n')).toBe(true);
      await spine.quiet();
      const id = response.headers.get('x-generation-id');
      expect((await spine.generation(id)).cost_micro_usdc).toBeGreaterThan(0);
    },
  );

  test('below /api/v1 is always beside the finish reason', async () => {
    for (const more of [{}, { stream_options: { include_usage: true } }]) {
      const sent = await streamed('/api/v1/chat/completions', 'hello', more);
      const [last] = lastOf(sent, -1);
      expect(last!.choices).toMatchObject([{ finish_reason: 'stop' }]);
      expect(last!.usage!.cost).toBeGreaterThan(0);
      expect(sent.split('"usage"')).toHaveLength(2);
    }
  });

  test('of a completion follows the same rules', async () => {
    const asked = { model: MODEL, prompt: 'hello', max_tokens: 5, stream: true };
    const own = chunksIn(await (await post('/api/v1/completions', asked)).text());
    expect(own.at(-1)).toMatchObject({ choices: [{ finish_reason: 'length' }], usage: { completion_tokens: 5 } });
    const sent = await (await post('/v1/completions', asked)).text();
    expect(sent).not.toContain('"usage"');
    const told = await (await post('/v1/completions', { ...asked, stream_options: { include_usage: true } })).text();
    const [finish, usage] = chunksIn(told).slice(-2);
    expect(finish).toMatchObject({ choices: [{ finish_reason: 'length' }] });
    expect(usage).toMatchObject({ choices: [], usage: { completion_tokens: 5 } });
  });

  test.each([
    ['breaks', 'hello !tokens:9 !token-ms:20 !error-at:3'],
    ['ends with an error of the model', 'hello !tokens:3 !finish:error'],
  ])('is not there where a stream %s, which has no choices then', async (_how, content) => {
    const sent = await streamed('/v1/chat/completions', content);
    expect(chunksIn(sent).at(-1)).toEqual({
      choices: [],
      error: expect.objectContaining({ type: 'provider_unavailable' }),
    });
    expect(sent).not.toContain('"finish_reason":"error"');
    const own = await streamed('/api/v1/chat/completions', content);
    expect(chunksIn(own).at(-1)).toMatchObject({ choices: [{ finish_reason: 'error' }] });
    const completion = { model: MODEL, prompt: content, max_tokens: 20, stream: true };
    const last = chunksIn(await (await post('/v1/completions', completion)).text()).at(-1);
    expect(last).toEqual({ choices: [], error: expect.objectContaining({ type: 'provider_unavailable' }) });
  });

  test('comes before the error of a reply that was cut, in events of their own', async () => {
    const cut = ['hello !endless:1100000', { max_tokens: 500, stream_options: { include_usage: true } }] as const;
    const sent = await streamed('/v1/chat/completions', ...cut);
    const [finish, usage, error] = chunksIn(sent).slice(-3);
    expect(finish).toMatchObject({ choices: [{ finish_reason: 'length' }] });
    expect(finish).not.toHaveProperty('error');
    expect(usage).toMatchObject({ choices: [], usage: { cost: expect.any(Number), estimated: true } });
    expect(error).toMatchObject({ choices: [], error: { type: 'reply_cut', code: 'reply_cut' } });
    expect(sent).not.toContain('[DONE]');
    const own = await streamed('/api/v1/chat/completions', ...cut);
    expect(own.split('\n\n').at(-2)).toMatch(/^data: \{"error":\{/);
    expect(chunksIn(own).at(-1)).toMatchObject({
      choices: [{ finish_reason: 'length' }],
      error: { type: 'reply_cut', code: 500 },
      usage: { cost: expect.any(Number) },
    });
  });
});

describe('a whole answer', () => {
  const complete = (path: string) => async (text: string) => {
    refusing.answer = () => ({ text });
    const response = await post(path, ask('hello', { model: 'test/short' }));
    refusing.answer = refuse;
    return (await response.json()) as { choices: { message: Record<string, unknown> }[] };
  };
  const usage = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 };
  const said = (...choices: readonly object[]) => JSON.stringify({ object: 'chat.completion', choices, usage });
  const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } };
  const hello = { role: 'assistant', content: 'hello' };

  test.each([
    ['a text', { message: hello, finish_reason: 'stop' }],
    ['a tool call', { message: { role: 'assistant', tool_calls: [call] }, finish_reason: 'tool_calls' }],
    // Another thread reads it.
    ['a large one', { message: { ...hello, content: 'hello '.repeat(20) }, padding: 'x'.repeat(100_000) }],
  ])('below /v1 has what strict types require, where the provider leaves it out: %s', async (_what, choice) => {
    const strict = await complete('/v1/chat/completions')(said(choice));
    expect(strict).not.toHaveProperty('system_fingerprint');
    expect(strict.choices).toMatchObject([{ index: 0, logprobs: null, message: { refusal: null } }]);
    expect(strict.choices[0]!.message).toHaveProperty('content', choice.message['content' as never] ?? null);
    const own = await complete('/api/v1/chat/completions')(said(choice));
    expect(own).toMatchObject({ system_fingerprint: null });
    expect(own.choices[0]).not.toHaveProperty('logprobs');
    expect(own.choices[0]!.message).not.toHaveProperty('refusal');
    expect(Object.keys(own.choices[0]!.message)).toEqual(Object.keys(choice.message));
  });

  test('keeps what the provider sends, in both', async () => {
    const logprobs = { content: [{ token: 'hi', logprob: -0.5, bytes: null, top_logprobs: [] }], refusal: null };
    const choice = { index: 0, message: { ...hello, refusal: 'No' }, logprobs, finish_reason: 'stop' };
    for (const path of ['/v1/chat/completions', '/api/v1/chat/completions'])
      expect((await complete(path)(said(choice))).choices).toEqual([choice]);
  });
});

test('the error of a stream is the first member of its event in both dialects', async () => {
  for (const [path, code] of [
    ['/v1/chat/completions', 'provider_unavailable'],
    ['/api/v1/chat/completions', 500],
    ['/v1/completions', 'provider_unavailable'],
    ['/api/v1/completions', 500],
  ] as const) {
    const body = path.endsWith('chat/completions')
      ? ask('x !token-ms:20 !error-at:3')
      : { model: MODEL, prompt: 'x !token-ms:20 !error-at:3' };
    const sent = await (await post(path, { ...body, stream: true })).text();
    expect(sent.split('\n\n').at(-2)).toMatch(/^data: \{"error":\{/);
    expect(chunksIn(sent).at(-1)).toMatchObject({ error: { code, type: 'provider_unavailable' } });
  }
});

describe('the code of an error', () => {
  const unknown = ask('hello', { model: 'no/such' });
  test.each([
    ['an unknown model', '/chat/completions', unknown, 404, 'invalid_model'],
    ['an unknown model of a response', '/responses', { model: 'no/such', input: 'x' }, 404, 'invalid_model'],
    ['an unknown model of a completion', '/completions', { model: 'no/such', prompt: 'x' }, 404, 'invalid_model'],
    ['an unknown model of an embedding', '/embeddings', { model: 'no/such', input: 'x' }, 404, 'invalid_model'],
    ['an unknown model of an image', '/images/generations', { model: 'no/such', prompt: 'x' }, 404, 'invalid_model'],
    ['a missing field', '/chat/completions', { model: MODEL }, 400, 'invalid_request'],
    ['an unknown address', '/nope', {}, 404, 'not_found'],
    ['another method', '/models', {}, 405, 'method_not_allowed'],
  ])('of %s is a word below /v1, and the status below /api/v1', async (_name, path, body, status, word) => {
    for (const [prefix, code] of [
      ['/v1', word],
      ['/api/v1', status],
    ] as const) {
      const response = await post(prefix + path, body);
      expect(response.status).toBe(status);
      expect(await response.json()).toMatchObject({ error: { code, type: word } });
    }
  });

  test('is the provider’s own where it refused the request', async () => {
    for (const [max_tokens, code] of [
      [1, 'string_above_max_length'],
      [2, 'context_length_exceeded'],
    ] as const) {
      const asked = ask('hello', { model: 'test/short', max_tokens });
      const error = await client.chat.completions.create(asked as never).then(
        () => null,
        (thrown: unknown) => thrown as APIError,
      );
      expect(error).toMatchObject({ status: 400, code, type: 'invalid_request' });
      const own = await (await post('/api/v1/chat/completions', asked)).json();
      expect(own).toMatchObject({ error: { code: 400, type: 'invalid_request' } });
    }
  });

  test('of an address that is not valid is a word too', async () => {
    const response = await fetch(`${spine.origin}/v1/models/%zz`);
    expect(await response.json()).toMatchObject({ error: { code: 'invalid_request' } });
  });
});

test('a whole reply has no fingerprint below /v1 if its provider sends none', async () => {
  const [strict, own] = await Promise.all(
    ['/v1', '/api/v1'].map(async (prefix) => (await post(`${prefix}/chat/completions`, ask('hello'))).json()),
  );
  expect(strict).not.toHaveProperty('system_fingerprint');
  expect(own).toMatchObject({ system_fingerprint: null });
  expect(strict).toMatchObject({ usage: { cost: expect.any(Number) } });
});
