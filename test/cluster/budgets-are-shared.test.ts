import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { escrowOf, treasuryOf } from '#billing';
import { awayFromMidnight } from '../support/away-from-midnight.ts';
import { startCluster, type Cluster } from '../support/cluster.ts';
import { modelBlock, UNHURRIED, type Spine } from '../support/spine.ts';

// Whatever bounds the spending of an account that has more money holds for both gateways together, to the last call
// that it affords.

/** Prompts are free, and all tokens that are locked come: what a call locks is what it costs. */
const TOKENS = 50;
const COST = 2 * TOKENS;
const [AFFORDED, ATTEMPTS] = process.env['TOLLGATE_DEEP'] === '1' ? [400, 4_000] : [15, 60];
/** One micro-USD too little for one more. */
const LIMIT = AFFORDED * COST + COST - 1;

let cluster: Cluster<Spine>;
let one: Spine;
let two: Spine;
beforeAll(async () => {
  // What a month allows is asked for.
  await awayFromMidnight();
  cluster = await startCluster({
    postgresUrl: inject('postgresUrl'),
    size: 2,
    toml: UNHURRIED + modelBlock({ name: 'flat/model', provider: 'Flat', url: '{provider}', prompt: 0 }),
  });
  [one, two] = cluster.gateways as [Spine, Spine];
});
afterAll(() => cluster?.stop());
afterEach(async () => {
  expect(await one.faults()).toEqual([]);
});

async function call(gateway: Spine, key: string, method: string, path: string, body?: object, more: object = {}) {
  const response = await fetch(`${gateway.origin}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...more },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, text };
}

/** Calls with these keys at both gateways at once, in streams and in one piece. How many ended with which status. */
async function crowd(keys: readonly string[]): Promise<Record<number, number>> {
  const statuses: Record<number, number> = {};
  await Promise.all(
    Array.from({ length: ATTEMPTS }, async (_, index) => {
      const { status } = await call(
        index % 2 === 0 ? one : two,
        keys[(index >> 1) % keys.length]!,
        'POST',
        '/api/v1/chat/completions',
        {
          model: 'flat/model',
          messages: [{ role: 'user', content: `!tokens:${TOKENS} !head-delay:${(index % 5) * 10}` }],
          max_tokens: TOKENS,
          stream: index % 3 === 0,
        },
      );
      statuses[status] = (statuses[status] ?? 0) + 1;
    }),
  );
  return statuses;
}

/** A second crowd finds nothing left, and what was paid is what the limit affords. */
async function expectSpent(keys: readonly string[], payer: string, before: bigint): Promise<void> {
  expect(await crowd(keys)).toEqual({ 200: AFFORDED, 402: ATTEMPTS - AFFORDED });
  await one.quiet();
  expect(await crowd(keys)).toEqual({ 402: ATTEMPTS });
  await one.quiet();
  const left = await two.app.ledger.balance(escrowOf(payer));
  expect(left).toEqual({ available: before - BigInt(AFFORDED * COST), locked: 0n });
}

const FUNDS = 10_000_000n;

describe('what both gateways spend at once is within', () => {
  test('the limit of a key', async () => {
    const { account, key } = await one.tenant('key-limit', '10', { limit: BigInt(LIMIT) });
    await expectSpent([key], account, FUNDS);
  });

  test('the budget of an account, over keys that were made at both', async () => {
    const { account, key } = await one.tenant('own-budget', '10');
    const second = (await two.app.keys.create({ account, label: 'second', kind: 'live' }))!.text;
    const limits = { budgets: [{ limit: LIMIT / 1e6, limit_reset: 'monthly' }] };
    expect(await call(one, key, 'PATCH', '/api/v1/limits', limits)).toMatchObject({ status: 200 });
    await expectSpent([key, second], account, FUNDS);
  });

  test('the budget that the operator set at the other', async () => {
    const { account, key } = await one.tenant('set-budget', '10');
    const path = `/admin/v1/accounts/${encodeURIComponent(account)}/limits`;
    const limits = { budgets: [{ limit: LIMIT / 1e6 }] };
    expect(await call(two, two.adminKey, 'PATCH', path, limits)).toMatchObject({ status: 200 });
    await expectSpent([key], account, FUNDS);
  });

  test('the budget of a member of an organisation, over the keys of the member', async () => {
    const [owner, member] = [await one.tenant('owner', '0'), await one.tenant('member', '0')];
    const made = await call(one, owner.key, 'POST', '/api/v1/organisations', { label: 'Acme', name: 'Olga' });
    const { account } = (JSON.parse(made.text) as { data: { account: string } }).data;
    const [from, to] = [treasuryOf('operator'), escrowOf(account)];
    await one.app.ledger.transfer({ id: 'fund-acme', from, to, amount: FUNDS, memo: '' });
    const acting = { 'x-tollgate-account': account };
    const added = { account: member.account, role: 'member', name: 'Max' };
    expect(await call(one, owner.key, 'POST', '/api/v1/members', added, acting)).toMatchObject({ status: 201 });
    const keys: string[] = [];
    for (const gateway of [one, two]) {
      const { text } = await call(gateway, member.key, 'POST', '/api/v1/keys', { name: 'robot' }, acting);
      keys.push((JSON.parse(text) as { key: string }).key);
    }
    const path = `/api/v1/members/${encodeURIComponent(member.account)}`;
    const budgets = [{ limit: LIMIT / 1e6, limit_reset: 'monthly' }];
    expect(await call(two, owner.key, 'PATCH', path, { budgets }, acting)).toMatchObject({ status: 200 });
    await expectSpent(keys, account, FUNDS);
  });
});
