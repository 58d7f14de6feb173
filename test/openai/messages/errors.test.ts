import { describe, expect, test } from 'vitest';
import { modelBlock, UNHURRIED } from '../../support/spine.ts';
import { startTranscripts } from '../translated/support/transcript-upstream.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

// Errors of /messages, in the shape and the words that clients of Anthropic's API act on.

const MODEL = 'acme/small';
const upstream = ofFile(startTranscripts, (one) => one.stop());
const spine = spineOfFile(() => ({
  toml: UNHURRIED + modelBlock({ name: MODEL, provider: 'Acme', url: upstream.url }),
}));

const body = { model: MODEL, max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] };
async function fail(asked: unknown, headers: Record<string, string> = {}, path = '/messages') {
  const response = await spine.post(path, asked, headers);
  const told = (await response.json()) as {
    type: string;
    error: { type: string; message: string };
    request_id: string;
  };
  expect(told).toMatchObject({ type: 'error', request_id: response.headers.get('request-id') });
  return { status: response.status, ...told.error, retry: response.headers.get('x-should-retry'), response };
}

test.each([
  ['GET', '/messages', 405, 'invalid_request_error', /does not take GET\. It takes POST$/],
  ['GET', '/messages/count_tokens', 405, 'invalid_request_error', /It takes POST$/],
  ['POST', '/messages/batches', 404, 'not_found_error', /^No such endpoint: POST \/api\/v1\/messages\/batches\./],
  ['GET', '/messages/batches/msgbatch_1', 404, 'not_found_error', /^No such endpoint/],
])('%s %s is refused in its shape', async (method, path, status, type, message) => {
  const response = await fetch(`${spine.origin}/api/v1${path}`, { method, headers: { 'x-api-key': spine.key } });
  expect(response.status).toBe(status);
  expect(response.headers.get('allow')).toBe(status === 405 ? 'POST' : null);
  expect(await response.json()).toEqual({
    type: 'error',
    error: { type, message: expect.stringMatching(message) },
    request_id: response.headers.get('request-id'),
  });
});

describe('before anything is asked', () => {
  test.each([
    ['no model', { ...body, model: undefined }, /model is required: the name of a model/],
    ['no cap', { ...body, max_tokens: undefined }, /max_tokens is required: an integer/],
    ['JSON', '{"model":', /JSON/],
  ])('%s that is wrong is named', async (_what, asked, words) => {
    const { status, type, message, retry } = await fail(asked);
    expect([status, type, retry]).toEqual([400, 'invalid_request_error', 'false']);
    expect(message).toMatch(words);
  });

  test('a wrong key', async () => {
    const wrong = { authorization: 'Bearer svc-sk-wrong' };
    expect(await fail(body, wrong)).toMatchObject({ status: 401, type: 'authentication_error', retry: 'false' });
    expect(await fail(body, wrong, '/messages/count_tokens')).toMatchObject({
      status: 401,
      type: 'authentication_error',
    });
  });

  test('an unknown model', async () => {
    for (const model of ['nobody/has', 'a2a/nobody', 'mcp/nobody/tool'])
      for (const path of ['/messages', '/messages/count_tokens'])
        expect(await fail({ ...body, model }, {}, path), `${path} ${model}`).toMatchObject({
          status: 404,
          type: 'not_found_error',
          retry: 'false',
        });
  });

  test('a body that is no JSON by its type', async () => {
    expect(await fail('x', { 'content-type': 'text/plain' })).toMatchObject({
      status: 400,
      type: 'invalid_request_error',
    });
  });
});

test('no money: 402 that no client repeats, and nobody is asked', async () => {
  const { key } = await spine.tenant('poor', '0.000001');
  const asked = upstream.asked.length;
  const told = await fail(body, { authorization: `Bearer ${key}` });
  expect(told).toMatchObject({ status: 402, type: 'billing_error', retry: 'false' });
  expect(told.message).toMatch(/^Insufficient balance for estimated cost: /);
  expect(upstream.asked.length).toBe(asked);
});

describe('of a provider', () => {
  const refuse = (message: string) => {
    upstream.answer = () => ({ status: 400, body: { error: { message, type: 'invalid_request_error' } } });
  };
  test.each([
    [
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
      'prompt is too long: 9000 tokens > 8192 maximum',
    ],
    ['the request exceeds the available context size (4096 tokens)', 'prompt is too long: 4097 tokens > 4096 maximum'],
    [
      "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (7000 in the messages, 2000 in the completion).",
      'input length and `max_tokens` exceed context limit: 7000 + 2000 > 8192',
    ],
  ])('%s', async (given, words) => {
    refuse(given);
    expect(await fail(body)).toMatchObject({ status: 400, type: 'invalid_request_error', message: words });
  });

  test('another refusal keeps its words', async () => {
    refuse('temperature is too hot');
    expect((await fail(body)).message).toBe('Provider Acme refused the request: temperature is too hot');
  });

  test('a failure can be repeated', async () => {
    upstream.answer = () => ({ status: 500, body: { error: { message: 'boom' } } });
    expect(await fail(body)).toMatchObject({ status: 500, type: 'api_error', retry: null });
  });
});

test('counting has a rate of its own', async () => {
  const { key } = await spine.tenant('counter', '1');
  const count = () => spine.post('/messages/count_tokens', body, { authorization: `Bearer ${key}` });
  const statuses = new Set<number>();
  const countAndLook = async () => {
    const reply = await count();
    statuses.add(reply.status);
    const told = (await reply.json()) as { input_tokens?: number; error?: { type: string } };
    if (reply.status === 429) expect(told.error!.type).toBe('rate_limit_error');
    else expect(told.input_tokens).toBeGreaterThan(0);
  };
  // Many at once: one after the other a slow machine would not be faster than the rate.
  for (let round = 0; round < 10 && !statuses.has(429); round++)
    await Promise.all(Array.from({ length: 100 }, countAndLook));
  expect(statuses).toEqual(new Set([200, 429]));
});
