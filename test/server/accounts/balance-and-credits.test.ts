import { describe, expect, it } from 'vitest';
import { escrowOf, treasuryOf } from '#billing';
import { accountTotals } from '#billing/compose';
import { openWorld } from './gateway-world.ts';

describe('balance and credits', () => {
  it('are 0 for an account that was never funded', async () => {
    const { call, tenant } = await openWorld();
    const { key, account } = await tenant('poor', 0n);
    expect((await call(key, 'GET', '/api/v1/session/balance')).body).toEqual({
      caip_account_id: account,
      balance_micro_usdc: 0,
      balance_usd: '0',
      locked_micro_usdc: 0,
    });
    expect((await call(key, 'GET', '/api/v1/credits')).body).toEqual({ data: { total_credits: 0, total_usage: 0 } });
  });

  it('count a withdrawal that was given back as none', async () => {
    const { tenant, ledger, database } = await openWorld();
    const { account } = await tenant('back', 100n);
    const [own, outside] = [escrowOf(account), treasuryOf('test')];
    for (const [id, from, to, amount] of [
      ['withdrawal:one', own, outside, 30n],
      ['withdrawal:two', own, outside, 20n],
      ['withdrawal-back:two', outside, own, 20n],
    ] as const)
      await ledger.transfer({ id, from, to, amount, memo: '' });
    expect(await accountTotals(database, account)).toMatchObject({ credits: 70n, movements: { withdrawn: 30n } });
  });

  it('follow deposits, locks, charges and withdrawals to the micro-USD', async () => {
    const { call, tenant, ledger, price, clock } = await openWorld();
    const { key, account } = await tenant('rich', 10_000_001n);
    const figures = async () => {
      const balance = (
        await call<{ balance_micro_usdc: number; balance_usd: string }>(key, 'GET', '/api/v1/session/balance')
      ).body;
      const credits = (
        await call<{ data: { total_credits: number; total_usage: number } }>(key, 'GET', '/api/v1/credits')
      ).body.data;
      return [balance.balance_micro_usdc, balance.balance_usd, credits.total_credits, credits.total_usage];
    };
    expect(await figures()).toEqual([10_000_001, '10.000001', 10.000001, 0]);

    const lock = { account, amount: 3_000_000n, prices: [price], expiresAt: clock.now + 1_000, detail: '{}' };
    await ledger.lock({ ...lock, id: 'gen-1' });
    await ledger.lock({ ...lock, id: 'gen-2' });
    expect(await figures()).toEqual([4_000_001, '4.000001', 10.000001, 0]);

    await ledger.settle({
      id: 'gen-1',
      price,
      provider: 'provider',
      charge: 123n,
      draw: false,
      feeBps: 1_000,
      usage: '{}',
      detail: '{}',
    });
    await ledger.release({ id: 'gen-2', detail: '{}' });
    expect(await figures()).toEqual([9_999_878, '9.999878', 10.000001, 0.000123]);

    await ledger.transfer({ id: 'more', from: treasuryOf('operator'), to: escrowOf(account), amount: 5n, memo: '' });
    await ledger.transfer({
      id: 'out',
      from: escrowOf(account),
      to: treasuryOf('operator'),
      amount: 1_000_000n,
      memo: '',
    });
    expect(await figures()).toEqual([8_999_883, '8.999883', 9.000006, 0.000123]);
  });

  it('carry the rate headers, and end in 429 with Retry-After', async () => {
    const { call, tenant } = await openWorld();
    const { key } = await tenant('busy');
    const first = await call(key, 'GET', '/api/v1/session/balance');
    expect(first.headers.get('x-ratelimit-limit-requests')).toBe('60');
    expect(first.headers.get('x-ratelimit-remaining-requests')).toBe('60');
    for (let round = 0; round < 79; round += 1) await call(key, 'GET', '/api/v1/session/balance');
    const last = await call<{ error: { type: string } }>(key, 'GET', '/api/v1/session/balance');
    expect([last.status, last.body.error.type, last.headers.get('retry-after')]).toEqual([
      429,
      'rate_limit_exceeded',
      '1',
    ]);
    expect(last.headers.get('x-ratelimit-remaining-requests')).toBe('0');
  });
});
