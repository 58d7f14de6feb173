import { describe, expect, it } from 'vitest';
import { openWorld, type ErrorBody } from './gateway-world.ts';

const ACCOUNTS = '/admin/v1/accounts';
const WALLET = '0xAb5801a7D398351b8bE11C439e05C5B3259aeC9B';

type Account = Record<string, unknown> & { readonly id: string };
interface One {
  readonly data: Account;
}
interface Credited {
  readonly data: { readonly account: Account; readonly duplicate: boolean; readonly amount_micro_usdc: number };
}

async function world() {
  const opened = await openWorld();
  const admin = <T>(method: string, path: string, body?: unknown) =>
    opened.call<T>(opened.adminKey, method, path, body);
  return { ...opened, admin };
}

describe('administration', () => {
  it('makes accounts by name and by wallet, once', async () => {
    const { admin } = await world();
    const local = await admin<One>('POST', ACCOUNTS, { name: 'shop', label: 'The Shop' });
    expect(local.status).toBe(201);
    expect(local.body.data).toEqual({
      id: 'tollgate:local:shop',
      caip_account_id: 'tollgate:local:shop',
      label: 'The Shop',
      created_at: '2026-03-04T05:06:07.089Z',
      balance_micro_usdc: 0,
      locked_micro_usdc: 0,
      balance_usd: '0',
      state: 'open',
      state_reason: '',
      state_since: null,
    });
    const again = await admin<One>('POST', ACCOUNTS, { name: 'shop', label: 'Another' });
    expect([again.status, again.body.data['label']]).toEqual([200, 'The Shop']);

    const wallet = await admin<One>('POST', ACCOUNTS, { account: `eip155:1:${WALLET}` });
    expect(wallet.body.data).toMatchObject({
      id: `eip155:${WALLET.toLowerCase()}`,
      caip_account_id: `eip155:8453:${WALLET.toLowerCase()}`,
    });
    expect((await admin('POST', ACCOUNTS, { account: `eip155:8453:${WALLET.toLowerCase()}` })).status).toBe(200);

    const list = await admin<{ data: readonly Account[] }>('GET', ACCOUNTS);
    expect(list.body.data.map(({ id }) => id).toSorted()).toEqual([
      `eip155:${WALLET.toLowerCase()}`,
      'tollgate:local:shop',
    ]);
    expect((await admin<One>('GET', `${ACCOUNTS}/eip155:8453:${WALLET}`)).body.data['id']).toBe(
      `eip155:${WALLET.toLowerCase()}`,
    );
  });

  it('credits an account once for each reference', async () => {
    const { admin, ledger } = await world();
    await admin('POST', ACCOUNTS, { name: 'shop' });
    await admin('POST', ACCOUNTS, { name: 'other' });
    const credit = (body: unknown, name = 'shop') =>
      admin<Credited & ErrorBody>('POST', `${ACCOUNTS}/tollgate:local:${name}/credit`, body);

    const first = await credit({ amount_usd: '12.5', reference: 'invoice 1' });
    expect(first.body.data).toMatchObject({
      duplicate: false,
      amount_micro_usdc: 12_500_000,
      account: { balance_usd: '12.5' },
    });
    const repeated = await Promise.all([
      credit({ amount_usd: 12.5, reference: 'invoice 1' }),
      credit({ amount_micro_usdc: 12_500_000, reference: 'invoice 1' }),
    ]);
    for (const { status, body } of repeated)
      expect([status, body.data.duplicate, body.data.account['balance_usd']]).toEqual([200, true, '12.5']);
    for (const answer of [
      await credit({ amount_usd: 1, reference: 'invoice 1' }),
      await credit({ amount_usd: 12.5, reference: 'invoice 1' }, 'other'),
    ]) {
      expect([answer.status, answer.body.error.type, answer.body.error.param]).toEqual([
        409,
        'idempotency_conflict',
        'reference',
      ]);
    }
    await credit({ amount_micro_usdc: 1, reference: 'invoice 2' });
    expect((await admin<One>('GET', `${ACCOUNTS}/tollgate:local:shop`)).body.data).toMatchObject({
      balance_micro_usdc: 12_500_001,
      total_credits_micro_usdc: 12_500_001,
      total_usage_micro_usdc: 0,
    });
    expect(await ledger.balance('treasury:operator')).toEqual({ available: -12_500_001n, locked: 0n });
  });

  it.each([
    ['eip155:8453:0xAb5801a7D398351b8bE11C439e05C5B3259aeC9B', 'eip155:0xab5801a7d398351b8be11c439e05c5b3259aec9b'],
    [
      'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp:So11111111111111111111111111111111111111112',
      'solana:So11111111111111111111111111111111111111112',
    ],
  ])('credits the wallet %s that was never made an account, and lists it from then on', async (wallet, id) => {
    const { admin } = await world();
    expect((await admin<One>('GET', `${ACCOUNTS}/${wallet}`)).body.data).toMatchObject({
      id,
      balance_usd: '0',
      created_at: null,
    });
    const { status, body } = await admin<Credited>('POST', `${ACCOUNTS}/${wallet}/credit`, {
      amount_usd: 2,
      reference: 'r',
    });
    expect([status, body.data.account]).toMatchObject([200, { id, balance_usd: '2', created_at: expect.any(String) }]);
    expect((await admin<{ data: Account[] }>('GET', ACCOUNTS)).body.data).toMatchObject([{ id, balance_usd: '2' }]);
    expect((await admin('POST', `${ACCOUNTS}/${wallet}/credit`, { amount_usd: 0, reference: 's' })).status).toBe(400);
  });

  it('refuses credits and accounts that cannot be meant', async () => {
    const { admin, ledger, failures } = await world();
    await admin('POST', ACCOUNTS, { name: 'shop' });
    const credits = [
      { reference: 'r' },
      { amount_usd: 1, amount_micro_usdc: 1, reference: 'r' },
      { amount_usd: 1 },
      { amount_usd: 0, reference: 'r' },
      { amount_usd: -1, reference: 'r' },
      { amount_usd: '0.0000001', reference: 'r' },
      { amount_usd: '1e3', reference: 'r' },
      { amount_usd: '2000000000', reference: 'r' },
      { amount_micro_usdc: 1.5, reference: 'r' },
      { amount_micro_usdc: -5, reference: 'r' },
      { amount_micro_usdc: 1e300, reference: 'r' },
      { amount_usd: 1, reference: '' },
    ];
    for (const body of credits) {
      expect([body, (await admin('POST', `${ACCOUNTS}/tollgate:local:shop/credit`, body)).status]).toEqual([body, 400]);
    }
    expect(await ledger.balance('escrow:tollgate:local:shop')).toBeNull();

    const accounts = [
      {},
      { name: 'a', account: 'tollgate:local:a' },
      { name: 'Big Shop' },
      { name: '../x' },
      { account: 'dev' },
      { account: 'treasury:operator' },
    ];
    for (const body of accounts) expect([body, (await admin('POST', ACCOUNTS, body)).status]).toEqual([body, 400]);
    expect(failures).toEqual([]);
  });

  it('makes, lists and deletes the keys of an account', async () => {
    const { admin, call } = await world();
    await admin('POST', ACCOUNTS, { name: 'shop' });
    const keys = `${ACCOUNTS}/tollgate:local:shop/keys`;
    const live = (await admin<{ key: string; data: { hash: string } }>('POST', keys, { name: 'live', limit: 3 })).body;
    const development = (await admin<{ key: string }>('POST', keys, { development: true })).body;
    expect([live.key.slice(0, 10), development.key.slice(0, 11)]).toEqual(['svc-sk-v2-', 'svc-sk-dev-']);
    expect((await call(live.key, 'GET', '/api/v1/session/balance')).body).toMatchObject({
      caip_account_id: 'tollgate:local:shop',
    });
    expect((await admin<{ data: unknown[] }>('GET', keys)).body.data.length).toBe(2);
    expect((await admin('DELETE', `${keys}/${live.data.hash}`)).status).toBe(200);
    expect((await call(live.key, 'GET', '/api/v1/session/balance')).status).toBe(401);
    expect((await admin('DELETE', `${keys}/${live.data.hash}`)).status).toBe(404);
    await admin('POST', ACCOUNTS, { name: 'dev' });
    const played = (await admin<{ key: string }>('POST', `${ACCOUNTS}/tollgate:local:dev/keys`, {})).body;
    expect(played.key.slice(0, 11)).toBe('svc-sk-dev-');
    await admin('POST', ACCOUNTS, { name: 'other' });
    const hash = (await admin<{ data: { hash: string }[] }>('GET', keys)).body.data[0]!.hash;
    expect((await admin('DELETE', `${ACCOUNTS}/tollgate:local:other/keys/${hash}`)).status).toBe(404);
  });

  it('knows accounts that have money without having been made, and no others', async () => {
    const { admin, tenant } = await world();
    await tenant('funded');
    expect((await admin<One>('GET', `${ACCOUNTS}/tollgate:local:funded`)).body.data).toMatchObject({
      balance_usd: '10',
      created_at: null,
    });
    for (const id of ['tollgate:local:nobody', 'nonsense', '%00', 'treasury:operator']) {
      expect((await admin('GET', `${ACCOUNTS}/${id}`)).status).toBe(404);
      expect((await admin('POST', `${ACCOUNTS}/${id}/credit`, { amount_usd: 1, reference: 'r' })).status).toBe(404);
      expect((await admin('POST', `${ACCOUNTS}/${id}/keys`, {})).status).toBe(404);
      expect((await admin('GET', `${ACCOUNTS}/${id}/keys`)).status).toBe(404);
    }
  });

  it('runs the audit', async () => {
    const { admin } = await world();
    expect((await admin('GET', '/admin/v1/audit')).body).toEqual({ data: { clean: true, total: 12 } });
  });

  it('is closed to everybody else, on every route', async () => {
    const { call, tenant, keys } = await world();
    const { key, hash } = await tenant('alice');
    const account = `${ACCOUNTS}/tollgate:local:alice`;
    const routes = [
      ['GET', ACCOUNTS],
      ['POST', ACCOUNTS],
      ['GET', account],
      ['POST', `${account}/credit`],
      ['GET', `${account}/keys`],
      ['POST', `${account}/keys`],
      ['DELETE', `${account}/keys/${hash}`],
      ['GET', '/admin/v1/audit'],
    ] as const;
    for (const credential of [null, key, 'svc-admin-', '']) {
      for (const [method, path] of routes) {
        const answer = await call<ErrorBody>(
          credential,
          method,
          path,
          method === 'POST' ? { name: 'x', amount_usd: 1, reference: 'r' } : undefined,
        );
        expect([method, path, answer.status, answer.body.error.type]).toEqual([method, path, 401, 'unauthorized']);
      }
    }
    expect(await keys.find(hash)).not.toBeNull();
  });
});
