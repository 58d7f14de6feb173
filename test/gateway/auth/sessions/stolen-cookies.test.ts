import { afterAll, beforeAll, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { encodeEnvelope, evmWallet, presign } from '../../../support/wallets.ts';
import { bearer, openFundsWorld, type FundsWorld } from '../../../console/pages/funds/funds-world.ts';
import { openBrowser, type Browser } from './browser.ts';

// Somebody has the cookie of another's browser, and nothing else: no key and no wallet.

let world: FundsWorld;
beforeAll(async () => {
  world = await openFundsWorld({ chain: 'withdrawal_min = 0.1' });
});
afterAll(async () => {
  expect(await world.spine.faults()).toEqual([]);
  await world.stop();
});

const walletCookie = async (): Promise<{ browser: Browser; account: string }> => {
  const browser = openBrowser(world.spine.origin);
  const wallet = await world.wallet();
  const siwx = encodeEnvelope(await presign(wallet, { nonce: await world.nonce() }));
  expect((await browser.ask('POST', '/api/v1/auth/session', { siwx })).status).toBe(200);
  return { browser, account: wallet.account };
};
const keyCookie = async (): Promise<{ browser: Browser; account: string; key: string }> => {
  const browser = openBrowser(world.spine.origin);
  const { key, account } = await world.spine.tenant(`owner-${Math.random().toString(36).slice(2, 8)}`, '5');
  expect((await browser.ask('POST', '/api/v1/auth/session', { api_key: key })).status).toBe(200);
  return { browser, account, key };
};
const withdrawal = () => ({ network: world.network, amount_usd: 1, source: 'balance' });

test.each([
  ['wallet', walletCookie],
  ['API key', keyCookie],
])('the cookie of a session by %s makes no key and loosens none', async (_kind, cookieOf) => {
  const { browser } = await cookieOf();
  const made = await browser.ask('POST', '/api/v1/keys', { label: 'mine now' });
  expect([made.status, made.body.error?.type]).toEqual([401, 'unauthorized']);
  const { body } = await browser.ask<{ data: { hash: string }[] }>('GET', '/api/v1/keys');
  for (const { hash } of body.data)
    expect((await browser.ask('PATCH', `/api/v1/keys/${hash}`, { limit: 1_000 })).status).toBe(401);
});

test('the cookie stops no other key of its account, and may stop its own', async () => {
  const { browser, key } = await keyCookie();
  const asOwner = (method: string, path: string, body?: unknown) => browser.ask(method, path, body, bearer(key));
  const { hash } = (await asOwner('POST', '/api/v1/keys', { label: 'a program' })).body.data;
  const path = `/api/v1/keys/${hash}`;
  expect((await browser.ask('DELETE', path)).status).toBe(401);
  expect((await browser.ask('PATCH', path, { disabled: true })).status).toBe(401);
  expect((await browser.ask('PATCH', path, { label: 'a new name' })).status).toBe(200);
  expect((await asOwner('PATCH', path, { disabled: true })).status).toBe(200);
  expect((await asOwner('DELETE', path)).status).toBe(200);
  const own = (await browser.ask('GET', '/api/v1/key')).body.data.hash;
  expect((await browser.ask('DELETE', `/api/v1/keys/${own}`)).status).toBe(200);
});

test.each([
  ['wallet', walletCookie],
  ['API key', keyCookie],
])('the cookie of a session by %s moves no money out', async (_kind, cookieOf) => {
  const { browser, account } = await cookieOf();
  const before = await world.spine.app.ledger.balance(escrowOf(account));
  const asked = await browser.ask('POST', '/api/v1/withdrawals', withdrawal());
  expect(asked.status).toBeGreaterThanOrEqual(400);
  expect((await browser.ask('GET', '/api/v1/withdrawals')).body.data).toEqual([]);
  expect(await world.spine.app.ledger.balance(escrowOf(account))).toEqual(before);
});

test('the cookie binds no wallet of a thief, who could withdraw to it later, and removes none', async () => {
  const { browser, key } = await keyCookie();
  const thief = evmWallet();
  const sign_in = encodeEnvelope(await presign(thief, { nonce: await world.nonce() }));
  const bound = await browser.ask('POST', '/api/v1/wallets', { sign_in });
  expect([bound.status, bound.body.error?.message]).toEqual([401, expect.stringContaining('A session is not enough')]);

  const own = evmWallet();
  const ownSignIn = encodeEnvelope(await presign(own, { nonce: await world.nonce() }));
  const withKey = await browser.ask('POST', '/api/v1/wallets', { sign_in: ownSignIn }, bearer(key));
  expect(withKey.status).toBe(201);
  const path = `/api/v1/wallets/${encodeURIComponent(own.accountId)}`;
  expect((await browser.ask('DELETE', path)).status).toBe(401);
  expect((await browser.ask('POST', '/api/v1/withdrawals', withdrawal())).status).toBe(401);
  // With the key it goes on to the money, and a credit of the operator cannot be withdrawn.
  expect((await browser.ask('POST', '/api/v1/withdrawals', withdrawal(), bearer(key))).status).toBe(402);
});

test('a fresh signature beside the cookie does what the cookie alone cannot', async () => {
  const browser = openBrowser(world.spine.origin);
  const wallet = await world.wallet();
  const siwx = encodeEnvelope(await presign(wallet, { nonce: await world.nonce() }));
  await browser.ask('POST', '/api/v1/auth/session', { siwx });
  const made = await browser.ask('POST', '/api/v1/keys', { label: 'signed' }, await world.fresh(wallet));
  expect([made.status, made.body.key.slice(0, 10)]).toEqual([201, 'svc-sk-v2-']);
  const { body } = await browser.ask<{ data: { label: string }[] }>('GET', '/api/v1/keys');
  expect(body.data.map(({ label }) => label)).toEqual(['signed']);
});
