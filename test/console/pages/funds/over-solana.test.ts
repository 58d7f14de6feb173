import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DEVNET } from '../../../support/chain/solana-accounts.ts';
import { startSolanaTwin, type SolanaTwin } from '../../../support/chain/solana-twin.ts';
import { newPayer, pay, type Payer } from '../../../support/chain/solana-wallet.ts';
import { startSpine, UNHURRIED, type Spine } from '../../../support/spine.ts';
import { signInHeaders, solanaWallet } from '../../../support/wallets.ts';
import { bearer, termsOf, type Body } from './funds-world.ts';

// The same ways of money over Solana, with the treasury in a file.

let twin: SolanaTwin;
let treasury: Payer;
let spine: Spine;
let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tollgate-treasury-'));
  twin = await startSolanaTwin({ finalizeAfter: 2, slotMs: 10 });
  treasury = await newPayer();
  twin.fundSol(treasury.address);
  const file = join(directory, 'treasury.json');
  await writeFile(file, JSON.stringify([...treasury.secret]));
  await chmod(file, 0o600);
  spine = await startSpine({
    credit: '0',
    env: { RPC_URL: twin.url },
    toml: `${UNHURRIED}[payments]\nwatch_ms = 100\n[[chains]]\nnetwork = "${DEVNET}"\nrpc_url = "std::env::RPC_URL"\nkeypair_file = ${JSON.stringify(file)}\nmin_topup = 0.5\nwithdrawal_min = 0.1\n`,
  });
  // The first start makes the treasury's token account, and its books begin when that is final.
  for (let open = false; !open; await new Promise((resolve) => setTimeout(resolve, 25))) {
    const { data } = (await call('GET', '/payments/chains', {})).body as unknown as {
      data: readonly { answers: boolean }[];
    };
    open = data[0]!.answers;
  }
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  await twin.close();
  await rm(directory, { recursive: true });
});

const call = async (method: string, path: string, headers: Record<string, string>, body?: unknown) => {
  const response = await fetch(spine.url + path, {
    method,
    headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Body };
};

test('a payment of the wallet that is signed in is credited, and is paid back to the wallet', async () => {
  const wallet = solanaWallet();
  const payer: Payer = {
    address: wallet.address as Payer['address'],
    signer: await createKeyPairSignerFromBytes(wallet.secret),
    secret: wallet.secret,
  };
  twin.fundUsdc(payer.address, 10_000_000n);
  twin.finalize();
  const headers = await signInHeaders(wallet);
  const topup = (more: Record<string, string> = {}) =>
    call('POST', '/topup', { ...headers, ...more }, { amount_usd: 3 });
  const [terms] = termsOf((await topup()).headers).accepts;
  expect(terms).toMatchObject({ network: DEVNET, payTo: treasury.address, amount: '3000000' });
  const payment = {
    'payment-signature': Buffer.from(JSON.stringify(await pay(twin, payer, terms!))).toString('base64'),
  };
  // It does not say that it is the key's.
  expect(await call('POST', '/topup', { ...bearer(spine.key), ...payment }, { amount_usd: 3 })).toMatchObject({
    status: 402,
    body: { error: { type: 'payment_verification_failed' } },
  });
  let paid = await topup(payment);
  while (paid.status === 202) paid = await topup(payment);
  expect(paid).toMatchObject({
    status: 200,
    body: { data: { payer: wallet.address, credited_usd: '3', balance_usd: '3' } },
  });

  const { nonce } = (await call('GET', '/auth/nonce', {})).body as unknown as { nonce: string };
  const fresh = await signInHeaders(wallet, { nonce });
  const asked = { network: DEVNET, amount_usd: 2, source: 'balance' };
  expect(await call('POST', '/withdrawals', fresh, { ...asked, submit: 'self' })).toMatchObject({
    status: 400,
    body: { error: { param: 'submit' } },
  });
  let withdrawal = (await call('POST', '/withdrawals', fresh, asked)).body.data;
  while (withdrawal['status'] !== 'paid') {
    expect(['pending', 'processing']).toContain(withdrawal['status']);
    await new Promise((resolve) => setTimeout(resolve, 25));
    withdrawal = (await call('GET', `/withdrawals/${withdrawal.id}`, headers)).body.data;
  }
  expect(withdrawal).toMatchObject({ address: wallet.address, amount_usd: '2' });
  expect(twin.chain.tokens(payer.address)).toBe(9_000_000n);

  // The books are compared as they were a few slots ago. So the first audits may see only the payment.
  const audit = async () =>
    (await fetch(`${spine.origin}/admin/v1/audit?chain=true`, { headers: bearer(spine.adminKey) })).json() as Promise<{
      readonly data: { readonly chains: { readonly chains: readonly { readonly held: number }[] } };
    }>;
  const shown = (amount: number) => ({
    data: { chains: { ok: true, chains: [{ network: DEVNET, held: amount, booked: amount }] } },
  });
  let audited = await audit();
  while (audited.data.chains.chains[0]!.held === 3_000_000) {
    expect(audited).toMatchObject(shown(3_000_000));
    await new Promise((resolve) => setTimeout(resolve, 25));
    audited = await audit();
  }
  expect(audited).toMatchObject(shown(1_000_000));
});
