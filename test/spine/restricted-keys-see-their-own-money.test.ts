import { afterEach, expect, test } from 'vitest';
import { ask, UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// What `/credits` and the balance say to a key that does not see the whole account.

const spine = spineOfFile(() => ({ toml: UNHURRIED }));
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const make = async (owner: string, body: object): Promise<string> =>
  ((await (await spine.post('/keys', body, bearer(owner))).json()) as { key: string }).key;
const seenBy = async (key: string) => {
  const { data } = (await (await spine.get('/credits', bearer(key))).json()) as {
    data: { total_credits: number; total_usage: number };
  };
  const balance = (await (await spine.get('/session/balance', bearer(key))).json()) as { balance_micro_usdc: number };
  const micro = (usd: number) => Math.round(usd * 1_000_000);
  return {
    used: micro(data.total_usage),
    left: micro(data.total_credits) - micro(data.total_usage),
    balance: balance.balance_micro_usdc,
  };
};
const callWith = async (key: string): Promise<void> => {
  expect((await spine.post('/chat/completions', ask('hello'), bearer(key))).status).toBe(200);
  await spine.quiet();
};

test('it sees its own usage, and what it may spend itself', async () => {
  const { key: owner } = await spine.tenant('sees-own', '1');
  const limited = await make(owner, { limit: 0.25 });
  const large = await make(owner, { limit: 5 });
  const ofService = await make(owner, { allowed_services: ['test/model'] });
  expect(await seenBy(limited)).toEqual({ used: 0, left: 250_000, balance: 250_000 });
  await callWith(owner);
  const { used } = await seenBy(owner);
  expect(used).toBeGreaterThan(0);
  // What other keys spent is not its own, and no key has more than the account.
  expect(await seenBy(limited)).toEqual({ used: 0, left: 250_000, balance: 250_000 });
  for (const key of [large, ofService])
    expect(await seenBy(key)).toEqual({ used: 0, left: 1_000_000 - used, balance: 1_000_000 - used });
  await callWith(limited);
  const own = await seenBy(limited);
  expect(own).toEqual({ used, left: 250_000 - used, balance: 250_000 - used });
  expect(await seenBy(owner)).toEqual({ used: 2 * used, left: 1_000_000 - 2 * used, balance: 1_000_000 - 2 * used });
});
