import { afterEach, describe, expect, it } from 'vitest';
import { startGateway, type GatewayOptions } from './support/gateway.ts';
import { chunksIn, USAGE, usualStream } from './support/replies.ts';

const ask = { model: 'acme/small', messages: [{ role: 'user', content: 'hi' }] };
const completion = JSON.stringify({
  id: 'theirs',
  object: 'chat.completion',
  created: 5,
  model: 'upstream-small',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
  usage: { ...USAGE, prompt_tokens_details: { cached_tokens: 1 } },
});

let gateway: Awaited<ReturnType<typeof startGateway>>;
const start = async (options: Partial<GatewayOptions> = {}) =>
  (gateway = await startGateway({ reply: () => ({ chunks: [completion] }), ...options }));
afterEach(() => gateway.close());

describe('a chat call in one piece', () => {
  it('answers with usage, cost and where it was served', async () => {
    await start({ receipt: 'a.b.c' });
    const response = await gateway.post(ask, { 'x-request-id': 'mine-1' });
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'x-request-id': 'mine-1',
      'x-generation-id': 'gen-1',
      'x-provider': 'acme',
      'x-cost-usd': '0.000123',
      'x-receipt': 'a.b.c',
      'x-ratelimit-limit-requests': '60',
    });
    expect(await response.json()).toEqual({
      id: 'gen-1',
      object: 'chat.completion',
      created: 5,
      model: 'acme/small',
      provider: 'acme',
      system_fingerprint: null,
      choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
      usage: {
        ...USAGE,
        prompt_tokens_details: { cached_tokens: 1 },
        cost: 0.000123,
        cost_details: {
          charged_usd: '0.000123',
          fee_usd: '0.000003',
          other_usd: '0.000101',
          upstream_inference_prompt_cost: 0.000012,
          upstream_inference_completions_cost: 0.00001,
        },
      },
    });
    expect(gateway.state.upstream[0]!.headers['x-request-id']).toBe('mine-1');
  });

  it('is told where to send a request of the Responses API', async () => {
    await start();
    const response = await gateway.post({ model: 'acme/small', input: 'Hi' });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: { message: expect.stringContaining('POST /api/v1/responses') as string, param: 'messages' },
    });
  });

  it('serves many calls on one connection', async () => {
    await start();
    for (let i = 0; i < 20; i++)
      expect(((await (await gateway.post(ask)).json()) as { id: string }).id).toBe(`gen-${i + 1}`);
  });
});

describe('a chat call as a stream', () => {
  const stream = { ...ask, stream: true };

  it('comes as events, the last of which carries finish reason, usage and cost', async () => {
    await start({ reply: () => ({ chunks: [usualStream()] }), receipt: 'a.b.c' });
    const response = await gateway.post(stream);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      'x-generation-id': 'gen-1',
      'x-provider': 'acme',
      'x-ratelimit-remaining-requests': '59',
    });
    const text = await response.text();
    expect(text.endsWith('\n\ndata: [DONE]\n\n')).toBe(true);
    const chunks = chunksIn(text.replace('data: [DONE]\n\n', ''));
    expect(chunks.map((chunk) => chunk['choices'][0]!.delta.content ?? '').join('')).toBe('Hello Grüße 🌍');
    expect(chunks.filter((chunk) => chunk['usage'])).toHaveLength(1);
    expect(chunks.at(-1)).toEqual({
      id: 'gen-1',
      object: 'chat.completion.chunk',
      created: 1_700_000_000,
      model: 'acme/small',
      provider: 'acme',
      choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
      usage: {
        ...USAGE,
        cost: 0.000123,
        cost_details: {
          charged_usd: '0.000123',
          fee_usd: '0.000003',
          other_usd: '0.000101',
          upstream_inference_prompt_cost: 0.000012,
          upstream_inference_completions_cost: 0.00001,
          receipt: 'a.b.c',
        },
      },
    });
  });
});

describe('a chat call that is refused', () => {
  const error = async (response: Response) => ({
    status: response.status,
    ...((await response.json()) as { error: Record<string, unknown> }).error,
  });

  it('says so with a status before the first byte', async () => {
    await start({ reply: () => ({ status: 503, chunks: ['{}'] }) });
    expect(await error(await gateway.post(ask))).toEqual({
      status: 500,
      message: 'Provider acme failed: it answered with status 503',
      type: 'provider_unavailable',
      code: 500,
      param: null,
    });
    expect(await error(await gateway.post({ ...ask, stream: true }))).toMatchObject({
      status: 500,
      type: 'provider_unavailable',
    });
  });

  it.each<[string, unknown, Record<string, string>, Record<string, unknown>]>([
    ['no key', ask, { authorization: 'Bearer bad' }, { status: 401, type: 'unauthorized', message: 'Invalid API key' }],
    [
      'an unknown model',
      { ...ask, model: 'nope' },
      {},
      { status: 404, type: 'invalid_model', message: 'Model not found: nope', param: 'model' },
    ],
    ['a wrong field', { ...ask, temperature: 9 }, {}, { status: 400, type: 'invalid_request', param: 'temperature' }],
    [
      'no JSON',
      '{"model": nope}',
      {},
      { status: 400, message: "The body is not valid JSON: unexpected 'n' at position 10" },
    ],
    ['an empty body', '', {}, { status: 400, message: 'The body is empty; send a JSON object' }],
    [
      'too deep a body',
      `{"a":${'['.repeat(64)}`,
      {},
      { status: 400, message: 'The body is nested deeper than 64 levels (at position 68)' },
    ],
    ['too large a body', { ...ask, user: 'x'.repeat(200_000) }, {}, { status: 413, type: 'payload_too_large' }],
    ['another content type', ask, { 'content-type': 'text/plain' }, { status: 400, type: 'invalid_request' }],
    [
      'a body that is not coded as it says',
      ask,
      { 'content-encoding': 'gzip' },
      { status: 400, param: 'content-encoding' },
    ],
    [
      'what the model does not take',
      {
        ...ask,
        messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }] }],
      },
      {},
      { status: 422, type: 'unprocessable', param: 'messages' },
    ],
  ])('for %s', async (_name, body, headers, wanted) => {
    await start();
    const response = await gateway.post(body, headers);
    expect(response.headers.get('x-request-id')).toBeTruthy();
    expect(await error(response)).toMatchObject(wanted);
    expect(gateway.state.upstream).toHaveLength(0);
  });

  it('not for a JSON content type of another name or with a charset', async () => {
    await start();
    expect((await gateway.post(ask, { 'content-type': 'application/vnd.api+json' })).status).toBe(200);
    expect((await gateway.post(ask, { 'content-type': 'application/json; charset=utf-8' })).status).toBe(200);
  });
});
