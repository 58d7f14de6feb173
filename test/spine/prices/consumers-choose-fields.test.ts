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
