import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { beforeEach, describe, expect, test } from 'vitest';
import { imageBlock } from '../media/support/image-provider.ts';
import { ask, modelBlock, UNHURRIED } from '../support/spine.ts';
import { event, startWireUpstream } from './native/support/wire-upstream.ts';
import { completion } from './translated/support/transcript-upstream.ts';
import { ofFile, spineOfFile } from '../support/of-file.ts';

// A provider that has too many requests says when to come back. Clients wait as they are told.

const ALONE = 'acme/alone';
const NATIVE = 'acme/native';
const PAIR = 'acme/pair';
const busy = ofFile(startWireUpstream, (one) => one.stop());
const other = ofFile(startWireUpstream, (one) => one.stop());
const spine = spineOfFile(() => {
  const vectors = modelBlock({ name: 'acme/vectors', provider: 'Acme', url: busy.url }).replace(
    'display_name',
    'output_modalities = ["embeddings"]\ndisplay_name',
  );
  return {
    toml:
      `${UNHURRIED}[upstream]\ncooldown_ms = 0\n` +
      modelBlock({ name: ALONE, provider: 'Acme', url: busy.url }) +
      modelBlock({
        name: NATIVE,
        provider: 'Acme',
        url: busy.url,
        params: 'wires = ["chat", "messages", "responses"]',
      }) +
      modelBlock({ name: PAIR, provider: 'Acme', url: busy.url }) +
      modelBlock({ name: PAIR, provider: 'Other', url: other.url, prompt: 1000, completion: 1000 }) +
      vectors +
      imageBlock({ url: busy.url, name: 'acme/paint' }),
  };
});
beforeEach(() => {
  answerWith(429);
});

const LIMIT = 'Rate limit reached for organization org-abc123def on tokens per min';
function answerWith(status: number, error: object = {}, headers: Record<string, string> = { 'retry-after': '7' }) {
  busy.answer = () => ({
    status,
    headers,
    text: JSON.stringify({ error: { message: status === 429 ? LIMIT : 'Overloaded', type: 'requests', ...error } }),
  });
}

const messages = [{ role: 'user', content: 'hi' }];
const ENDPOINTS = [
  ['chat', '/chat/completions', ask('hi', { model: ALONE })],
  ['a stream', '/chat/completions', ask('hi', { model: ALONE, stream: true })],
  ['a completion', '/completions', { model: ALONE, prompt: 'hi', max_tokens: 5 }],
  ['a response', '/responses', { model: ALONE, input: 'hi' }],
  ['a native response', '/responses', { model: NATIVE, input: 'hi', store: false }],
  ['an embedding', '/embeddings', { model: 'acme/vectors', input: 'hi' }],
  ['an image', '/images/generations', { model: 'acme/paint', prompt: 'hi' }],
  ['an image at the other door', '/image/generate', { model: 'acme/paint', prompt: 'hi' }],
  ['a message', '/messages', { model: ALONE, max_tokens: 5, messages }],
  ['a native message', '/messages', { model: NATIVE, max_tokens: 5, messages }],
] as const;

describe.each(ENDPOINTS)('%s', (_name, path, body) => {
  test.each([
    [429, 'rate_limit_exceeded', 'rate_limit_error', /limits the rate of its requests: Rate limit reached for .* … on/],
    [529, 'overloaded', 'overloaded_error', /^Provider \w+ is overloaded: Overloaded$/],
  ])('tells %i as it is, with the words and the time', async (status, type, ofAnthropic, words) => {
    answerWith(status);
    const before = await spine.balance();
    const response = await spine.post(path, body);
    expect(response.status).toBe(status);
    expect(response.headers.get('retry-after')).toBe('7');
    expect(response.headers.get('x-should-retry')).toBeNull();
    const { error } = (await response.json()) as { error: { type: string; message: string; code?: unknown } };
    expect(error.type).toBe(path === '/messages' ? ofAnthropic : type);
    expect(error.message).toMatch(words);
    expect(error.message).not.toContain('abc123');
    if (path === '/image/generate') expect(error.code).toBe(type);
    await spine.quiet();
    expect(await spine.balance()).toEqual(before);
  });
});

test('a provider that does not say when gets no header, and the clients may still retry', async () => {
  answerWith(429, {}, {});
  const response = await spine.post('/messages', { model: NATIVE, max_tokens: 5, messages });
  expect(response.status).toBe(429);
  expect([response.headers.get('retry-after'), response.headers.get('x-should-retry')]).toEqual([null, null]);
});

test('another provider is asked first', async () => {
  other.answer = () => ({ text: JSON.stringify(completion({ content: 'here I am' })) });
  const response = await spine.post('/chat/completions', ask('hi', { model: PAIR }));
  expect(response.status).toBe(200);
  expect(response.headers.get('x-provider')).toBe('Other');
});

test.each([
  ['by its code', { code: 'insufficient_quota' }],
  ['by its type', { type: 'insufficient_quota' }],
  ['by another name', { code: 'billing_hard_limit_reached' }],
])('an operator whose account is used up, %s, is not told to the consumer', async (_name, error) => {
  answerWith(429, error);
  const response = await spine.post('/chat/completions', ask('hi', { model: ALONE }));
  expect(response.status).toBe(500);
  const told = await response.json();
  expect(told).toMatchObject({ error: { type: 'provider_unavailable' } });
  expect(JSON.stringify(told)).not.toContain('Rate limit reached');
});

test('an overload that begins a native stream has its status too', async () => {
  const overloaded = event('error', { error: { type: 'overloaded_error', message: 'Overloaded' } });
  busy.answer = () => ({ text: overloaded });
  const response = await spine.post('/messages', { model: NATIVE, max_tokens: 5, stream: true, messages });
  expect(response.status).toBe(529);
  expect(await response.json()).toMatchObject({ type: 'error', error: { type: 'overloaded_error' } });
});

test('the SDKs know both errors', async () => {
  const openai = new OpenAI({ baseURL: `${spine.origin}/v1`, apiKey: spine.key, maxRetries: 0 });
  const anthropic = new Anthropic({ baseURL: `${spine.origin}/api`, apiKey: spine.key, maxRetries: 0 });
  await expect(openai.chat.completions.create(ask('hi', { model: ALONE }) as never)).rejects.toBeInstanceOf(
    OpenAI.RateLimitError,
  );
  const asked = { model: ALONE, max_tokens: 5, messages: [{ role: 'user' as const, content: 'hi' }] };
  await expect(anthropic.messages.create(asked)).rejects.toBeInstanceOf(Anthropic.RateLimitError);
  answerWith(529);
  await expect(anthropic.messages.create(asked)).rejects.toMatchObject({ status: 529, type: 'overloaded_error' });
  // Retried by itself.
  const patient = new Anthropic({ baseURL: `${spine.origin}/api`, apiKey: spine.key, maxRetries: 1 });
  let tries = 0;
  busy.answer = () =>
    ++tries === 1
      ? { status: 529, headers: { 'retry-after': '0' }, text: '{"error":{"message":"Overloaded"}}' }
      : { text: JSON.stringify(completion({ content: 'again' })) };
  expect((await patient.messages.create(asked)).content).toMatchObject([{ type: 'text', text: 'again' }]);
});
