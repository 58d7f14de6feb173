import { createKeyPairSignerFromBytes } from '@solana/kit';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import type { PaymentPayload } from '#chains';
import type { PaymentRequirements } from '../../../src/billing/chains/chain.ts';
import { solanaMoney, type SolanaMoney } from '../../support/chain/money-chain.ts';
import { budget, build, pay, transfer, type Payer } from '../../support/chain/solana-wallet.ts';
import { ask, modelBlock, startSpine, type Spine } from '../../support/spine.ts';
import { signInHeaders, solanaWallet, type TestWallet } from '../../support/wallets.ts';
import { CHAINS_TOML, chainToml, LEAST } from './support/chains-spine.ts';
import { expectBalanced } from './support/books.ts';
import { paymentHeaders } from './support/payer.ts';

// A Solana wallet that signs in pays without a memo, as older clients do. Nobody else can have what it signed.

/** 20 tokens. */
const COST = 100_000n;
const PURSE = 5_000_000n;

let chain: SolanaMoney;
let spine: Spine;
let mine: TestWallet;
let thief: TestWallet;
let keyed: { readonly key: string; readonly account: string };
beforeAll(async () => {
  chain = await solanaMoney();
  const model = modelBlock({
    name: 'delphi/oracle',
    provider: 'Delphi',
    url: '{provider}',
    prompt: 0,
    completion: 5_000,
  });
  spine = await startSpine({ credit: '0', toml: CHAINS_TOML + chainToml(chain) + model });
  keyed = await spine.tenant('keyed', '0');
});
beforeEach(async () => {
  mine = await funded();
  thief = await funded();
});
afterEach(async () => {
  await spine.quiet();
  await expectBalanced(spine, [chain]);
});
afterAll(async () => {
  await spine?.stop();
  await chain?.stop();
});

async function funded(): Promise<TestWallet> {
  const wallet = solanaWallet();
  await chain.mint(wallet.address, PURSE);
  return wallet;
}

const chat = (headers: Record<string, string>, content = 'hello !tokens:20') =>
  fetch(`${spine.url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ ...ask(content, { model: 'delphi/oracle' }), messages: [{ role: 'user', content }] }),
  });

const available = async (account: string) => (await spine.app.ledger.balance(escrowOf(account)))?.available ?? 0n;

/** Terms of the one chain for who asks with these headers. */
async function termsFor(headers: Record<string, string>): Promise<PaymentRequirements> {
  const answer = await chat(headers);
  expect(answer.status).toBe(402);
  const { accepts } = (await answer.json()) as { accepts: PaymentRequirements[] };
  return accepts[0]!;
}

async function payerOf({ address, secret }: TestWallet): Promise<Payer> {
  return { address: address as Payer['address'], signer: await createKeyPairSignerFromBytes(secret), secret };
}

/** What a client signs that knows no memo: the transfer alone. */
async function signed(wallet: TestWallet, accepted: PaymentRequirements): Promise<Record<string, string>> {
  const payer = await payerOf(wallet);
  const pays = transfer({
    from: payer.address,
    to: chain.treasury as Payer['address'],
    amount: BigInt(accepted.amount),
  });
  const transaction = await build(chain.twin, chain.treasury as Payer['address'], [payer], [...budget(), pays]);
  const payload: PaymentPayload = { x402Version: 2, accepted, payload: { transaction } };
  return paymentHeaders(payload as never);
}

const refusedWith = async (answer: Response, words: string) => {
  const text = await answer.text();
  expect(answer.status, text).toBe(402);
  expect(text).toContain('payment_verification_failed');
  expect(text).toContain(words);
};

const bearer = () => ({ authorization: `Bearer ${keyed.key}` });

test('the terms of a wallet that is signed in ask for no memo, those of a key do', async () => {
  expect((await termsFor(await signInHeaders(mine))).extra).not.toHaveProperty('memo');
  expect((await termsFor(bearer())).extra).toMatchObject({ memo: keyed.account });
});

test('another wallet that is signed in cannot bring it, and its signer still can', async () => {
  const payment = await signed(mine, await termsFor(await signInHeaders(mine)));
  await refusedWith(await chat({ ...(await signInHeaders(thief)), ...payment }), 'another wallet is signed in');
  expect(await available(thief.account)).toBe(0n);
  const answer = await chat({ ...(await signInHeaders(mine)), ...payment });
  expect(answer.status, await answer.text()).toBe(200);
  await spine.quiet();
  expect(await available(mine.account)).toBe(LEAST - COST);
});

test('a key cannot bring it first, whatever it says the terms were', async () => {
  const terms = await termsFor(await signInHeaders(mine));
  const payment = await signed(mine, terms);
  await refusedWith(await chat({ ...bearer(), ...payment }), 'does not name the account');
  const pretended = await signed(mine, { ...terms, extra: { ...terms.extra, memo: keyed.account } });
  await refusedWith(await chat({ ...bearer(), ...pretended }), 'must have the memo');
  expect(await available(keyed.account)).toBe(0n);
});

test('who reads it off the chain gets nothing for it, and its signer is credited once', async () => {
  const payment = await signed(mine, await termsFor(await signInHeaders(mine)));
  const first = await chat({ ...(await signInHeaders(mine)), ...payment });
  expect(first.status, await first.text()).toBe(200);
  await spine.quiet();
  // A stranger with the same request and with another, another wallet, a key.
  await refusedWith(await chat(payment), 'already used for something else');
  await refusedWith(await chat(payment, 'something else !tokens:20'), 'already used for something else');
  await refusedWith(await chat({ ...(await signInHeaders(thief)), ...payment }), 'to another account');
  await refusedWith(await chat({ ...bearer(), ...payment }), 'to another account');
  // Again by its signer: it is no second payment. The balance pays until it ends.
  const statuses: number[] = [];
  for (let call = 0; call < 4; call += 1) {
    const again = await chat({ ...(await signInHeaders(mine)), ...payment });
    statuses.push(again.status);
    await again.text();
    await spine.quiet();
  }
  expect(statuses).toEqual([200, 200, 402, 402]);
  expect(await available(mine.account)).toBe(LEAST - 3n * COST);
  expect(await chain.balanceOf(mine.address)).toBe(PURSE - LEAST);
});

test('brought by many at once, it is credited to its signer and once', async () => {
  const signIn = await signInHeaders(mine);
  const payment = await signed(mine, await termsFor(signIn));
  const stolen = { ...(await signInHeaders(thief)), ...payment };
  const answers = await Promise.all(
    [1, 2, 3].flatMap(() => [chat({ ...signIn, ...payment }), chat(stolen), chat({ ...bearer(), ...payment })]),
  );
  await Promise.all(answers.map((answer) => answer.text()));
  await spine.quiet();
  const mineOnes = answers.filter((_, at) => at % 3 === 0).map(({ status }) => status);
  expect(mineOnes).toContain(200);
  expect(answers.filter((_, at) => at % 3 !== 0).map(({ status }) => status)).toEqual([402, 402, 402, 402, 402, 402]);
  const calls = BigInt(mineOnes.filter((status) => status === 200).length);
  expect(await available(mine.account)).toBe(LEAST - calls * COST);
  expect((await available(thief.account)) + (await available(keyed.account))).toBe(0n);
  expect(await chain.balanceOf(mine.address)).toBe(PURSE - LEAST);
});

test('a payment whose memo names the account of a key is for nobody else, also who comes by it alone; the key still can bring it', async () => {
  const from = await payerOf(mine);
  const { payload, accepted, ...rest } = await pay(chain.twin, from, await termsFor(bearer()));
  const { memo, ...extra } = accepted.extra;
  expect(memo).toBe(keyed.account);
  const signedForKey = paymentHeaders({ ...rest, payload, accepted } as never);
  // Whoever saw it leaves out of the terms whom it was for.
  const stolen = paymentHeaders({ ...rest, payload, accepted: { ...accepted, extra } } as never);
  for (const headers of [
    stolen,
    signedForKey,
    { ...(await signInHeaders(thief)), ...stolen },
    { ...(await signInHeaders(mine)), ...stolen },
  ])
    expect((await chat(headers)).status).toBe(402);
  await refusedWith(await chat(stolen), `for account ${keyed.account}, not for this account`);
  const answer = await chat({ ...bearer(), ...signedForKey });
  expect(answer.status, await answer.text()).toBe(200);
  await spine.quiet();
  expect(await available(keyed.account)).toBe(LEAST - COST);
  expect((await available(mine.account)) + (await available(thief.account))).toBe(0n);
});

test('the same for the account of a contract wallet, whose name an ordinary wallet of another network could have', async () => {
  const account = `eip155:1:0x${'ab'.repeat(20)}`;
  const { text } = (await spine.app.keys.create({ account, label: 'contract', kind: 'live' }))!;
  const withKey = { authorization: `Bearer ${text}` };
  const { payload, accepted, ...rest } = await pay(chain.twin, await payerOf(mine), await termsFor(withKey));
  const { memo: _memo, ...extra } = accepted.extra;
  await refusedWith(
    await chat(paymentHeaders({ ...rest, payload, accepted: { ...accepted, extra } } as never)),
    `for account ${account}, not for this account`,
  );
  const answer = await chat({ ...withKey, ...paymentHeaders({ ...rest, payload, accepted } as never) });
  expect(answer.status, await answer.text()).toBe(200);
  await spine.quiet();
  expect(await available(account)).toBe(LEAST - COST);
});
