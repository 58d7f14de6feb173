import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createPriceBook } from '#billing/compose';
import { priceId } from '#billing/amounts';
import { createIdentity, createRunTokens } from '#auth';
import { IDENTITY_SEED } from '../../../support/spine.ts';
import { sendRaw } from '../../../support/raw-http.ts';
import { signInHeaders } from '../../../support/wallets.ts';
import { bearer, openFundsWorld, termsOf, type FundsWorld } from './funds-world.ts';
import { readOpenApi } from '../../../support/open-api.ts';

// POST /topup: a 402 whose payment is the whole point, against a real chain.

let world: FundsWorld;
beforeAll(async () => {
  world = await openFundsWorld();
});
afterAll(async () => {
  expect(await world.spine.faults()).toEqual([]);
  expect((await world.spine.app.audit()).ok).toBe(true);
  await world.stop();
});

const topup = (headers: Record<string, string>, body: unknown = { amount_usd: '1.50' }) =>
  world.call('POST', '/topup', { headers, body });

test('says how it can be paid', async () => {
  const { status, headers, body } = await topup(bearer(world.spine.key));
  expect([status, body.error!.type]).toEqual([402, 'insufficient_balance']);
  const terms = termsOf(headers);
  expect(terms).toMatchObject({
    x402Version: 2,
    accepts: [{ scheme: 'exact', network: world.network, amount: '1500000', payTo: world.treasury }],
  });
  expect(body).toMatchObject({ x402Version: 2, accepts: terms.accepts, resource: { url: `${world.spine.url}/topup` } });
});

test('shows no host that may be a stranger’s', async () => {
  const body = '{"amount_usd":"1.50"}';
  const { status, body: answer } = await sendRaw(
    world.spine.origin,
    `POST /api/v1/topup HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  expect([status, JSON.parse(answer)]).toMatchObject([402, { resource: { url: '/api/v1/topup' } }]);
});

test('asks for no less than the minimum of the chain', async () => {
  expect(termsOf((await topup(bearer(world.spine.key), { amount_micro_usdc: 1 })).headers).accepts[0]!.amount).toBe(
    '500000',
  );
});

test.each([
  ['no amount', {}, 'amount_usd'],
  ['two amounts', { amount_usd: 1, amount_micro_usdc: 1 }, 'amount_usd'],
  ['nothing', { amount_usd: 0 }, 'amount_usd'],
  ['an amount that is none', { amount_usd: true }, 'amount_usd'],
  ['an amount finer than money is', { amount_usd: '0.0000001' }, 'amount_usd'],
  ['more than is taken', { amount_usd: '50.000001' }, 'amount_usd'],
  ['more than is taken, otherwise', { amount_micro_usdc: 50_000_001 }, 'amount_micro_usdc'],
])('refuses %s', async (_what, body, param) => {
  expect(await topup(bearer(world.spine.key), body)).toMatchObject({
    status: 400,
    body: { error: { type: 'invalid_request', param } },
  });
});

interface Described {
  readonly paths: Record<
    string,
    { readonly post: { readonly requestBody: { readonly content: Record<string, { readonly schema: BodySchema }> } } }
  >;
}
interface BodySchema {
  readonly properties: Record<string, unknown>;
}

// A gateway without chains says so before it looks at a body.
test.each([
  ['/topup', { amount_usd: 1 }],
  ['/topup/transaction', { network: 'eip155:1', payer: '0x0', amount_usd: 1 }],
  ['/withdrawals', { network: 'eip155:1', source: 'balance', amount_usd: 1 }],
  ['/wallets', { sign_in: 'x' }],
])('a wrong body of %s is told what is wrong', async (path, good) => {
  const { paths } = await readOpenApi<Described>(world.spine.origin);
  const { properties } = paths[`/api/v1${path}`]!.post.requestBody.content['application/json']!.schema;
  const send = (body: object) =>
    world.call('POST', path, { headers: bearer(world.spine.key), body: { ...good, ...body } });
  expect(await send({ zz: 1 })).toMatchObject({
    status: 400,
    body: { error: { param: 'zz', message: expect.stringMatching(/^zz is not known here/) as string } },
  });
  expect(Object.keys(properties).length).toBeGreaterThan(0);
  for (const name of Object.keys(properties)) {
    const { status, body } = await send({ [name]: { odd: 1 } });
    expect([status, body.error!.type, body.error!.param], name).toEqual([400, 'invalid_request', name]);
    expect(body.error!.message, name).toContain(name);
    expect(body.error!.message, name).not.toMatch(/must NOT|must match|additional propert|\[object/);
  }
});

describe('credits', () => {
  test('the account of an API key, whoever pays', async () => {
    const payer = await world.wallet();
    const payment = await world.pay(payer.signer, termsOf((await topup(bearer(world.spine.key))).headers));
    const paid = await topup({ ...bearer(world.spine.key), ...payment });
    expect(paid).toMatchObject({
      status: 200,
      body: {
        data: {
          account: world.spine.account,
          network: world.network,
          payer: payer.address,
          credited_micro_usdc: 1_500_000,
          credited_usd: '1.5',
          balance_micro_usdc: 1_500_000,
          balance_usd: '1.5',
        },
      },
    });
    const receipt = JSON.parse(Buffer.from(paid.headers.get('payment-response')!, 'base64').toString()) as object;
    expect(receipt).toMatchObject({
      success: true,
      network: world.network,
      transaction: paid.body.data['transaction'],
      amount: '1500000',
    });

    const again = await topup({ ...bearer(world.spine.key), ...payment });
    expect(again).toMatchObject({
      status: 200,
      body: { data: { balance_micro_usdc: 1_500_000, transaction: paid.body.data['transaction'] } },
    });
    expect(await world.token.balanceOf(world.treasury)).toBe(1_500_000n);

    const id = paid.body.data['deposit'] as string;
    const shown = await world.call('GET', `/deposits/${encodeURIComponent(id)}`, { headers: bearer(world.spine.key) });
    expect(shown.body.data).toMatchObject({
      id,
      status: 'final',
      account: world.spine.account,
      payer: payer.address,
      credited_micro_usdc: 1_500_000,
    });
  });

  test('the organisation that an admin acts for, also where a wallet pays that is signed in itself', async () => {
    const made = await world.call('POST', '/organisations', {
      headers: bearer(world.spine.key),
      body: { label: 'Acme' },
    });
    const { account } = made.body.data as unknown as { account: string };
    const owner = { ...bearer(world.spine.key), 'x-tollgate-account': account };
    const wallet = await world.wallet();
    const add = (role: string) =>
      world.call('POST', '/members', { headers: owner, body: { account: wallet.account, role } });
    expect((await add('member')).status).toBe(201);
    const acting = { ...(await signInHeaders(wallet)), 'x-tollgate-account': account };
    expect((await topup(acting)).status).toBe(403);
    const member = `/members/${encodeURIComponent(wallet.account)}`;
    expect((await world.call('PATCH', member, { headers: owner, body: { role: 'admin' } })).status).toBe(200);
    const payment = await world.pay(wallet.signer, termsOf((await topup(acting)).headers));
    expect(await topup({ ...acting, ...payment })).toMatchObject({
      status: 200,
      body: { data: { account, payer: wallet.address, balance_usd: '1.5' } },
    });
  });

  test('the wallet that is signed in, and not with what another one pays', async () => {
    const [payer, other] = [await world.wallet(), await world.wallet()];
    const signedIn = await signInHeaders(payer);
    const { accepts } = termsOf((await topup(signedIn)).headers);
    const foreign = await topup({
      ...signedIn,
      ...(await world.pay(other.signer, { x402Version: 2, error: '', accepts })),
    });
    expect(foreign).toMatchObject({ status: 402, body: { error: { type: 'payment_verification_failed' } } });
    expect(termsOf(foreign.headers).accepts).toHaveLength(1);
    const paid = await topup({
      ...signedIn,
      ...(await world.pay(payer.signer, { x402Version: 2, error: '', accepts })),
    });
    expect(paid).toMatchObject({
      status: 200,
      body: { data: { account: `eip155:8453:${payer.address.toLowerCase()}`, balance_usd: '1.5' } },
    });
  });

  test('the paying wallet where there is no credential, without telling what it has', async () => {
    const payer = await world.wallet();
    const payment = await world.pay(payer.signer, termsOf((await topup({})).headers));
    const paid = await topup(payment);
    expect(paid).toMatchObject({
      status: 200,
      body: { data: { credited_usd: '1.5', balance_micro_usdc: null, balance_usd: null } },
    });
    // On the chain everybody can read it: with another request it is nobody's credential.
    expect(await topup(payment, { amount_usd: 2 })).toMatchObject({
      status: 402,
      body: { error: { type: 'payment_verification_failed' } },
    });
    const mine = await world.call('GET', '/session/balance', { headers: await signInHeaders(payer) });
    expect(mine.body).toMatchObject({ balance_usd: '1.5' });
  });
});

test('is not for an agent that acts under a call', async () => {
  const { ledger } = world.spine.app;
  const { account } = await world.spine.tenant('running', '1');
  const rates = { prompt: 1n };
  const price = priceId('p', 's', rates);
  await createPriceBook(world.spine.app.database).remember([{ id: price, provider: 'p', service: 's', rates }]);
  const lock = {
    id: 'gen-running',
    account,
    amount: 10n,
    prices: [price],
    expiresAt: Date.now() + 60_000,
    detail: '{}',
  };
  expect((await ledger.lock(lock)).ok).toBe(true);
  const secret = createIdentity({ seed: IDENTITY_SEED }).secret('run tokens');
  const token = createRunTokens({ secret, now: Date.now }).issue(
    { parent: lock.id, account, key: null },
    lock.expiresAt,
  );
  expect(await topup(bearer(token))).toMatchObject({
    status: 403,
    body: { error: { message: expect.stringContaining('run token') } },
  });
  const prepare = (key: string) =>
    world.call('POST', '/topup/transaction', {
      headers: bearer(key),
      body: { network: world.network, payer: world.treasury, amount_usd: 1 },
    });
  expect((await prepare(token)).status).toBe(403);
  expect(await prepare(world.spine.key)).toMatchObject({
    status: 400,
    body: { error: { message: expect.stringContaining('signs the terms of /topup itself') } },
  });
  await ledger.release({ id: lock.id, detail: '{}' });
});

test('a payment that is too small, damaged or of nobody is told what is wrong with it, with the terms', async () => {
  const payer = await world.wallet(0n);
  const terms = termsOf((await topup({})).headers);
  const poor = await topup(await world.pay(payer.signer, terms));
  expect(poor).toMatchObject({
    status: 402,
    body: { error: { type: 'payment_verification_failed' }, accepts: terms.accepts },
  });
  const small = { ...terms, accepts: [{ ...terms.accepts[0]!, amount: '500000' }] };
  const rich = await world.wallet();
  expect(await topup(await world.pay(rich.signer, small))).toMatchObject({
    status: 402,
    body: { error: { type: 'insufficient_payment' } },
  });
  expect(await topup({ 'payment-signature': 'not base64!' })).toMatchObject({
    status: 400,
    body: { error: { param: 'payment-signature' } },
  });
});
