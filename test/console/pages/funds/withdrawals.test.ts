import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { earningsOf, escrowOf, treasuryOf } from '#billing';
import { signInHeaders, solanaWallet } from '../../../support/wallets.ts';
import { carryOutCall } from '../../../support/chain/evm-token.ts';
import { bearer, openFundsWorld, termsOf, type Body, type FundsWorld } from './funds-world.ts';

// The way of money out, against a real chain: who may ask for it, where it goes, and that it goes once.

let world: FundsWorld;
beforeAll(async () => {
  world = await openFundsWorld({
    chain: 'withdrawal_min = 0.1\nwithdrawal_daily_max = 6',
    payments: 'address_cooldown_s = 0\ncompare_ms = 86400000',
  });
});
afterAll(async () => {
  expect(await world.spine.faults()).toEqual([]);
  await world.stop();
});

const UNFINAL = {
  name: 'test/unfinal',
  text: "INSERT INTO deposits (id, network, account, payer, amount, state, credited, created_at, updated_at, looks) VALUES ('unfinal', 'none', $1, '', 1, 'credited', 1, 0, 0, 0)",
};
const FINAL = { name: 'test/final', text: "DELETE FROM deposits WHERE account = $1 AND id = 'unfinal'" };

const withdraw = (headers: Record<string, string>, body: object = {}) =>
  world.call('POST', '/withdrawals', {
    headers,
    body: { network: world.network, amount_usd: 1, source: 'balance', ...body },
  });

/** A wallet that has paid this much in. */
async function funded(usd = '5') {
  const wallet = await world.wallet();
  const headers = await signInHeaders(wallet);
  const terms = termsOf((await world.call('POST', '/topup', { headers, body: { amount_usd: usd } })).headers);
  const paid = await world.call('POST', '/topup', {
    headers: { ...headers, ...(await world.pay(wallet.signer, terms)) },
    body: { amount_usd: usd },
  });
  expect(paid.status).toBe(200);
  return { ...wallet, headers };
}

const paidOut = (id: string, headers: Record<string, string>) =>
  world.until(
    async () => (await world.call('GET', `/withdrawals/${id}`, { headers })).body.data,
    ({ status }) => status === 'paid',
  );

describe('a wallet', () => {
  test('gets its balance back, with a nonce of the gateway that is used up', async () => {
    const wallet = await funded();
    const before = await world.token.balanceOf(wallet.signer.address);
    const headers = await world.fresh(wallet);
    const asked = await withdraw(headers, { amount_usd: '2.5' });
    expect(asked).toMatchObject({
      status: 201,
      body: {
        data: {
          status: 'pending',
          network: world.network,
          address: wallet.address,
          source: 'balance',
          amount_micro_usdc: 2_500_000,
          submit: 'gateway',
          authorization: null,
        },
      },
    });
    expect(await withdraw(headers)).toMatchObject({
      status: 401,
      body: { error: { message: expect.stringContaining('was used before') } },
    });
    expect(await paidOut(asked.body.data.id, wallet.headers)).toMatchObject({
      transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
    });
    expect(await world.token.balanceOf(wallet.signer.address)).toBe(before + 2_500_000n);
    expect((await world.call('GET', '/session/balance', { headers: wallet.headers })).body).toMatchObject({
      balance_usd: '2.5',
    });
  });

  test('needs such a nonce', async () => {
    const wallet = await funded();
    expect(await withdraw(wallet.headers)).toMatchObject({
      status: 401,
      body: { error: { message: expect.stringContaining('nonce') } },
    });
  });

  test('is paid itself and nobody else', async () => {
    const [wallet, other] = [await funded(), await world.wallet()];
    expect(await withdraw(await world.fresh(wallet), { address: other.address })).toMatchObject({
      status: 400,
      body: { error: { param: 'address', message: expect.stringContaining(wallet.address) } },
    });
  });

  test('of another family of chains has nowhere to go here', async () => {
    const wallet = solanaWallet();
    expect(await withdraw(await world.fresh(wallet))).toMatchObject({
      status: 400,
      body: { error: { param: 'network' } },
    });
  });

  test('withdraws once for each idempotency key', async () => {
    const wallet = await funded();
    const asked = async (key: string, body = {}) =>
      withdraw({ ...(await world.fresh(wallet)), 'idempotency-key': key }, body);
    const [first, again] = [await asked('a'), await asked('a')];
    expect([first.status, again.status]).toEqual([201, 201]);
    expect(again.body.data.id).toBe(first.body.data.id);
    expect(await asked('a', { amount_usd: 2 })).toMatchObject({
      status: 409,
      body: { error: { type: 'idempotency_conflict' } },
    });
    const other = await asked('b');
    expect(other.body.data.id).not.toBe(first.body.data.id);
    const { body } = await world.call<{ data: Body['data'][]; next: string | null }>('GET', '/withdrawals?limit=1', {
      headers: wallet.headers,
    });
    const rest = await world.call<{ data: Body['data'][]; next: string | null }>(
      'GET',
      `/withdrawals?limit=1&before=${body.next}`,
      {
        headers: wallet.headers,
      },
    );
    expect([...body.data, ...rest.body.data].map(({ id }) => id)).toEqual([other.body.data.id, first.body.data.id]);
  });

  test('is refused what it has not, too little and too much', async () => {
    const wallet = await funded();
    const asked = async (body: object) => withdraw(await world.fresh(wallet), body);
    expect(await asked({ amount_usd: '5.000001' })).toMatchObject({
      status: 402,
      body: { error: { type: 'insufficient_balance' } },
    });
    expect(await asked({ amount_usd: '0.05' })).toMatchObject({
      status: 400,
      body: { error: { param: 'amount_usd', message: expect.stringContaining('0.1') } },
    });
    const daily = await asked({ amount_usd: 7 });
    expect(daily).toMatchObject({ status: 429, body: { error: { type: 'rate_limit_exceeded' } } });
    expect(daily.headers.get('retry-after')).not.toBeNull();
    expect(await asked({ network: 'eip155:1' })).toMatchObject({
      status: 400,
      body: { error: { param: 'network', message: expect.stringContaining(world.network) } },
    });
    expect(await asked({ source: 'fees' })).toMatchObject({ status: 400, body: { error: { param: 'source' } } });
    expect((await world.call('GET', '/session/balance', { headers: wallet.headers })).body).toMatchObject({
      balance_usd: '5',
    });
  });

  test('may submit the authorization itself', async () => {
    const wallet = await funded();
    const before = await world.token.balanceOf(wallet.signer.address);
    const { body } = await withdraw(await world.fresh(wallet), { submit: 'self' });
    const signed = await world.until(
      async () => (await world.call('GET', `/withdrawals/${body.data.id}`, { headers: wallet.headers })).body.data,
      ({ authorization }) => authorization !== null,
    );
    expect(signed).toMatchObject({
      status: 'processing',
      submit: 'self',
      authorization: { to: wallet.address, value: '1000000' },
    });
    expect(await world.token.balanceOf(wallet.signer.address)).toBe(before);
    const authorization = signed['authorization'] as Record<string, string>;
    await world.token.batch([
      { target: world.token.address, data: carryOutCall(authorization, authorization['signature'] as `0x${string}`) },
    ]);
    await paidOut(body.data.id, wallet.headers);
    expect(await world.token.balanceOf(wallet.signer.address)).toBe(before + 1_000_000n);
  });

  test('sees of others as little as of what does not exist', async () => {
    const [owner, stranger] = [await funded(), await world.wallet()];
    const { id } = (await withdraw(await world.fresh(owner))).body.data;
    const headers = await signInHeaders(stranger);
    for (const path of [`/withdrawals/${id}`, '/withdrawals/nothing'])
      expect(await world.call('GET', path, { headers })).toMatchObject({
        status: 404,
        body: { error: { message: 'Withdrawal not found' } },
      });
    expect((await world.call('POST', `/withdrawals/${id}/cancel`, { headers })).status).toBe(404);
  });

  test('cancels what is not signed, and what is signed no more', async () => {
    const wallet = await funded();
    const { id } = (await withdraw(await world.fresh(wallet))).body.data;
    await paidOut(id, wallet.headers);
    expect(await world.call('POST', `/withdrawals/${id}/cancel`, { headers: wallet.headers })).toMatchObject({
      status: 422,
      body: { error: { type: 'unprocessable' } },
    });

    // What its chain may still undo keeps the money here.
    const { database } = world.spine.app;
    await database.query(UNFINAL, [wallet.account]);
    const kept = (await withdraw(await world.fresh(wallet))).body.data;
    const canceled = await world.call('POST', `/withdrawals/${kept.id}/cancel`, { headers: wallet.headers });
    expect(canceled).toMatchObject({ status: 200, body: { data: { status: 'canceled' } } });
    expect((await world.call('GET', '/session/balance', { headers: wallet.headers })).body).toMatchObject({
      balance_usd: '4',
    });
    await database.query(FINAL, [wallet.account]);
  });

  test('waits while the operator has something to look at', async () => {
    const wallet = await funded();
    const { database } = world.spine.app;
    await database.query({ name: 'test/halt', text: "UPDATE chains SET halted = 'a test'" });
    expect(await withdraw(await world.fresh(wallet))).toMatchObject({
      status: 503,
      body: { error: { message: expect.stringContaining('stopped') } },
    });
    await database.query({ name: 'test/go-on', text: 'UPDATE chains SET halted = NULL' });
  });
});

test('a provider withdraws what it earned', async () => {
  const provider = await world.wallet();
  const { ledger } = world.spine.app;
  // As if consumers had paid it for calls, with money that came in.
  const payer = await funded();
  await ledger.transfer({
    id: 'test-earned',
    from: escrowOf(payer.account),
    to: earningsOf(provider.providerId),
    amount: 3_000_000n,
    memo: '',
  });
  expect(await withdraw(await world.fresh(provider), { amount_usd: 1 })).toMatchObject({ status: 402 });
  const asked = await withdraw(await world.fresh(provider), { source: 'earnings', amount_usd: 3 });
  expect(asked).toMatchObject({ status: 201, body: { data: { source: 'earnings', address: provider.address } } });
  const before = 100_000_000n;
  await paidOut(asked.body.data.id, await signInHeaders(provider));
  expect(await world.token.balanceOf(provider.signer.address)).toBe(before + 3_000_000n);
});

describe('an account that the operator has frozen', () => {
  const become = async (account: string, state: 'freeze' | 'unfreeze') => {
    const path = `/accounts/${encodeURIComponent(account)}/${state}`;
    expect(await world.admin('POST', path, { reason: 'a test' })).toMatchObject({ status: 200 });
  };
  const REFUSED = {
    status: 403,
    body: {
      error: { type: 'permission_denied', message: expect.stringContaining('frozen by the operator') as string },
    },
  };

  test('withdraws nothing, neither its balance nor its earnings, and gets back what was not signed yet', async () => {
    const wallet = await funded();
    const { database, ledger } = world.spine.app;
    const earned = { id: 'frozen-earned', from: escrowOf(wallet.account), to: earningsOf(wallet.providerId) };
    await ledger.transfer({ ...earned, amount: 2_000_000n, memo: '' });
    // What its chain may still undo keeps the money here.
    await database.query(UNFINAL, [wallet.account]);
    const kept = (await withdraw(await world.fresh(wallet))).body.data;
    await become(wallet.account, 'freeze');
    for (const source of ['balance', 'earnings'])
      expect(await withdraw(await world.fresh(wallet), { source })).toMatchObject(REFUSED);
    await database.query(FINAL, [wallet.account]);
    const { headers } = wallet;
    const given = await world.until(
      async () => (await world.call('GET', `/withdrawals/${kept.id}`, { headers })).body.data,
      ({ status }) => status !== 'pending',
    );
    expect(given).toMatchObject({ status: 'returned' });
    const shown = await world.until(
      async () => (await world.call('GET', '/session/balance', { headers })).body as unknown as { balance_usd: string },
      ({ balance_usd: usd }) => usd === '3',
    );
    expect(shown.balance_usd).toBe('3');
    // Deposits arrive.
    const terms = termsOf((await world.call('POST', '/topup', { headers, body: { amount_usd: '1' } })).headers);
    const paid = { ...headers, ...(await world.pay(wallet.signer, terms)) };
    expect((await world.call('POST', '/topup', { headers: paid, body: { amount_usd: '1' } })).status).toBe(200);
    expect((await world.call('GET', '/session/balance', { headers })).body).toMatchObject({ balance_usd: '4' });

    await become(wallet.account, 'unfreeze');
    const before = await world.token.balanceOf(wallet.signer.address);
    const again = await withdraw(await world.fresh(wallet), { source: 'earnings', amount_usd: 2 });
    expect(again.status).toBe(201);
    await paidOut(again.body.data.id, headers);
    expect(await world.token.balanceOf(wallet.signer.address)).toBe(before + 2_000_000n);
    expect(await world.spine.faults()).toEqual([]);
  });

  test('of a provider that is only banned, earnings are withdrawn as before', async () => {
    const wallet = await funded();
    const earned = { id: 'banned-earned', from: escrowOf(wallet.account), to: earningsOf(wallet.providerId) };
    await world.spine.app.ledger.transfer({ ...earned, amount: 2_000_000n, memo: '' });
    expect(await world.admin('POST', `/providers/${wallet.providerId}/ban`, { reason: 'a test' })).toMatchObject({
      status: 200,
    });
    const asked = await withdraw(await world.fresh(wallet), { source: 'earnings', amount_usd: 1 });
    await paidOut(asked.body.data.id, wallet.headers);
    // An operator who does not want that freezes the account as well.
    await become(wallet.account, 'freeze');
    expect(await withdraw(await world.fresh(wallet), { source: 'earnings' })).toMatchObject(REFUSED);
    expect(await world.spine.faults()).toEqual([]);
  });

  test('is paid nothing that was asked for at the moment of the freeze', async () => {
    const wallets = await Promise.all([1, 2, 3].map(async () => funded('1')));
    const fresh = await Promise.all(wallets.map(async (wallet) => world.fresh(wallet)));
    const answers = await Promise.all(
      wallets.map(async (wallet, index) => {
        const [asked] = await Promise.all([withdraw(fresh[index]!), become(wallet.account, 'freeze')]);
        return asked;
      }),
    );
    for (const [index, { headers, account }] of wallets.entries()) {
      const { status, body } = answers[index]!;
      expect([201, 403]).toContain(status);
      if (status === 201) {
        const { status: end } = await world.until(
          async () => (await world.call('GET', `/withdrawals/${body.data.id}`, { headers })).body.data,
          (data) => ['paid', 'canceled', 'returned', 'refused'].includes(String(data['status'])),
        );
        const left = await world.spine.app.ledger.balance(escrowOf(account));
        expect(left?.available).toBe(end === 'paid' ? 0n : 1_000_000n);
      }
    }
    expect(await world.spine.faults()).toEqual([]);
  });
});

describe('an API key', () => {
  test('without a bound wallet has nowhere to go', async () => {
    expect(await withdraw(bearer(world.spine.key))).toMatchObject({
      status: 400,
      body: { error: { param: 'address', message: expect.stringContaining('/api/v1/wallets') } },
    });
  });

  test.each([
    ['a spending limit', { limit: 1_000_000n }],
    ['an expiry', { expiresAt: Date.now() + 3_600_000 }],
    ['a list of services', { allowedServices: ['test/model'] }],
  ])('with %s may not', async (_what, fields) => {
    const { key } = await world.spine.tenant(`limited-${Object.keys(fields)[0]!.toLowerCase()}`, '0', fields);
    const refused = { status: 403, body: { error: { type: 'permission_denied' } } };
    expect(await withdraw(bearer(key))).toMatchObject(refused);
    // Nor does it see who pays in.
    for (const [method, path] of [
      ['GET', '/withdrawals'],
      ['GET', '/deposits'],
      ['GET', '/deposits/x'],
      ['POST', '/deposits/claim'],
    ] as const)
      expect(await world.call(method, path, { headers: bearer(key) }), path).toMatchObject(refused);
  });

  test('of a wallet pays that wallet', async () => {
    const wallet = await funded();
    const made = await world.call<{ key: string }>('POST', '/keys', { headers: await world.fresh(wallet), body: {} });
    const asked = await withdraw(bearer(made.body.key));
    expect(asked).toMatchObject({ status: 201, body: { data: { address: wallet.address } } });
  });
});

test('the operator withdraws fees, and no more than there are', async () => {
  const { ledger } = world.spine.app;
  const [payer, vault] = [await funded(), await world.wallet(0n)];
  await ledger.transfer({ id: 'test-fees', from: escrowOf(payer.account), to: 'fees', amount: 2_000_000n, memo: '' });
  const ask = (body: object, key = 'fees-1') =>
    world.call('POST', '/../../admin/v1/withdrawals', {
      headers: { ...bearer(world.spine.adminKey), 'idempotency-key': key },
      body: { network: world.network, address: vault.address, amount_usd: 2, ...body },
    });
  expect(await ask({ amount_usd: 3 }, 'too-much')).toMatchObject({ status: 402 });
  expect(await ask({ address: world.treasury }, 'elsewhere')).toMatchObject({
    status: 400,
    body: { error: { param: 'address' } },
  });
  const asked = await ask({});
  expect(asked).toMatchObject({ status: 201, body: { data: { source: 'fees', address: vault.address } } });
  await world.until(
    () => world.token.balanceOf(vault.signer.address),
    (held) => held === 2_000_000n,
  );
  // A chain took back what was spent: a repeat is still the withdrawal that was made, and another one is refused.
  const [losses, escrow] = [treasuryOf('losses'), escrowOf(payer.account)];
  await ledger.transfer({ id: 'test-lost', from: losses, to: escrow, amount: 1_000_000n, memo: '' });
  expect(await ask({})).toMatchObject({ status: 201, body: { data: { id: asked.body.data.id } } });
  expect(await ask({ amount_usd: 1 }, 'fees-2')).toMatchObject({ status: 422 });
  await ledger.transfer({ id: 'test-good', from: escrow, to: losses, amount: 1_000_000n, memo: '' });
  const list = await world.admin<{ data: Body['data'][] }>('GET', '/withdrawals');
  expect(
    list.body.data.map(({ amount_micro_usdc, status }) => [amount_micro_usdc, status !== 'refused']),
  ).toContainEqual([2_000_000, true]);
  expect(await ledger.balance(treasuryOf('operator'))).toBeNull();
});
