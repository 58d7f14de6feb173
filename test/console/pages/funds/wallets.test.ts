import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { encodeEnvelope, evmWallet, presign, signInHeaders, type TestWallet } from '../../../support/wallets.ts';
import { bearer, openFundsWorld, type Body, type FundsWorld } from './funds-world.ts';

// Wallets of accounts that are none themselves, and what is sent by a plain transfer, against a real chain.

let world: FundsWorld;
beforeAll(async () => {
  world = await openFundsWorld({ payments: 'address_cooldown_s = 3600', chain: 'withdrawal_min = 0.1' });
});
afterAll(async () => {
  expect(await world.spine.faults()).toEqual([]);
  await world.stop();
});

interface List {
  readonly data: readonly Body['data'][];
}

const bind = (key: string, sign_in: string) =>
  world.call('POST', '/wallets', { headers: bearer(key), body: { sign_in } });
const envelope = async (wallet: TestWallet, fields: object = {}) =>
  encodeEnvelope(await presign(wallet, { nonce: await world.nonce(), ...fields }));
const balanceOf = async (account: string) => (await world.spine.app.ledger.balance(escrowOf(account)))?.available ?? 0n;
const suspended = async () => (await world.admin<List>('GET', '/deposits')).body.data;

test('a wallet is bound by its signature, and told with when it is paid', async () => {
  const { key } = await world.spine.tenant('binder', '0');
  const wallet = evmWallet();
  const { status, body } = await bind(key, await envelope(wallet));
  expect([status, body.data['address']]).toEqual([201, wallet.address]);
  const [from, at] = [Date.parse(body.data['paid_from'] as string), Date.parse(body.data['bound_at'] as string)];
  expect(from - at).toBe(3_600_000);
  expect((await world.call<List>('GET', '/wallets', { headers: bearer(key) })).body.data).toEqual([body.data]);

  const early = await world.call('POST', '/withdrawals', {
    headers: bearer(key),
    body: { network: world.network, amount_usd: 1, source: 'balance' },
  });
  expect(early).toMatchObject({
    status: 403,
    body: { error: { param: 'address', message: expect.stringContaining(body.data['paid_from'] as string) } },
  });
  const elsewhere = { network: world.network, amount_usd: 1, source: 'balance', address: evmWallet().address };
  expect(await world.call('POST', '/withdrawals', { headers: bearer(key), body: elsewhere })).toMatchObject({
    status: 400,
    body: { error: { message: expect.stringContaining(wallet.address) } },
  });

  const other = await world.spine.tenant('thief', '0');
  expect(await bind(other.key, await envelope(wallet))).toMatchObject({
    status: 422,
    body: { error: { message: expect.stringContaining('another account') } },
  });
  const path = `/wallets/${encodeURIComponent(`${world.network}:${wallet.address}`)}`;
  expect((await world.call('DELETE', path, { headers: bearer(other.key) })).status).toBe(404);
  expect((await world.call('DELETE', path, { headers: bearer(key) })).body.data).toMatchObject({ deleted: true });
  expect((await bind(other.key, await envelope(wallet))).status).toBe(201);
});

describe('nothing is bound', () => {
  test.each([
    ['without a nonce of the gateway', (wallet: TestWallet) => presign(wallet).then(encodeEnvelope), 'nonce'],
    [
      'with a nonce of its own',
      (wallet: TestWallet) => presign(wallet, { nonce: 'abcdefgh12345678' }).then(encodeEnvelope),
      'nonce',
    ],
    [
      'for another domain',
      async (wallet: TestWallet) => envelope(wallet, { domain: 'elsewhere.test' }),
      'elsewhere.test',
    ],
    [
      'that another wallet signed',
      async (wallet: TestWallet) =>
        encodeEnvelope({ ...(await presign(evmWallet(), { nonce: await world.nonce(), address: wallet.address })) }),
      'signed by',
    ],
    ['of what is no envelope', async () => '!', 'base64'],
  ])('%s', async (_what, made, says) => {
    const { key } = await world.spine.tenant(
      `refused-${says.replace(/\W/g, '')}-${Math.random().toString(36).slice(2, 8)}`,
      '0',
    );
    expect(await bind(key, await made(evmWallet()))).toMatchObject({
      status: 400,
      body: { error: { param: 'sign_in', message: expect.stringContaining(says) } },
    });
    expect((await world.call<List>('GET', '/wallets', { headers: bearer(key) })).body.data).toEqual([]);
  });

  test('with the same signature twice', async () => {
    const { key } = await world.spine.tenant('twice', '0');
    const wallet = evmWallet();
    const value = await envelope(wallet);
    await bind(key, value);
    await world.call('DELETE', `/wallets/${wallet.account}`, { headers: bearer(key) });
    expect(await bind(key, value)).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringContaining('used before') } },
    });
  });

  test('to a wallet, or by a key with a limit', async () => {
    const wallet = evmWallet();
    const asWallet = await world.call('POST', '/wallets', {
      headers: await signInHeaders(wallet),
      body: { sign_in: await envelope(evmWallet()) },
    });
    expect(asWallet).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringContaining('This account belongs to the wallet') } },
    });
    const { key } = await world.spine.tenant('small', '0', { limit: 1n });
    expect((await bind(key, await envelope(wallet))).status).toBe(403);
  });
});

describe('a refused request does not use up the signature of the wallet', () => {
  test('for the removal of a wallet that is not bound', async () => {
    const headers = await world.fresh(evmWallet());
    const path = `/wallets/${encodeURIComponent(evmWallet().accountId)}`;
    expect((await world.call('DELETE', path, { headers })).status).toBe(404);
    expect((await world.call('DELETE', '/wallets/none', { headers })).status).toBe(404);
    const label = { label: 'After the refusals' };
    expect((await world.call('POST', '/organisations', { headers, body: label })).status).toBe(201);
    expect((await world.call('POST', '/organisations', { headers, body: label })).status).toBe(401);
  });

  test('for a wallet that cannot be bound: neither that of the owner nor that of the wallet', async () => {
    const owner = evmWallet();
    const made = await world.call('POST', '/organisations', {
      headers: await world.fresh(owner),
      body: { label: 'Wallets' },
    });
    const acting = { ...(await world.fresh(owner)), 'x-tollgate-account': String(made.body.data['account']) };
    const asOwner = (sign_in: string) => world.call('POST', '/wallets', { headers: acting, body: { sign_in } });
    expect(await asOwner('!')).toMatchObject({ status: 400, body: { error: { param: 'sign_in' } } });

    const wallet = evmWallet();
    const { key } = await world.spine.tenant('before', '0');
    expect((await bind(key, await envelope(wallet))).status).toBe(201);
    const value = await envelope(wallet);
    expect((await asOwner(value)).status).toBe(422);
    await world.call('DELETE', `/wallets/${wallet.account}`, { headers: bearer(key) });
    expect((await asOwner(value)).status).toBe(201);
    expect((await asOwner(await envelope(evmWallet()))).status).toBe(401);
  });
});

describe('what is sent by a plain transfer', () => {
  test('is credited to the account that the wallet is bound to', async () => {
    const { key, account } = await world.spine.tenant('sender', '0');
    const wallet = await world.wallet();
    await bind(key, await envelope(wallet));
    await world.token.transfer(wallet.signer, world.treasury, 3_000_000n);
    await world.until(
      () => balanceOf(account),
      (available) => available === 3_000_000n,
    );
    // The deposit is told as final in a step after its credit.
    const { data } = await world.until(
      async () => (await world.call<List>('GET', '/deposits', { headers: bearer(key) })).body,
      ({ data: [first] }) => first?.status === 'final',
    );
    expect(data).toMatchObject([{ payer: wallet.address, credited_micro_usdc: 3_000_000, account }]);
  });

  test('waits in suspense where the wallet is not known, until the wallet claims it', async () => {
    const wallet = await world.wallet();
    await world.token.transfer(wallet.signer, world.treasury, 2_000_000n);
    await world.until(suspended, (list) => list.some(({ payer }) => payer === wallet.address));
    const stranger = evmWallet();
    const claim = async (by: TestWallet) =>
      (await world.call<List>('POST', '/deposits/claim', { headers: await signInHeaders(by) })).body.data;
    expect(await claim(stranger)).toEqual([]);
    expect(await claim(wallet)).toMatchObject([{ payer: wallet.address, credited_usd: '2' }]);
    expect(await claim(wallet)).toEqual([]);
    expect(await balanceOf(wallet.account)).toBe(2_000_000n);
    // From then on it is known.
    await world.token.transfer(wallet.signer, world.treasury, 1_000_000n);
    await world.until(
      () => balanceOf(wallet.account),
      (available) => available === 3_000_000n,
    );
  });

  test('is given by the operator to whom it belongs, once', async () => {
    const { account, key } = await world.spine.tenant('given', '0');
    const wallet = await world.wallet();
    await world.token.transfer(wallet.signer, world.treasury, 4_000_000n);
    const list = await world.until(suspended, (entries) => entries.some(({ payer }) => payer === wallet.address));
    const { id } = list.find(({ payer }) => payer === wallet.address)!;
    const path = `/deposits/${encodeURIComponent(id)}/attribute`;
    expect(await world.admin('POST', path, { account: 'tollgate:local:nobody' })).toMatchObject({
      status: 400,
      body: { error: { param: 'account' } },
    });
    await world.admin('POST', '/accounts', { account });
    expect((await world.call('GET', `/deposits/${encodeURIComponent(id)}`, { headers: bearer(key) })).status).toBe(404);
    expect(await world.admin('POST', path, { account })).toMatchObject({
      status: 200,
      body: { data: { account, credited_usd: '4' } },
    });
    expect((await world.admin('POST', path, { account })).status).toBe(404);
    expect(await balanceOf(account)).toBe(4_000_000n);
  });
});
