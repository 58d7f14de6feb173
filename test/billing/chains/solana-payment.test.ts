import { afterAll, beforeAll, expect, test } from 'vitest';
import { solanaStage, type SolanaStage } from '../../support/chain/solana-stage.ts';
import { pay } from '../../support/chain/solana-wallet.ts';

/** A wallet pays with the x402 library's client, unchanged, and holds no SOL. */
let stage: SolanaStage;
beforeAll(async () => {
  stage = await solanaStage({ confirmAfter: 1 });
});
afterAll(() => stage.close());

test('a payment is read, verified, given to the chain, seen when it is confirmed, and final', async () => {
  const { twin, chain } = stage;
  const payer = await stage.payer(5_000_000n);
  const requirements = await chain.requirements(1_250_000n, 'solana:somebody');
  expect(requirements).toMatchObject({
    scheme: 'exact',
    amount: '1250000',
    payTo: chain.treasury,
    extra: { feePayer: chain.treasury, paymentFlow: 'upfront' },
  });
  const payment = chain.read(await pay(twin, payer, requirements));
  expect(payment).toMatchObject({ payer: payer.address, payerAccount: `solana:${payer.address}`, amount: 1_250_000n });
  expect(payment.id).toMatch(/^solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1\/[0-9a-f]{64}$/);
  expect(await chain.verify(payment)).toEqual({ account: payment.payerAccount });
  expect(await chain.find(payment, null)).toEqual({ state: 'open' });

  const { transaction } = await chain.submit(payment);
  expect(await chain.find(payment, transaction)).toEqual({ state: 'open' });
  twin.advance(1);
  const settled = await chain.find(payment, 'a hint that is wrong');
  expect(settled).toMatchObject({
    state: 'settled',
    event: { id: `${transaction}:0`, transaction, amount: 1_250_000n, confirmations: 2, final: false },
  });
  twin.finalize();
  expect(await chain.find(payment, null)).toMatchObject({ state: 'settled', event: { transaction, final: true } });
  expect(twin.chain.tokens(chain.treasury)).toBe(1_250_000n);
  expect(twin.chain.tokens(payer.address)).toBe(3_750_000n);
});

test('without an account the memo is the client’s own, so that two equal payments are two', async () => {
  const { twin, chain } = stage;
  const payer = await stage.payer();
  const requirements = await chain.requirements(1_000n, null);
  expect(requirements.extra).not.toHaveProperty('memo');
  const [one, other] = [
    chain.read(await pay(twin, payer, requirements)),
    chain.read(await pay(twin, payer, requirements)),
  ];
  expect(one.id).not.toBe(other.id);
  await Promise.all([chain.verify(one), chain.verify(other)]);
});

test('a payment that would fail is not verified, and says why', async () => {
  const { twin, chain } = stage;
  const requirements = await chain.requirements(2_000_000n, null);
  const poor = chain.read(await pay(twin, await stage.payer(1_999_999n), requirements));
  await expect(chain.verify(poor)).rejects.toMatchObject({
    name: 'PaymentProblem',
    code: 'payment_verification_failed',
    message: /balance of the payer is lower/,
  });
  const late = chain.read(await pay(twin, await stage.payer(), requirements));
  twin.advance(151);
  await expect(chain.verify(late)).rejects.toMatchObject({ name: 'PaymentProblem', code: 'payment_expired' });
  const made = chain.read(await pay(twin, await stage.payer(), requirements));
  await chain.submit(made);
  await expect(chain.verify(made)).rejects.toMatchObject({ name: 'PaymentProblem', message: /already made/ });
});
