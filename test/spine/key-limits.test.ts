import { afterEach, describe, expect, test } from 'vitest';
import { ask, modelBlock, UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// What a key may do of what its account could: services, money, and how often the money starts anew.

/** From noon on: no period of a limit ends by chance. */
let skew = 43_200_000 - (Date.now() % 86_400_000);
const spine = spineOfFile(() => ({
  toml: `${UNHURRIED}${modelBlock({ name: 'test/other', provider: 'Other', url: '{provider}' })}`,
  now: () => Date.now() + skew,
}));
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const chat = (key: string, content = 'hello', more: object = {}) =>
  spine.post('/chat/completions', ask(content, more), bearer(key));
const keyOf = async (key: string) =>
  ((await (await spine.get('/key', bearer(key))).json()) as { data: { usage: number; limit_remaining: number } }).data;

describe('allowed services', () => {
  test('others are 403, in every form of their name, also as a fallback, and nothing is locked', async () => {
    const { key } = await spine.tenant('narrow', '1', { allowedServices: ['test/model'] });
    expect((await chat(key)).status).toBe(200);
    const provider = spine.app.catalog.offers().find(({ service }) => service === 'test/other')!.provider.id;
    const locks = (await spine.locks()).length;
    for (const more of [
      { model: 'test/other' },
      { model: 'test/other:floor' },
      { model: `${provider}:test/other` },
      { models: ['test/other'] },
    ]) {
      const response = await chat(key, 'hello', more);
      expect(response.status).toBe(403);
      expect(await response.json()).toMatchObject({ error: { type: 'permission_denied', code: 403, param: 'model' } });
    }
    expect(await spine.locks()).toHaveLength(locks);
  });
});

describe('a spending limit', () => {
  test('a call whose estimate goes beyond it is 402 although the account has money', async () => {
    const { key } = await spine.tenant('rich', '10', { limit: 300n });
    // About 100 + 2 × 50 micro-USD are locked for each.
    expect((await chat(key, 'hello !tokens:50')).status).toBe(200);
    const response = await chat(key, 'hello', { max_tokens: 4000 });
    expect(response.status).toBe(402);
    const { error } = (await response.json()) as { error: { message: string; type: string; code: number } };
    expect(error).toMatchObject({ type: 'insufficient_balance', code: 402 });
    expect(error.message).toMatch(
      /^Spending limit of this API key is too low for estimated cost: 0\.00\d+ USDC, the most that this call may cost: a lower max_tokens, or a cheaper model, needs less\. 0\.000\d+ of 0\.0003 USDC are spent and 0 locked by running calls; it is never reset\. Whoever manages the keys of the account raises it, on the page \/dashboard\/keys or with PATCH \/api\/v1\/keys\/\{hash\}$/,
    );
  });

  test('holds against calls at the same time, to the last micro-USD', async () => {
    const { key } = await spine.tenant('burst', '10', { limit: 1_000n });
    const statuses = await Promise.all(
      Array.from({ length: 60 }, async () => (await chat(key, 'hello !tokens:50 !head-delay:50')).status),
    );
    expect(new Set(statuses)).toEqual(new Set([200, 402]));
    await spine.quiet();
    const { usage, limit_remaining } = await keyOf(key);
    expect(usage).toBeLessThanOrEqual(0.001);
    expect(usage + limit_remaining).toBeCloseTo(0.001, 9);
  });

  test('counts what was charged, not what was locked', async () => {
    const { key } = await spine.tenant('frugal', '10', { limit: 1_000n });
    for (let i = 0; i < 10; i++) expect((await chat(key, 'hello !tokens:1')).status).toBe(200);
    const { usage } = await keyOf(key);
    expect(usage).toBe((10 * (spine.provider.log.at(-1)!.promptTokens + 2)) / 1e6);
  });

  test('a failed call gives its part back', async () => {
    const { key } = await spine.tenant('unlucky', '10', { limit: 300n });
    for (let i = 0; i < 3; i++) expect((await chat(key, 'hello !status:400')).status).toBe(400);
    expect(await keyOf(key)).toMatchObject({ usage: 0, limit_remaining: 0.0003 });
  });

  test.each([
    ['daily', 86_400_000],
    ['weekly', 7 * 86_400_000],
    ['monthly', 31 * 86_400_000],
  ] as const)('%s: starts anew', async (limitReset, ms) => {
    const { key } = await spine.tenant(`reset-${limitReset}`, '10', { limit: 260n, limitReset });
    const spend = async () => {
      let passed = 0;
      while ((await chat(key, 'hello !tokens:50')).status === 200) passed++;
      return passed;
    };
    const first = await spend();
    expect(first).toBeGreaterThan(0);
    expect(await spend()).toBe(0);
    const { usage } = await keyOf(key);
    skew += ms;
    // What was spent in all stays.
    expect(await keyOf(key)).toMatchObject({ usage, limit_remaining: 0.00026 });
    expect(await spend()).toBe(first);
  });

  test('has what was spent in its new period when the period changes, and refuses by it', async () => {
    const { account, key, hash } = await spine.tenant('switched', '10', { limit: 260n, limitReset: 'daily' });
    while ((await chat(key, 'hello !tokens:50')).status === 200);
    const { usage, limit_remaining } = await keyOf(key);
    expect(usage).toBeGreaterThan(0);
    for (const limit_reset of ['monthly', null, 'weekly', 'daily']) {
      const changed = await fetch(`${spine.origin}/admin/v1/accounts/${account}/keys/${hash}`, {
        method: 'PATCH',
        headers: { ...bearer(spine.adminKey), 'content-type': 'application/json' },
        body: JSON.stringify({ limit_reset }),
      });
      expect(await changed.json()).toMatchObject({ data: { limit_reset, limit_remaining, usage } });
      const refused = await chat(key, 'hello !tokens:50');
      expect(refused.status).toBe(402);
      const { error } = (await refused.json()) as { error: { message: string } };
      expect(error.message).toContain(`${usage} of 0.00026 USDC are spent`);
    }
  });
});
