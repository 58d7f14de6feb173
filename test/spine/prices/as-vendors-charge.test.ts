import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { ENGINES } from '../../support/engines.ts';
import { freshDatabase } from '../../support/fresh-database.ts';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { startVendor } from './vendor-upstream.ts';
import { type Case, CASES, SOUND } from './vendor-cases.ts';
import { blocks } from './vendor-models.ts';

/** The cap of each answer. */
const CAP = 50;
const PATHS = { chat: '/chat/completions', messages: '/messages', responses: '/responses' } as const;

function bodyOf({ wire, model, length = 100, asked = {} }: Case): Record<string, unknown> {
  const text = 'a'.repeat(length);
  const { sound, ...more } = asked as { sound?: boolean };
  if (wire === 'responses') return { model, max_output_tokens: CAP, input: text, ...more };
  const content = sound ? [{ type: 'text', text }, SOUND] : text;
  return { model, max_tokens: CAP, messages: [{ role: 'user', content }], ...more };
}

describe.each(ENGINES)('a model with the prices of a vendor, %s', (engine) => {
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
    spine = await startSpine({ toml: UNHURRIED + blocks(vendor.url), credit: '1000', ...databaseUrl });
  });
  afterAll(async () => {
    try {
      expect(await spine.faults()).toEqual([]);
      const { checks } = await spine.audit();
      // All charges are what price version and usage say. None is cut to its lock.
      expect(checks.find(({ name }) => name === 'charges')!.detail).toMatch(/^\d+ settlements cost .*, 0 less/);
    } finally {
      await spine.stop();
      await vendor.stop();
      await drop();
    }
  });

  describe.each([false, true])('stream %s', (stream) => {
    test.each(Object.entries(CASES))('%s', async (_name, one) => {
      const { wire, reply, cost, locked, usage, reached, claims = [], tier = null } = one;
      vendor.reply = reply;
      const body = bodyOf(one);
      const answer = await spine.post(PATHS[wire], { ...body, ...(stream ? { stream } : {}) }, { 'x-receipt': '1' });
      const text = await answer.text();
      expect([answer.status, text]).toEqual([200, expect.any(String)]);
      const generation = (await spine.generation(answer.headers.get('x-generation-id'))) as unknown as Record<
        string,
        unknown
      > & { readonly entries: readonly { readonly type: string; readonly amount_micro_usdc: number }[] };
      expect(generation).toMatchObject({
        state: 'settled',
        cost_micro_usdc: cost,
        flags: claims.length === 0 ? [] : ['usage_implausible'],
        claims,
        service_tier: tier,
        tokens_completion: tokensOf(usage, 'completion'),
        tokens_prompt: tokensOf(usage, 'prompt'),
      });
      expect(generation['usage_details']).toEqual(usage);
      const lock = generation.entries.find(({ type }) => type === 'lock')!.amount_micro_usdc;
      const [prompt, completion, more = 0] = locked;
      expect(lock).toBeGreaterThanOrEqual(cost);
      // A hosted search, or a sound, locks more prompt tokens than the request has bytes.
      if (prompt >= 0) {
        const bytes = Math.round((lock - more - CAP * completion) / prompt);
        expect(lock).toBe(Math.ceil(bytes * prompt + CAP * completion + more));
        expect(bytes).toBeGreaterThanOrEqual(one.length ?? 100);
        expect(bytes).toBeLessThan((one.length ?? 100) + 400);
      } else expect(lock).toBeGreaterThanOrEqual(more + CAP * completion);
      if (reached !== undefined)
        for (const [field, value] of Object.entries(reached)) expect(vendor.reached.at(-1)!.body[field]).toEqual(value);
      expect(text).toContain(`"cost":${cost / 1e6}`);
    });
  });
});

const PARTS = {
  prompt: ['prompt', 'input_cache_read', 'input_cache_write', 'input_cache_write_1h', 'audio', 'input_audio_cache'],
  completion: ['completion', 'internal_reasoning', 'audio_output', 'image_output'],
} as const;
const tokensOf = (usage: Readonly<Record<string, number>>, whole: 'prompt' | 'completion') =>
  PARTS[whole].reduce((sum, part) => sum + (usage[part] ?? 0), 0);
