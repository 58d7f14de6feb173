import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { ENGINES } from '../../support/engines.ts';
import { freshDatabase } from '../../support/fresh-database.ts';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { startVendor } from './vendor-upstream.ts';
import { blocks, AUDIO, CLAUDE, GEMINI, GPT } from './vendor-models.ts';

// Whatever a provider says of its tiers and parts, a call is settled within its lock, and the books are right.

const odd = fc.oneof(
  fc.constantFrom<unknown>(null, -1, 0, 1.5, 1e308, Number.MAX_SAFE_INTEGER, 2 ** 53, '5', true, [], {}, [7], { a: 1 }),
  fc.nat(5_000),
);
const record = (names: readonly string[]) =>
  fc.record(Object.fromEntries(names.map((name) => [name, odd])), { requiredKeys: [] });
const deep = (names: readonly string[], parts: Readonly<Record<string, readonly string[]>>) =>
  fc.record(
    {
      ...Object.fromEntries(names.map((name) => [name, fc.oneof({ weight: 3, arbitrary: fc.nat(3_000) }, odd)])),
      ...Object.fromEntries(Object.entries(parts).map(([name, members]) => [name, fc.oneof(record(members), odd)])),
    },
    { requiredKeys: [] },
  );
const SEARCHES = { server_tool_use: ['web_search_requests', 'web_fetch_requests'] };
const HOURS = { cache_creation: ['ephemeral_1h_input_tokens', 'ephemeral_5m_input_tokens'] };
const OF_COMPLETION = ['reasoning_tokens', 'audio_tokens', 'image_tokens', 'thinking_tokens'];
const OF_PROMPT = ['cached_tokens', 'cache_write_tokens', 'audio_tokens', 'cached_tokens_details'];
const USAGE = {
  chat: deep(['prompt_tokens', 'completion_tokens', 'num_search_queries'], {
    prompt_tokens_details: OF_PROMPT,
    completion_tokens_details: OF_COMPLETION,
    ...SEARCHES,
    ...HOURS,
  }),
  messages: deep(['input_tokens', 'output_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'], {
    output_tokens_details: OF_COMPLETION,
    ...SEARCHES,
    ...HOURS,
  }),
  responses: deep(['input_tokens', 'output_tokens', 'total_tokens'], {
    input_tokens_details: OF_PROMPT,
    output_tokens_details: OF_COMPLETION,
    ...SEARCHES,
  }),
};
const tier = fc.oneof(fc.constantFrom<unknown>('flex', 'priority', 'batch', 'default', '\u0000', '\ud800', ''), odd);
const WEB = { type: 'web_search_20250305', name: 'web_search', max_uses: 2 };
const HOUR = { type: 'ephemeral', ttl: '1h' };
const messages = [{ role: 'user', content: 'a'.repeat(2_100) }];
const ASKED = {
  chat: [
    { model: GPT, messages },
    { model: GPT, messages, service_tier: 'priority', web_search_options: {} },
    { model: CLAUDE, messages, cache_control: HOUR },
    { model: GEMINI, messages },
    { model: AUDIO, messages, modalities: ['text', 'audio'] },
  ],
  messages: [{ model: CLAUDE, messages, tools: [WEB], cache_control: HOUR }],
  responses: [
    { model: GPT, input: 'a'.repeat(2_100), service_tier: 'flex', tools: [{ type: 'web_search' }] },
    { model: GPT, input: 'Hi', service_tier: 'priority' },
  ],
} as const;
const PATHS = { chat: '/chat/completions', messages: '/messages', responses: '/responses' } as const;
const action = fc.oneof(odd, fc.constant({ type: 'search' }));

describe.each(ENGINES)('%s', (engine) => {
  let vendor: Awaited<ReturnType<typeof startVendor>>;
  let spine: Spine;
  let drop = async () => {};
  beforeAll(async () => {
    vendor = await startVendor();
    let databaseUrl = {};
    if (engine === 'postgres') {
      const fresh = await freshDatabase(inject('postgresUrl'));
      drop = () => fresh.drop();
      databaseUrl = { databaseUrl: fresh.url };
    }
    spine = await startSpine({ toml: UNHURRIED + blocks(vendor.url), credit: '100000', ...databaseUrl });
  });
  afterAll(async () => {
    try {
      expect(await spine.faults()).toEqual([]);
    } finally {
      await spine.stop();
      await vendor.stop();
      await drop();
    }
  });

  test.each(['chat', 'messages', 'responses'] as const)('%s', async (wire) => {
    const cap = wire === 'responses' ? { max_output_tokens: 50 } : { max_tokens: 50 };
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...ASKED[wire]),
        fc.oneof({ weight: 5, arbitrary: USAGE[wire] }, odd),
        tier,
        fc.boolean(),
        fc.array(action, { maxLength: 3 }),
        async (asked, usage, named, stream, actions) => {
          vendor.reply = {
            usage: usage as object,
            tier: named as string,
            items: actions.map((one) => ({ type: 'web_search_call', action: one })),
          };
          const answer = await spine.post(PATHS[wire], { ...asked, ...cap, stream });
          const text = await answer.text();
          expect([answer.status, text]).toEqual([200, expect.any(String)]);
          const generation = await spine.generation(answer.headers.get('x-generation-id'));
          expect(generation.state).toBe('settled');
          const lock = generation.entries.find(({ type }) => type === 'lock')!.amount_micro_usdc;
          expect(generation.cost_micro_usdc).toBeLessThanOrEqual(lock);
        },
      ),
      { numRuns: process.env['TOLLGATE_DEEP'] === '1' ? 5_000 : 150 },
    );
    const { checks } = await spine.audit();
    // No charge was cut to its lock: the parts of a claim are bounded by the same facts as the lock.
    expect(checks.find(({ name }) => name === 'charges')!.detail).toMatch(/, 0 less/);
  });
});
