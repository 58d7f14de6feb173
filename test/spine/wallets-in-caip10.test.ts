import { expect, test } from 'vitest';
import { escrowOf, treasuryOf } from '#billing';
import { parseUsd } from '#billing/amounts';
import { ask, startSpine, UNHURRIED } from '../support/spine.ts';
import { evmWallet, SIGN_IN_TOML, signInHeaders, solanaWallet, type TestWallet } from '../support/wallets.ts';
import { spineOfFile } from '../support/of-file.ts';

// A wallet is shown on the network that it signed for, and its receipt names the account that its call's record names.

const spine = spineOfFile(() => ({ toml: UNHURRIED + SIGN_IN_TOML }));

const json = async <T>(path: string, headers: Record<string, string>) =>
  (await (await fetch(spine.url + path, { headers })).json()) as T;
const accountIn = (receipt: string) =>
  (JSON.parse(Buffer.from(receipt.split('.')[1]!, 'base64url').toString()) as { account: string }).account;
const addressOf = ({ account }: TestWallet) => account.split(':').at(-1)!;

test.each([
  ['EVM', evmWallet(), 'eip155:84532', '84532'],
  ['Solana', solanaWallet(), 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1', 'devnet'],
] as const)('%s', async (_kind, wallet, network, chainId) => {
  await spine.app.ledger.transfer({
    id: `credit-${wallet.account}`,
    from: treasuryOf('operator'),
    to: escrowOf(wallet.account),
    amount: parseUsd('1'),
    memo: '',
  });
  const headers = await signInHeaders(wallet, { chainId });
  const caip10 = `${network}:${addressOf(wallet)}`;
  expect(await json('/session/balance', headers)).toMatchObject({ caip_account_id: caip10 });
  const response = await fetch(`${spine.url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-receipt': '1', ...headers },
    body: JSON.stringify(ask('hello')),
  });
  expect(response.status).toBe(200);
  await response.text();
  expect(accountIn(response.headers.get('x-receipt')!)).toBe(caip10);
  // From another network it is the same account with the same calls, each as it was signed for.
  const elsewhere = await signInHeaders(wallet);
  const id = response.headers.get('x-generation-id')!;
  const { data } = await json<{ data: { account: string; receipt: string } }>(`/generation?id=${id}`, elsewhere);
  expect([data.account, accountIn(data.receipt)]).toEqual([caip10, caip10]);
  expect((await json<{ data: { id: string; account: string }[] }>('/generations', elsewhere)).data).toMatchObject([
    { id, account: caip10 },
  ]);
});

test('the operator sees wallets that have keys and no money, and looking at one makes nothing', async () => {
  const wallet = evmWallet();
  const { nonce } = await json<{ nonce: string }>('/auth/nonce', {});
  const made = await fetch(`${spine.url}/keys`, {
    method: 'POST',
    headers: { ...(await signInHeaders(wallet, { nonce })), 'content-type': 'application/json' },
    body: '{}',
  });
  expect(made.status).toBe(201);
  const admin = async <T>(path: string) =>
    (await (
      await fetch(`${spine.origin}/admin/v1${path}`, { headers: { authorization: `Bearer ${spine.adminKey}` } })
    ).json()) as T;
  const list = async () =>
    (await admin<{ data: { id: string; caip_account_id: string; created_at: string }[] }>('/accounts')).data;
  const found = (await list()).find(({ id }) => id === wallet.account)!;
  expect(found).toMatchObject({
    caip_account_id: `eip155:8453:${addressOf(wallet)}`,
    created_at: expect.stringMatching(/^\d{4}-/) as string,
  });
  const before = (await list()).length;
  expect(await admin(`/accounts/${evmWallet().account}`)).toMatchObject({
    data: { balance_usd: '0', created_at: null },
  });
  expect(await list()).toHaveLength(before);
});

test('a nonce comes with a message for the domain that was asked, where it is one of the configured', async () => {
  const own = await startSpine({ env: { TOLLGATE_SIGN_IN_DOMAINS: 'first.test, 127.0.0.1:1, asked.test' } });
  try {
    const domain = async (host: string) => {
      const response = await own.app.server.inject({ url: '/api/v1/auth/nonce', headers: { host } });
      const { message, example } = response.json<{ message: { domain: string; uri: string }; example: string }>();
      expect(example.startsWith(`${message.domain} wants`)).toBe(true);
      return [message.domain, message.uri];
    };
    expect(await domain('asked.test')).toEqual(['asked.test', 'https://asked.test/']);
    expect(await domain('ASKED.test')).toEqual(['asked.test', 'https://asked.test/']);
    expect(await domain('127.0.0.1:1')).toEqual(['127.0.0.1:1', 'http://127.0.0.1:1/']);
    expect(await domain('evil.test')).toEqual(['first.test', 'https://first.test/']);
  } finally {
    await own.stop();
  }
});
