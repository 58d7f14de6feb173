import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { ENGINES } from '../support/engines.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import {
  completion,
  startTranscripts,
  words,
  type TranscriptUpstream,
} from '../openai/translated/support/transcript-upstream.ts';

const PRICED = 'acme/caching';
const FLAT = 'acme/flat';
const FREE = 'acme/free-cache';
/** 4,000 tokens, of which a cache had 3,000 and got 600. The answer thought for 6 of its 9 tokens. */
const USAGE = {
  prompt_tokens: 4_000,
  completion_tokens: 9,
  total_tokens: 4_009,
  prompt_tokens_details: { cached_tokens: 3_000, cache_write_tokens: 600 },
  completion_tokens_details: { reasoning_tokens: 6 },
};
const PROMPT = 'a '.repeat(4_000);

describe.each(ENGINES)('prompt tokens of a cache, %s', (engine) => {
  let upstream: TranscriptUpstream;
  let spine: Spine;
  let drop = async () => {};
  beforeAll(async () => {
    upstream = await startTranscripts();
    upstream.answer = ({ stream }) =>
      stream
        ? {
            chunks: [
              ...words('Good', ' morning').slice(0, -1),
              { id: 'x', created: 1, model: 'm', choices: [], usage: USAGE },
            ],
          }
        : { body: completion({ content: 'Good morning' }, 'stop', USAGE) };
    const of = (name: string, pricing: string) =>
      modelBlock({ name, provider: 'Acme', url: upstream.url, prompt: 2, pricing });
    const toml =
      of(PRICED, 'input_cache_read = 0.2\ninput_cache_write = 2.5') + of(FLAT, '') + of(FREE, 'input_cache_read = 0');
    let databaseUrl = {};
    if (engine === 'postgres') {
      const fresh = await freshDatabase(inject('postgresUrl'));
      drop = () => fresh.drop();
      databaseUrl = { databaseUrl: fresh.url };
    }
    spine = await startSpine({ toml: UNHURRIED + toml, ...databaseUrl });
  });
  afterAll(async () => {
    try {
      expect(await spine.faults()).toEqual([]);
    } finally {
      await spine.stop();
      await upstream.stop();
      await drop();
    }
  });

  const call = async (model: string, more: object = {}) => {
    const answer = await spine.post(
      '/chat/completions',
      {
        model,
        max_tokens: 50,
        messages: [{ role: 'user', content: PROMPT }],
        ...more,
      },
      { 'x-receipt': 'true' },
    );
    expect(answer.status).toBe(200);
    const text = await answer.text();
    const last = answer.headers.get('content-type')!.startsWith('text/event-stream')
      ? text.split('\n\n').at(-3)!.slice('data: '.length)
      : text;
    const { usage } = JSON.parse(last) as { usage: { cost: number; cost_details: Record<string, string> } };
    const generation = await spine.generation(answer.headers.get('x-generation-id'));
    return { usage, generation };
  };

  test.each([[{}], [{ stream: true }]])('are charged at their own prices %o', async (more) => {
    const { usage, generation } = await call(PRICED, more);
    // 400 × 2 + 3,000 × 0.2 + 600 × 2.5 + 9 × 2 micro-USD.
    expect(usage).toMatchObject({
      prompt_tokens: 4_000,
      prompt_tokens_details: { cached_tokens: 3_000, cache_write_tokens: 600 },
      cost: 0.002918,
      cost_details: { charged_usd: '0.002918', input_cache_read_usd: '0.0006', input_cache_write_usd: '0.0015' },
    });
    expect(generation).toMatchObject({
      cost_micro_usdc: 2_918,
      tokens_prompt: 4_000,
      tokens_cached: 3_000,
      tokens_cache_written: 600,
      tokens_reasoning: 6,
      usage_details: { prompt: 400, completion: 9, input_cache_read: 3_000, input_cache_write: 600 },
      native_tokens_cached: 3_000,
      native_tokens_reasoning: 6,
    });
    // All of the prompt was locked at the dearest price, 2.5.
    const locked = (generation as unknown as { entries: { type: string; amount_micro_usdc: number }[] }).entries[0]!;
    const bytes = PROMPT.length + 'user'.length + 64 + 16;
    expect(locked).toMatchObject({ type: 'lock', amount_micro_usdc: Math.ceil(bytes * 2.5 + 50 * 2) });
  });

  test('cost what the prompt does where they have no price', async () => {
    const { usage, generation } = await call(FLAT);
    expect(usage.cost).toBe(0.008018);
    expect(usage.cost_details).not.toHaveProperty('input_cache_read_usd');
    expect(generation).toMatchObject({
      tokens_prompt: 4_000,
      tokens_cached: 3_000,
      usage_details: { prompt: 4_000, completion: 9 },
    });
  });

  test('can be free, and those without a price cost what the prompt does', async () => {
    // 400 × 2 + 600 × 2 + 9 × 2 micro-USD.
    expect((await call(FREE)).usage.cost).toBe(0.002018);
  });

  test('are shown as Anthropic and as Responses have them', async () => {
    const message = await spine.post('/messages', {
      model: PRICED,
      max_tokens: 50,
      messages: [{ role: 'user', content: PROMPT }],
    });
    expect(await message.json()).toMatchObject({
      usage: {
        input_tokens: 400,
        cache_read_input_tokens: 3_000,
        cache_creation_input_tokens: 600,
        output_tokens: 9,
        cost: 0.002918,
      },
    });
    const response = await spine.post('/responses', { model: PRICED, max_output_tokens: 50, input: PROMPT });
    expect(await response.json()).toMatchObject({
      usage: { input_tokens: 4_000, input_tokens_details: { cached_tokens: 3_000 }, cost: 0.002918 },
    });
  });

  test('have their prices in the list of models', async () => {
    const { data } = (await (await spine.get('/models')).json()) as {
      data: { id: string; pricing: object; providers: { pricing: object }[] }[];
    };
    const of = (id: string) => data.find((one) => one.id === id)!;
    expect(of(PRICED).pricing).toMatchObject({ input_cache_read: '0.0000002', input_cache_write: '0.0000025' });
    expect(of(PRICED).providers[0]!.pricing).toMatchObject({ input_cache_read: 0.2, input_cache_write: 2.5 });
    expect(of(FREE).pricing).toMatchObject({ input_cache_read: '0' });
    expect(of(FLAT).pricing).not.toHaveProperty('input_cache_read');
  });
});
