import { afterEach, beforeEach, expect, test } from 'vitest';
import type { SignedPayment } from '../../../src/billing/chains/chain.ts';
import { solanaStage, type SolanaStage } from '../../support/chain/solana-stage.ts';
import { build, budget, memo, pay, send, transfer, type Payer } from '../../support/chain/solana-wallet.ts';

/** A payment is lost when it can never come any more, and not a block sooner. */
let stage: SolanaStage;
beforeEach(async () => {
  stage = await solanaStage();
});
afterEach(() => stage.close());

async function dropped(): Promise<SignedPayment> {
  const { twin, chain } = stage;
  const payment = chain.read(await pay(twin, await stage.payer(), await chain.requirements(1_000n, null)));
  twin.faults.dropNext = 1;
  await chain.submit(payment);
  return payment;
}

test('one that was seen while its blockhash was valid is lost once finality is beyond that', async () => {
  const { twin, chain } = stage;
  const payment = await dropped();
  const states: string[] = [];
  for (let slot = 0; slot < 360; slot += 10) {
    states.push((await chain.find(payment, null)).state);
    twin.advance(10);
  }
  // 150 blocks of validity, 150 for the answers of a pool, and finality 32 slots behind.
  expect(states.indexOf('lost')).toBe(34);
  expect(states.slice(0, 34)).toEqual(Array.from({ length: 34 }, () => 'open'));
  expect(await chain.find(payment, null)).toMatchObject({ state: 'lost', reason: /blockhash expired/ });
});

test('one that lands in the last block that takes it is not lost', async () => {
  const { twin, chain } = stage;
  const payment = chain.read(await pay(twin, await stage.payer(), await chain.requirements(1_000n, null)));
  // Its blockhash is as old as finality.
  twin.faults.landAfter = 150 - twin.chain.finalizeAfter;
  await chain.submit(payment);
  expect((await chain.find(payment, null)).state).toBe('open');
  twin.advance(118);
  expect((await chain.find(payment, null)).state).toBe('settled');
  twin.advance(700);
  expect(await chain.find(payment, null)).toMatchObject({ state: 'settled', event: { final: true } });
});

test('a process that never saw its blockhash valid waits longer, and needs a history from before it was read', async () => {
  const { twin, chain } = stage;
  const payment = await dropped();
  twin.advance(400);
  const later = stage.another();
  twin.faults.forgetBefore = 5_000;
  expect((await later.find(payment, null)).state).toBe('open');
  twin.advance(600);
  expect((await later.find(payment, null)).state).toBe('open');
  twin.advance(200);
  expect((await later.find(payment, null)).state).toBe('open');
  // An hour before it was read: 9,000 slots.
  twin.faults.forgetBefore = 900;
  expect((await later.find(payment, null)).state).toBe('lost');
  expect((await chain.find(payment, null)).state).toBe('open');
});

test('one that came long ago is not lost because the node has forgotten it', async () => {
  const { twin, chain } = stage;
  const payment = chain.read(await pay(twin, await stage.payer(), await chain.requirements(1_000n, null)));
  await chain.submit(payment);
  twin.advance(12_000);
  const later = stage.another();
  twin.faults.forgetBefore = twin.chain.slot - 9_500;
  for (let look = 0; look < 3; look += 1) {
    expect((await later.find(payment, null)).state).toBe('open');
    twin.advance(700);
    twin.faults.forgetBefore += 700;
  }
});

test('a node that falls behind after it told of finality is not believed', async () => {
  const { twin, chain } = stage;
  const payment = chain.read(await pay(twin, await stage.payer(), await chain.requirements(1_000n, null)));
  expect((await chain.find(payment, null)).state).toBe('open');
  await chain.submit(payment);
  twin.advance(700);
  // One of a pool, from before the payment: it answers for signatures only.
  twin.faults.lie = (method, honest) => {
    if (method !== 'getSignatureStatuses') return honest;
    return { context: { slot: 10_050 }, value: [null] };
  };
  await expect(chain.find(payment, null)).rejects.toMatchObject({
    name: 'ChainUnavailable',
    message: /after it had reported slot/,
  });
  twin.faults.lie = null;
  expect((await chain.find(payment, null)).state).toBe('settled');
  // The whole node is behind: it is asked for what it cannot know.
  const other = await dropped();
  expect((await chain.find(other, null)).state).toBe('open');
  twin.advance(700);
  twin.faults.unhealthy = true;
  await expect(chain.find(other, null)).rejects.toMatchObject({ name: 'ChainUnavailable' });
  twin.faults.unhealthy = false;
  expect((await chain.find(other, null)).state).toBe('lost');
  twin.faults.staleBy = 650;
  await expect(chain.find(other, null)).rejects.toMatchObject({ name: 'ChainUnavailable' });
});

test('one that fails on the chain is lost when that is final', async () => {
  const { twin, chain } = stage;
  const payer = await stage.payer(1_000n);
  twin.fundSol(payer.address);
  const payment = chain.read(await pay(twin, payer, await chain.requirements(1_000n, null)));
  await chain.verify(payment);
  // Spent between being verified and being given to the chain.
  const other = await stage.payer();
  await send(twin, payer, [transfer({ from: payer.address, to: other.address, amount: 1_000n })]);
  await chain.submit(payment);
  expect(await chain.find(payment, null)).toEqual({ state: 'open' });
  twin.finalize();
  expect(await chain.find(payment, null)).toMatchObject({ state: 'lost', reason: /failed on the chain/ });
});

test('a made-up blockhash is never taken for an expired one at once', async () => {
  const { twin, chain } = stage;
  const payer: Payer = await stage.payer();
  const requirements = await chain.requirements(1_000n, null);
  const { address } = await stage.payer();
  const instructions = [
    ...budget(),
    transfer({ from: payer.address, to: stage.treasury.address, amount: 1_000n }),
    memo('n'),
  ];
  const transaction = await build(twin, stage.treasury.address, [payer], instructions, { blockhash: address });
  const payment = chain.read({ x402Version: 2, accepted: requirements, payload: { transaction } });
  await expect(chain.verify(payment)).rejects.toMatchObject({ code: 'payment_expired' });
  expect((await chain.find(payment, null)).state).toBe('open');
  twin.advance(500);
  expect((await chain.find(payment, null)).state).toBe('open');
  twin.advance(300);
  expect((await chain.find(payment, null)).state).toBe('lost');
});
