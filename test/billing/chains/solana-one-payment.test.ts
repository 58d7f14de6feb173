import { afterAll, beforeAll, expect, test } from 'vitest';
import { solanaStage, type SolanaStage } from '../../support/chain/solana-stage.ts';
import { pay } from '../../support/chain/solana-wallet.ts';

/** One payment moves money once, whoever brings it and however often. */
const ROUNDS = process.env['TOLLGATE_DEEP'] === '1' ? 60 : 2;

let stage: SolanaStage;
beforeAll(async () => {
  stage = await solanaStage();
});
afterAll(() => stage.close());

test('two gateways that submit the same payment at once, again and again, are paid once', async () => {
  const { twin, chain } = stage;
  const other = stage.another();
  for (let round = 0; round < ROUNDS; round += 1) {
    const payer = await stage.payer(3_000_000n);
    const before = twin.chain.tokens(chain.treasury);
    const brought = await pay(twin, payer, await chain.requirements(1_000_000n, null));
    const [here, there] = [chain.read(brought), other.read(brought)];
    const answers = await Promise.all([
      chain.submit(here),
      other.submit(there),
      chain.submit(here),
      other.submit(there),
    ]);
    twin.finalize();
    answers.push(await other.submit(there));
    expect(new Set(answers.map(({ transaction }) => transaction)).size).toBe(1);
    expect(here.id).toBe(there.id);
    expect(twin.chain.tokens(chain.treasury) - before).toBe(1_000_000n);
    expect(await other.find(there, null)).toEqual(await chain.find(here, null));
  }
});

test('a transaction that is lost on its way is submitted again and lands as the same one', async () => {
  const { twin, chain } = stage;
  const payment = chain.read(await pay(twin, await stage.payer(), await chain.requirements(700n, null)));
  twin.faults.dropNext = 1;
  const first = await chain.submit(payment);
  twin.asked.clear();
  // A node gives what it took to the network again by itself.
  await chain.submit(payment);
  expect(twin.asked.get('sendTransaction')).toBeUndefined();
  // Three seconds and more.
  twin.advance(8);
  expect(await chain.find(payment, first.transaction)).toEqual({ state: 'open' });
  expect(await chain.submit(payment)).toEqual(first);
  expect(await chain.find(payment, null)).toMatchObject({
    state: 'settled',
    event: { transaction: first.transaction, amount: 700n },
  });
});

test('an answer that is lost says nothing about the payment', async () => {
  const { twin, chain } = stage;
  const payment = chain.read(await pay(twin, await stage.payer(), await chain.requirements(800n, null)));
  twin.faults.cutSendAnswers = true;
  await expect(chain.submit(payment)).rejects.toMatchObject({ name: 'ChainUnavailable' });
  twin.faults.cutSendAnswers = false;
  expect(await chain.find(payment, null)).toMatchObject({ state: 'settled', event: { amount: 800n } });
});
