import { decodePaymentResponseHeader } from '@x402/fetch';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ask, events, modelBlock } from '../../support/spine.ts';
import { evmWallet, signInHeaders } from '../../support/wallets.ts';
import { type ChainsSpine, LEAST, startChainsSpine } from './support/chains-spine.ts';
import { fundPayer, PURSE, type Payer } from './support/payer.ts';

// A wallet with USDC and no account, and the clients of x402 as they are published: chats and top-ups, on two real
// chains.

/** 20 tokens are 0.1 USD, the 50 that a request allows are 0.25. */
const COST = 100_000n;
const dear = modelBlock({ name: 'delphi/oracle', provider: 'Delphi', url: '{provider}', prompt: 0, completion: 5_000 });
const free = modelBlock({ name: 'delphi/free', provider: 'Delphi', url: '{provider}', prompt: 0, completion: 0 });

let world: ChainsSpine;
beforeAll(async () => {
  world = await startChainsSpine({ toml: dear + free });
});
afterEach(() => world.balanced());
afterAll(() => world?.stop());

const question = (more: object = {}): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(ask('hello !tokens:20', { model: 'delphi/oracle', ...more })),
});
const chat = (by: typeof fetch, headers: Record<string, string> = {}, more: object = {}) => {
  const init = question(more);
  return by(`${world.spine.url}/chat/completions`, {
    ...init,
    headers: { ...(init.headers as Record<string, string>), ...headers },
  });
};
const receiptOf = (response: Response) => {
  const header = response.headers.get('payment-response');
  return header === null ? null : decodePaymentResponseHeader(header);
};

describe.each(['evm', 'solana'] as const)('on %s', (family) => {
  let payer: Payer;

  it('a stream is paid for, and tells of the payment in its head', async () => {
    payer = await fundPayer(world[family]);
    const before = await payer.held();
    const answer = await chat(payer.ask, {}, { stream: true });
    expect(answer.status, answer.ok ? '' : await answer.text()).toBe(200);
    expect(answer.headers.get('content-type')).toMatch(/event-stream/);
    expect(receiptOf(answer)).toMatchObject({
      success: true,
      network: payer.chain.network,
      payer: payer.address,
      amount: String(LEAST),
    });
    const frames = events(await answer.text());
    expect(frames.length).toBeGreaterThan(20);
    expect(frames.at(-1)).toBe('[DONE]');
    await world.spine.quiet();
    expect(before - (await payer.held())).toBe(LEAST);
    expect(await world.available(payer.account)).toBe(LEAST - COST);
  });

  it('further calls are paid from the balance by the wallet that signs in', async () => {
    const before = await payer.held();
    const answer = await chat(fetch, await signInHeaders(payer));
    expect(answer.status).toBe(200);
    expect(receiptOf(answer)).toBeNull();
    expect(await answer.json()).toMatchObject({ usage: { cost: 0.1 } });
    expect(await payer.held()).toBe(before);
    expect(await world.available(payer.account)).toBe(LEAST - 2n * COST);
  });

  it('a client that signs in and can pay, pays when the balance ends, and not before', async () => {
    const rich = await fundPayer(world[family]);
    const paid: boolean[] = [];
    for (let call = 0; call < 5; call += 1) {
      const answer = await chat(rich.ask, await signInHeaders(rich));
      expect(answer.status, answer.ok ? '' : await answer.text()).toBe(200);
      paid.push(receiptOf(answer) !== null);
      await answer.text();
      await world.spine.quiet();
    }
    // 0.2 are left before the fourth, which asks for 0.25.
    expect(paid).toEqual([true, false, false, true, false]);
    expect(await rich.held()).toBe(PURSE - 2n * LEAST);
    expect(await world.available(rich.account)).toBe(2n * LEAST - 5n * COST);
  });

  it('any amount is paid in', async () => {
    const body = JSON.stringify({ amount_usd: '0.75' });
    const stranger = await fundPayer(world[family]);
    const answer = await stranger.ask(`${world.spine.url}/topup`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
    const { data } = (await answer.json()) as { data: Record<string, unknown> };
    expect(answer.status, JSON.stringify(data)).toBe(200);
    expect(data).toMatchObject({
      network: stranger.chain.network,
      payer: stranger.address,
      credited_micro_usdc: 750_000,
    });
    expect(receiptOf(answer)).toMatchObject({ transaction: data['transaction'], amount: '750000' });
    expect(await world.available(stranger.account)).toBe(750_000n);
    expect(await stranger.held()).toBe(PURSE - 750_000n);
  });

  it('an account with a key that pays with it is credited itself', async () => {
    const { key, account } = await world.spine.tenant(`keyed-${family}`, '0');
    const anyone = await fundPayer(world[family]);
    const answer = await chat(anyone.ask, { authorization: `Bearer ${key}` });
    expect(answer.status, answer.ok ? '' : await answer.text()).toBe(200);
    expect(receiptOf(answer)).toMatchObject({ payer: anyone.address, amount: String(LEAST) });
    await answer.text();
    await world.spine.quiet();
    expect(await world.available(account)).toBe(LEAST - COST);
    expect(await world.available(anyone.account)).toBe(0n);
  });
});

it('a model that costs nothing asks a wallet without money for none', async () => {
  const answer = await chat(fetch, await signInHeaders(evmWallet()), { model: 'delphi/free' });
  expect(answer.status, answer.ok ? '' : await answer.text()).toBe(200);
  expect(await answer.json()).toMatchObject({ usage: { cost: 0 } });
  const nobody = await chat(fetch, {}, { model: 'delphi/free' });
  expect(nobody.status).toBe(401);
  expect(await nobody.json()).toMatchObject({
    error: { message: expect.stringContaining('This needs an account') as string },
  });
});
