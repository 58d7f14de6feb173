import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Hex } from 'viem';
import { dialIn, offeredModel, type DialledIn } from '../../support/dial-in.ts';
import { startProvider, type TestProvider } from '../../support/provider.ts';
import { ask } from '../../support/spine.ts';
import { encodeEnvelope, evmWallet, presign, signInHeaders, solanaWallet } from '../../support/wallets.ts';
import { later } from './support/books.ts';
import { type ChainsSpine, freshSignIn, startChainsSpine } from './support/chains-spine.ts';
import { fundPayer } from './support/payer.ts';

// Providers dial in at once, are called by wallets that pay in place, and have what they earned paid out: on two
// real chains.

/** 20 tokens. */
const EARNED = 100_000;

interface Withdrawal {
  readonly id: string;
  readonly status: string;
  readonly amount_micro_usdc: number;
  readonly address: string;
  readonly transaction: string | null;
  readonly authorization: (Readonly<Record<string, string>> & { readonly signature: Hex }) | null;
}

let world: ChainsSpine;
let upstream: TestProvider;
const proxies: DialledIn[] = [];
beforeAll(async () => {
  upstream = await startProvider();
  world = await startChainsSpine({ provider: upstream });
});
afterAll(async () => {
  await world?.balanced();
  for (const proxy of proxies) proxy.kill();
  await world?.stop();
  await upstream?.stop();
});

/** A provider that a wallet of this family has paid for one call. */
async function serveAndEarn(
  name: string,
  family: 'evm' | 'solana',
  as: Pick<Parameters<typeof dialIn>[0], 'wallet' | 'apiKey'>,
): Promise<void> {
  const model = `${name}/oracle`;
  const services = offeredModel({ url: upstream.url, name: model, provider: name, prompt: 0, completion: 5_000 });
  proxies.push(await dialIn({ router: world.spine.origin, services, ...as }));
  const payer = await fundPayer(world[family]);
  const body = JSON.stringify(ask('hello !tokens:20', { model }));
  const answer = await payer.ask(`${world.spine.url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  expect(answer.status, await answer.text()).toBe(200);
  await world.spine.quiet();
}

const request = async <T>(method: string, path: string, headers: Record<string, string>, body?: object) => {
  const response = await fetch(world.spine.url + path, {
    method,
    headers: { ...headers, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  return {
    status: response.status,
    text: await response.clone().text(),
    data: ((await response.json()) as { data: T }).data,
  };
};
const withdraw = (headers: Record<string, string>, network: string, more: object = {}) =>
  request<Withdrawal>('POST', '/withdrawals', headers, {
    network,
    source: 'earnings',
    amount_micro_usdc: EARNED,
    ...more,
  });
/** Shows it until it is so, while blocks come. */
const seen = (id: string, headers: () => Promise<Record<string, string>>, is: (withdrawal: Withdrawal) => boolean) =>
  later(world.chains, `withdrawal ${id} is so`, async () => {
    const { data } = await request<Withdrawal>('GET', `/withdrawals/${id}`, await headers());
    return is(data) ? data : null;
  });
const isPaid = ({ status }: Withdrawal) => status === 'paid';
const walletOf = { evm: evmWallet, solana: solanaWallet };
/** Wallets of Solana have a token account before they are paid. */
const ready = (family: 'evm' | 'solana', address: string) => world[family].mint(address, 0n);
const onBoth = async (work: (family: 'evm' | 'solana') => Promise<void>) =>
  void (await Promise.all([work('evm'), work('solana')]));

it.concurrent('to the wallet of the provider, which signs in for it with a nonce of the gateway’s', () =>
  onBoth(async (family) => {
    const wallet = walletOf[family]();
    const chain = world[family];
    await ready(family, wallet.address);
    await serveAndEarn(`wallet-${family}`, family, { wallet });
    const unproven = await withdraw(await signInHeaders(wallet), chain.network);
    expect(unproven.status).toBe(401);
    const asked = await withdraw(await freshSignIn(world.spine.url, wallet), chain.network);
    expect(asked.status, asked.text).toBe(201);
    const { transaction, address } = await seen(asked.data.id, () => signInHeaders(wallet), isPaid);
    expect(transaction).toMatch(/\w{40}/);
    expect(address).toBe(wallet.address);
    expect(await chain.balanceOf(wallet.address)).toBe(BigInt(EARNED));
    const more = await withdraw(await freshSignIn(world.spine.url, wallet), chain.network);
    expect(more.status, more.text).toBe(402);
  }));

it.concurrent('to a wallet that the provider has bound to its account, by its API key', () =>
  onBoth(async (family) => {
    const wallet = walletOf[family]();
    const chain = world[family];
    await ready(family, wallet.address);
    const { key } = await world.spine.tenant(`sibyl-${family}`, '0');
    const headers = { authorization: `Bearer ${key}` };
    await serveAndEarn(`keyed-${family}`, family, { apiKey: key });
    const unbound = await withdraw(headers, chain.network);
    expect(unbound.status, unbound.text).toBe(400);
    const { nonce } = (await (await fetch(`${world.spine.url}/auth/nonce`)).json()) as { nonce: string };
    const bound = await request('POST', '/wallets', headers, {
      sign_in: encodeEnvelope(await presign(wallet, { nonce })),
    });
    expect(bound.status, bound.text).toBe(201);
    const asked = await withdraw(headers, chain.network);
    expect(asked.status, asked.text).toBe(201);
    await seen(asked.data.id, async () => headers, isPaid);
    expect(await chain.balanceOf(wallet.address)).toBe(BigInt(EARNED));
  }));

it.concurrent('by an authorization that is handed out, whoever submits it, and once', async () => {
  const wallet = evmWallet();
  const { network, token, balanceOf } = world.evm;
  await serveAndEarn('handed-out', 'evm', { wallet });
  const asked = await withdraw(await freshSignIn(world.spine.url, wallet), network, { submit: 'self' });
  expect(asked.status, asked.text).toBe(201);
  const show = () => signInHeaders(wallet);
  const { authorization } = await seen(asked.data.id, show, (withdrawal) => withdrawal.authorization !== null);
  expect(await balanceOf(wallet.address)).toBe(0n);
  const { signature, ...terms } = authorization!;
  expect(terms).toMatchObject({ from: world.evm.treasury, to: wallet.address, value: String(EARNED) });
  const transaction = await token.carryOut({ authorization: terms, signature });
  expect(await seen(asked.data.id, show, isPaid)).toMatchObject({ transaction, amount_micro_usdc: EARNED });
  await expect(token.carryOut({ authorization: terms, signature })).rejects.toThrow();
  expect(await balanceOf(wallet.address)).toBe(BigInt(EARNED));
});
