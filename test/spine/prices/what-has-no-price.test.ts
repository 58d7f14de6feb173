import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startWireUpstream, type WireUpstream } from '../../openai/native/support/wire-upstream.ts';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { CASES, LISTED_NAMES, type PaidCase } from './paid-cases.ts';

// What costs a vendor's money beside tokens reaches a provider only if the model has a price for it or lists it.

const PLAIN = 'acme/plain';
const PRICED = 'acme/priced';
const LISTED = 'acme/listed';
const SHARED = 'acme/shared';
const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

let upstream: WireUpstream;
let spine: Spine;
beforeAll(async () => {
  upstream = await startWireUpstream();
  const block = (name: string, provider: string, pricing: string, params: string) =>
    modelBlock({
      name,
      provider,
      url: upstream.url,
      pricing,
      params: `wires = ["messages", "responses", "gemini"]\n${params}`,
    });
  const prices = 'web_search = 0.01\naudio_output = 64\nimage_output = 30';
  spine = await startSpine({
    credit: '10000',
    toml:
      UNHURRIED +
      block(PLAIN, 'Acme', '', 'forward = "all"') +
      block(PRICED, 'Acme', prices, '') +
      block(LISTED, 'Acme', '', `forward = ${JSON.stringify(LISTED_NAMES)}`) +
      block(SHARED, 'Acme', '', '') +
      block(SHARED, 'Other', prices, ''),
  });
  upstream.answer = ({ path }) => ({ text: JSON.stringify(answerAt(path)) });
});
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await upstream.stop();
  }
});
beforeEach(() => {
  upstream.reached.length = 0;
});

function answerAt(path: string): object {
  if (path.endsWith('/messages'))
    return {
      id: 'm',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [{ type: 'text', text: 'ok' }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 10, output_tokens: 5 },
    };
  const content = [{ type: 'output_text', text: 'ok', annotations: [] }];
  if (path.endsWith('/responses'))
    return {
      id: 'r',
      object: 'response',
      created_at: 1,
      status: 'completed',
      model: 'm',
      output: [{ type: 'message', id: 'm', role: 'assistant', status: 'completed', content }],
      usage: { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
    };
  if (path.includes('enerateContent'))
    return {
      candidates: [{ content: { role: 'model', parts: [{ text: 'ok' }] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
    };
  const choices = [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }];
  return { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage: USAGE };
}

async function call(model: string, { wire, asked, headers = {} }: Pick<PaidCase, 'wire' | 'asked' | 'headers'>) {
  const places = {
    chat: ['/v1/chat/completions', { model, max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] }],
    messages: ['/v1/messages', { model, max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] }],
    responses: ['/v1/responses', { model, max_output_tokens: 100, input: 'Hi', store: false }],
    gemini: [`/v1beta/models/${model}:generateContent`, { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] }],
  } as const;
  const [path, body] = places[wire];
  const reply = await fetch(`${spine.origin}/api${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ ...body, ...asked }),
  });
  const text = await reply.text();
  const id = reply.headers.get('x-generation-id');
  return {
    status: reply.status,
    text,
    dropped: (reply.headers.get('x-tollgate-dropped') ?? '').split(', ').map(decodeURIComponent),
    sent: upstream.reached.map((one) => `${one.text} ${String(one.headers['anthropic-beta'])}`),
    generation: id === null ? null : ((await spine.generation(id)) as unknown as Record<string, unknown>),
  };
}

const lockOf = (generation: Record<string, unknown> | null): number =>
  (generation!['entries'] as { type: string; amount_micro_usdc: number }[]).find(({ type }) => type === 'lock')!
    .amount_micro_usdc;

describe.each(CASES)('$wire: $what', (one) => {
  test('without a price', async () => {
    const { status, text, dropped, sent, generation } = await call(PLAIN, one);
    if (one.otherwise.refused !== undefined) {
      expect([status, sent, generation]).toEqual([422, [], null]);
      expect(text).toContain('has no price for');
      expect(text).toContain(one.otherwise.refused);
      expect(text).toContain(one.price === null ? 'params.forward' : `pricing.${one.price}`);
      return;
    }
    expect([status, text]).toEqual([200, expect.any(String)]);
    expect(dropped).toContain(one.otherwise.leftOut);
    expect(sent).toHaveLength(1);
    expect(sent[0]).not.toMatch(one.shows);
    // Only the tokens of the request are locked, and no context for what a tool might read.
    expect(lockOf(generation)).toBeLessThan(2_500);
  });

  test('with a price', async () => {
    const { status, text, sent, generation } = await call(PRICED, one);
    if (one.price === null) {
      expect(sent.join('')).not.toMatch(one.shows);
      return;
    }
    expect([status, text]).toEqual([200, expect.any(String)]);
    expect(sent[0]).toMatch(one.shows);
    expect(lockOf(generation)).toBeGreaterThanOrEqual(one.worth!);
  });

  test('listed by its name', async () => {
    const { status, text, sent } = await call(LISTED, one);
    expect([status, text]).toEqual([200, expect.any(String)]);
    expect(sent[0]).toMatch(one.shows);
  });
});

test.each(CASES.filter(({ price, otherwise }) => price !== null && otherwise.refused !== undefined))(
  '$wire: $what goes to the provider that has a price for it',
  async (one) => {
    const { status, generation } = await call(SHARED, one);
    expect([status, generation?.['provider_name']]).toEqual([200, 'Other']);
  },
);

test('a price of searches is that of the least context: more of it goes to a model that lists it', async () => {
  const options = { search_context_size: 'high', user_location: { type: 'approximate' } };
  const least = CASES.find(({ what }) => what === 'options of a search')!;
  const search = { ...least, asked: { ...least.asked, web_search_options: options } };
  const priced = await call(PRICED, search);
  expect([priced.status, priced.dropped]).toEqual([200, ['web_search_options.search_context_size']]);
  expect(priced.sent[0]).toContain('user_location');
  expect(priced.sent[0]).not.toContain('search_context_size');
  expect((await call(LISTED, search)).sent.at(-1)).toContain('"search_context_size":"high"');
});
