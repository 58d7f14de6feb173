import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dialIn, offeredModel, type DialledIn } from '../../support/dial-in.ts';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { call, chunk, completion, eventsOf, usage } from '../translated/support/transcript-upstream.ts';
import { message, messageEvents, response, responseEvents, SIGNATURE } from './support/transcripts.ts';
import { startWireUpstream, type Reached, type WireAnswer, type WireUpstream } from './support/wire-upstream.ts';

// The SDKs as they are on npm, to a provider that speaks their wire, to one that does not, and through a tunnel.

const WIRES = 'wires = ["messages", "responses"]';
const PROVIDERS = [
  ['translated', 'acme/chat'],
  ['native', 'acme/native'],
  ['native', 'tunnel/native'],
] as const;

let upstream: WireUpstream;
let spine: Spine;
let proxy: DialledIn;
let anthropic: Anthropic;
let openai: OpenAI;
beforeAll(async () => {
  upstream = await startWireUpstream();
  upstream.answer = usually;
  spine = await startSpine({
    toml:
      UNHURRIED +
      modelBlock({ name: 'acme/chat', provider: 'Acme', url: upstream.url }) +
      modelBlock({ name: 'acme/native', provider: 'Acme', url: upstream.url, params: WIRES }),
  });
  proxy = await dialIn({
    router: spine.origin,
    services: offeredModel({
      url: upstream.url,
      name: 'tunnel/native',
      params: `${WIRES}\nhidden_reasoning_max = 100`,
    }),
  });
  anthropic = new Anthropic({ baseURL: `${spine.origin}/api`, apiKey: spine.key, maxRetries: 0 });
  openai = new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 });
});
afterAll(async () => {
  try {
    await proxy.close();
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await upstream.stop();
  }
});

const CHAT_USAGE = {
  prompt_tokens: 40,
  completion_tokens: 9,
  total_tokens: 49,
  prompt_tokens_details: { cached_tokens: 20, cache_write_tokens: 8 },
};

/** Each wire says the same. */
function usually({ path, body: { stream } }: Reached): WireAnswer {
  if (path === '/v1/messages') return { text: stream ? messageEvents().join('') : message() };
  if (path === '/v1/responses') return { text: stream ? responseEvents().join('') : response() };
  const said = { id: 'toolu_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } };
  const text = 'Let me see: "é🌍"';
  if (!stream)
    return { text: JSON.stringify(completion({ content: text, tool_calls: [said] }, 'tool_calls', CHAT_USAGE)) };
  return {
    text: eventsOf([
      chunk({ role: 'assistant', content: text.slice(0, 5) }),
      chunk({ content: text.slice(5) }),
      call(0, { id: 'toolu_1', name: 'weather' }),
      call(0, { args: '{"city":"Oslo"}' }),
      chunk({}, 'tool_calls'),
      usage(CHAT_USAGE),
    ]),
  };
}

const TOOL = {
  name: 'weather',
  description: 'The weather of a city.',
  input_schema: { type: 'object' as const, properties: { city: { type: 'string' } }, required: ['city'] },
};

describe.each(PROVIDERS)("%s, %s: Anthropic's SDK", (wire, model) => {
  const ask = { model, max_tokens: 50, messages: [{ role: 'user' as const, content: 'Hi' }], tools: [TOOL] };
  const isSaid = expect.arrayContaining([
    expect.objectContaining({ type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Oslo' } }),
  ]) as unknown[];

  test('creates a message', async () => {
    const { data, response: reply } = await anthropic.messages.create(ask).withResponse();
    expect(reply.headers.get('x-tollgate-wire')).toBe(wire);
    expect(data).toMatchObject({
      model,
      role: 'assistant',
      stop_reason: 'tool_use',
      content: isSaid,
      usage: { input_tokens: 12, cache_read_input_tokens: 20, cache_creation_input_tokens: 8, output_tokens: 9 },
    });
    // 40 × 1 + 9 × 2 micro-USD.
    expect(await spine.generation(reply.headers.get('x-generation-id'))).toMatchObject({
      cost_micro_usdc: 58,
      tokens_cached: 20,
      flags: [],
    });
  });

  test('streams one, with the thinking of a native provider as it was signed', async () => {
    const stream = anthropic.messages.stream(ask);
    const texts: string[] = [];
    stream.on('text', (text) => texts.push(text));
    const final = await stream.finalMessage();
    expect(final.model).toBe(model);
    expect(final.content).toEqual(isSaid);
    expect(texts.join('')).toContain('Let me see: "é🌍"');
    const thought = final.content.find((block) => block.type === 'thinking');
    if (wire === 'native') expect(thought).toMatchObject({ thinking: 'A city.', signature: SIGNATURE });
    expect(final.usage).toMatchObject({ output_tokens: 9 });
  });

  test('counts tokens', async () => {
    const { max_tokens: _, ...counted } = ask;
    expect((await anthropic.messages.countTokens(counted)).input_tokens).toBeGreaterThan(20);
  });
});

describe.each(PROVIDERS)("%s, %s: OpenAI's SDK", (wire, model) => {
  const ask = {
    model,
    max_output_tokens: 50,
    input: 'Hi',
    tools: [{ type: 'function' as const, name: 'weather', parameters: TOOL.input_schema, strict: false }],
  };
  const isCalled = expect.arrayContaining([
    expect.objectContaining({ type: 'function_call', name: 'weather', arguments: '{"city":"Oslo"}' }),
  ]) as unknown[];

  test('creates a response', async () => {
    const { data, response: reply } = await openai.responses.create(ask).withResponse();
    expect(reply.headers.get('x-tollgate-wire')).toBe(wire);
    expect(data).toMatchObject({ model, status: 'completed', output: isCalled });
    expect(data.output_text).toContain('Let me see'.slice(0, 6));
    expect(data.usage).toMatchObject({ input_tokens: 40, output_tokens: 9, cost: 0.000058 });
  });

  test('counts tokens', async () => {
    const { max_output_tokens: _, ...counted } = ask;
    const { object, input_tokens: tokens } = await openai.responses.inputTokens.count(counted);
    expect([object, tokens > 20]).toEqual(['response.input_tokens', true]);
  });

  test('streams one', async () => {
    const stream = openai.responses.stream(ask);
    const deltas: string[] = [];
    stream.on('response.output_text.delta', ({ delta }) => deltas.push(delta));
    const final = await stream.finalResponse();
    expect(final.output).toEqual(isCalled);
    expect(deltas.join('')).toBe(final.output_text);
    expect(final.usage).toMatchObject({ input_tokens: 40, input_tokens_details: { cached_tokens: 20 } });
  });
});

test('a provider that dials in gets the key of its own upstream on the wire, and nobody else’s', () => {
  const asked = upstream.reached.filter(({ path }) => path === '/v1/messages');
  expect(asked.length).toBeGreaterThan(2);
  for (const { headers } of asked) expect(JSON.stringify(headers)).not.toContain(spine.key);
});
