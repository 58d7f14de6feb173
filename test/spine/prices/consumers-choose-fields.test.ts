import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { event } from '../../openai/native/support/wire-upstream.ts';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { startVendor } from './vendor-upstream.ts';

// Nothing that a consumer writes into a request makes the vendor charge the operator more than the consumer is charged.

const TIERED = 'acme/tiered';
const CACHED = 'acme/cached';
const PLAIN = 'acme/plain';
const EMBEDS = 'acme/embeds';
const SEARCH = 10_000;

let vendor: Awaited<ReturnType<typeof startVendor>>;
let spine: Spine;
beforeAll(async () => {
  vendor = await startVendor();
  const at = { provider: 'Acme', url: vendor.url, prompt: 2, completion: 10 };
  const tiers = `
web_search = 0.01
[models.pricing.service_tiers]
flex = { prompt = 1, completion = 5 }
priority = { prompt = 20, completion = 100 }`;
  spine = await startSpine({
    credit: '1000',
    toml:
      `${UNHURRIED}[billing]\ndrain_ms = 0\n` +
      modelBlock({
        ...at,
        name: TIERED,
        pricing: tiers,
        params: 'wires = ["messages", "responses"]\nsearches_max = 4',
      }) +
      modelBlock({ ...at, name: CACHED, pricing: 'input_cache_write = 2.5\ninput_cache_write_1h = 4' }) +
      modelBlock({ ...at, name: PLAIN, pricing: 'input_cache_write = 2.5' }) +
      modelBlock({ ...at, name: EMBEDS, pricing: tiers }).replace(
        `name = "${EMBEDS}"`,
        `name = "${EMBEDS}"\noutput_modalities = ["embeddings"]`,
      ),
  });
});
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await vendor.stop();
  }
});
beforeEach(() => {
  vendor.reached.length = 0;
});

const USAGE = { prompt_tokens: 60, completion_tokens: 10, total_tokens: 70 };
const chat = (model: string, more: object = {}) => ({
  model,
  max_tokens: 50,
  messages: [{ role: 'user', content: 'a'.repeat(100) }],
  ...more,
});

async function call(path: string, body: object, headers: Record<string, string> = {}) {
  const answer = await spine.post(path, body, headers);
  const text = await answer.text();
  const generation =
    answer.status === 200
      ? ((await spine.generation(answer.headers.get('x-generation-id'))) as unknown as Record<string, unknown>)
      : null;
  return {
    status: answer.status,
    text,
    generation,
    dropped: answer.headers.get('x-tollgate-dropped'),
    sent: vendor.reached.at(-1)?.body,
  };
}

describe('a quote', () => {
  const quoteOf = async (more: object) => {
    const answer = await spine.post('/quotes', { primitive: 'model', ...chat(TIERED, more) });
    return (await answer.json()) as { quote_id: string; price_micro_usdc: number };
  };

  test.each([
    [{ service_tier: 'flex' }, { service_tier: 'priority' }],
    [{}, { service_tier: 'priority' }],
    [{ service_tier: 'priority' }, {}],
  ])('of %j is not for %j', async (quoted, asked) => {
    const { quote_id: quote } = await quoteOf(quoted);
    const { status, text } = await call('/chat/completions', chat(TIERED, asked), { 'x-quote-id': quote });
    expect([status, text]).toEqual([409, expect.stringContaining('service_tier')]);
    expect(vendor.reached).toEqual([]);
  });

  test('of a service tier is for a call in it', async () => {
    vendor.reply = { usage: USAGE, tier: 'flex' };
    const asked = { service_tier: 'flex' };
    const { quote_id: quote } = await quoteOf(asked);
    const { status, generation } = await call('/chat/completions', chat(TIERED, asked), { 'x-quote-id': quote });
    expect(status).toBe(200);
    expect(generation).toMatchObject({ cost_micro_usdc: 60 + 50 });
  });
});

describe('an hour in a cache', () => {
  const HOUR = { type: 'ephemeral', ttl: '1h' };
  const usage = {
    ...USAGE,
    prompt_tokens_details: { cache_write_tokens: 40 },
    cache_creation: { ephemeral_1h_input_tokens: 40 },
  };
  const part = (mark: object) => [{ role: 'user', content: [{ type: 'text', text: 'a'.repeat(100), ...mark }] }];
  const places: readonly (readonly [string, object])[] = [
    ['a part', { messages: part({ cache_control: HOUR }) }],
    ['a part, in other letters', { messages: part({ Cache_Control: { type: 'ephemeral', TTL: '1h' } }) }],
    ['the request', { cache_control: HOUR }],
    ['options of a package', { provider_options: { anthropic: { cacheControl: HOUR } } }],
    ['a tool', { tools: [{ type: 'function', function: { name: 'f' }, cache_control: HOUR }] }],
  ];

  test.each(places)('of %s is not sent to a model without a price for it', async (_place, more) => {
    vendor.reply = { usage };
    const { status, sent, dropped } = await call('/chat/completions', chat(PLAIN, more));
    expect(status).toBe(200);
    expect(JSON.stringify(sent)).not.toContain('1h');
    expect(JSON.stringify(sent)).toContain('ephemeral');
    expect(dropped).toContain('cache_control.ttl');
  });

  test.each(places)('of %s has its price', async (_place, more) => {
    vendor.reply = { usage };
    const { sent, generation } = await call('/chat/completions', chat(CACHED, more));
    expect(JSON.stringify(sent)).toContain('1h');
    expect(generation).toMatchObject({ cost_micro_usdc: 20 * 2 + 40 * 4 + 10 * 10 });
  });
});

describe('searches of chat', () => {
  test.each([
    ['web_search_options', {}],
    ['Web_Search_Options', {}],
    ['search_parameters', { mode: 'on' }],
    ['tools', [{ type: 'web_search', web_search: { enable: true } }]],
  ])('by %s are charged as their provider counts them, as far as the model says', async (field, value) => {
    for (const [said, charged] of [
      [0, 0],
      [3, 3],
      [30, 4],
    ]) {
      vendor.reply = { usage: { ...USAGE, num_search_queries: said } };
      const { status, generation } = await call('/chat/completions', chat(TIERED, { [field]: value }));
      expect(status).toBe(200);
      // Chat has no limit for searches, so more of them are nobody's fault.
      expect(generation).toMatchObject({ cost_micro_usdc: 220 + charged! * SEARCH, flags: [] });
    }
  });

  test('of a provider that always searches are not charged unless they are asked for, and are no fault', async () => {
    vendor.reply = { usage: { ...USAGE, num_search_queries: 2 } };
    const { generation } = await call('/chat/completions', chat(TIERED));
    expect(generation).toMatchObject({ cost_micro_usdc: 220, flags: [] });
  });
});

describe('limits of searches', () => {
  const WEB = { type: 'web_search_20250305', name: 'web_search' };
  const many = Number.MAX_SAFE_INTEGER;
  const asked = (wire: string, more: object) =>
    wire === 'messages' ? chat(TIERED, more) : { model: TIERED, max_output_tokens: 50, input: 'Hi', ...more };
  const items = Array.from({ length: 3 }, () => ({ type: 'web_search_call', action: { type: 'search', query: 'x' } }));

  test.each<[string, object, object]>([
    ['messages', { tools: [{ ...WEB, max_uses: many }] }, { tools: [{ ...WEB, max_uses: 1_000 }] }],
    ['messages', { tools: [{ ...WEB, max_uses: '9' }] }, { tools: [{ ...WEB, max_uses: 4 }] }],
    ['messages', { tools: [{ ...WEB, max_uses: -1 }] }, { tools: [{ ...WEB, max_uses: 4 }] }],
    ['responses', { tools: [{ type: 'web_search' }], max_tool_calls: many }, { max_tool_calls: 1_000 }],
    ['responses', { tools: [{ type: 'web_search' }], max_tool_calls: -1 }, { max_tool_calls: 4 }],
    [
      'responses',
      { tools: [{ type: 'namespace', name: 'n', description: 'd', tools: [{ type: 'web_search' }] }] },
      { max_tool_calls: 4 },
    ],
  ])('of %s: %j reaches the provider with %j', async (wire, more, reached) => {
    vendor.reply =
      wire === 'messages'
        ? { usage: { input_tokens: 60, output_tokens: 10, server_tool_use: { web_search_requests: 3 } } }
        : { usage: { input_tokens: 60, output_tokens: 10, total_tokens: 70 }, items };
    const { status, text, sent, generation } = await call(`/${wire}`, asked(wire, more));
    expect([status, text]).toEqual([200, expect.any(String)]);
    expect(sent).toMatchObject(reached);
    expect(generation).toMatchObject({ cost_micro_usdc: 220 + 3 * SEARCH, flags: [] });
  });
});

test('a service tier of embeddings, which have none, is not sent', async () => {
  const answer = vendor.answer;
  vendor.answer = () => ({
    text: JSON.stringify({
      object: 'list',
      data: [{ object: 'embedding', index: 0, embedding: [1] }],
      usage: { prompt_tokens: 2, total_tokens: 2 },
    }),
  });
  try {
    const { status, text, sent } = await call('/embeddings', { model: EMBEDS, input: 'Hi', service_tier: 'priority' });
    expect([status, text]).toEqual([200, expect.any(String)]);
    expect(sent).not.toHaveProperty('service_tier');
  } finally {
    vendor.answer = answer;
  }
});

describe('a client that leaves before the usage came', () => {
  async function leave(path: string, body: object, events: readonly string[]) {
    const answer = vendor.answer;
    const { promise: rest, resolve } = Promise.withResolvers<string>();
    vendor.answer = () => ({ text: events.join(''), rest });
    const before = new Set(await spine.locks());
    const leaving = new AbortController();
    try {
      const reply = await spine.post(path, { ...body, stream: true }, {}, leaving.signal);
      const reader = reply.body!.getReader();
      let text = '';
      const decoder = new TextDecoder();
      while (!text.includes('morning')) text += decoder.decode((await reader.read()).value, { stream: true });
      leaving.abort();
      await spine.quiet();
      const id = (await spine.locks()).find((one) => !before.has(one))!;
      return (await spine.generation(id)) as unknown as Record<string, unknown>;
    } finally {
      resolve('');
      vendor.answer = answer;
    }
  }
  const SAID = 'Good morning to you, whoever you are';

  test('pays the service tier that it asked for, in a native response', async () => {
    const response = { id: 'r', object: 'response', status: 'in_progress', output: [], service_tier: 'priority' };
    const generation = await leave(
      '/responses',
      { model: TIERED, max_output_tokens: 50, input: 'Hi', service_tier: 'priority' },
      [
        event('response.created', { sequence_number: 0, response }),
        event('response.output_text.delta', { sequence_number: 1, item_id: 'm', delta: SAID }),
      ],
    );
    const { tokens_prompt: prompt, tokens_completion: completion } = generation as Record<string, number>;
    expect(generation).toMatchObject({
      cancelled: true,
      service_tier: 'priority',
      cost_micro_usdc: prompt! * 20 + completion! * 100,
    });
  });

  test.each([
    [
      'responses',
      { model: TIERED, max_output_tokens: 50, input: 'Hi', tools: [{ type: 'web_search' }] },
      [
        event('response.created', { sequence_number: 0, response: { id: 'r', status: 'in_progress', output: [] } }),
        ...[1, 2].map((n) =>
          event('response.output_item.done', {
            sequence_number: n,
            item: { type: 'web_search_call', action: { type: 'search', query: 'x' } },
          }),
        ),
        event('response.output_text.delta', { sequence_number: 3, item_id: 'm', delta: SAID }),
      ],
    ],
    [
      'messages',
      chat(TIERED, { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }),
      [
        event('message_start', {
          message: {
            id: 'm',
            type: 'message',
            role: 'assistant',
            content: [],
            usage: { input_tokens: 60, output_tokens: 1, server_tool_use: { web_search_requests: 0 } },
          },
        }),
        ...[0, 1].flatMap((index) => [
          event('content_block_start', {
            index,
            content_block: { type: 'server_tool_use', id: `s${index}`, name: 'web_search', input: {} },
          }),
          event('content_block_stop', { index }),
        ]),
        event('content_block_start', { index: 2, content_block: { type: 'text', text: '' } }),
        event('content_block_delta', { index: 2, delta: { type: 'text_delta', text: SAID } }),
      ],
    ],
  ] as const)('pays the searches that it saw: %s', async (wire, body, events) => {
    const generation = await leave(`/${wire}`, body, events);
    expect(generation).toMatchObject({ cancelled: true, usage_details: { web_search: 2 } });
    expect(generation['cost_micro_usdc']).toBeGreaterThan(2 * SEARCH);
  });
});
