import { afterAll, beforeAll, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { freshKey } from '../../../support/chain/evm-token.ts';
import { bearer, openFundsWorld, type FundsWorld } from './funds-world.ts';

// The operator's acts about treasuries, as the admin API takes them.

const own = freshKey();
let world: FundsWorld;
beforeAll(async () => {
  world = await openFundsWorld({ chain: `move_to = ["${own.address}"]` });
});
afterAll(() => world.stop());

const usd = (amount: number) => ({ amount_usd: amount });

test('money of the operator leaves a treasury and comes back, less the fee that he made good', async () => {
  const { network, treasury, token } = world;
  const payer = await world.wallet();
  await token.transfer(payer.signer, treasury, 20_000_000n);
  const held = async () => (await world.admin('GET', '/audit?chain=true')).body.data;
  await world.until(held, (data) => JSON.stringify(data).includes('"held":20000000'));

  const move = { network, to_network: network, address: own.address, ...usd(5), reference: 'm1' };
  const elsewhere = { ...move, address: freshKey().address, reference: 'm0' };
  expect(await world.admin('POST', '/treasury/moves', elsewhere)).toMatchObject({
    status: 400,
    body: { error: { param: 'address', message: expect.stringContaining('is not in move_to') } },
  });
  // An amount that is not there would leave whenever it is.
  expect(await world.admin('POST', '/treasury/moves', { ...move, ...usd(50_000), reference: 'm0' })).toMatchObject({
    status: 422,
    body: {
      error: {
        param: 'amount_usd',
        message: expect.stringContaining('has 20 USDC that no signed transaction will take'),
      },
    },
  });
  const made = await world.admin('POST', '/treasury/moves', move);
  expect(made).toMatchObject({ status: 201, body: { data: { kind: 'move', status: 'sending', borne_by: null } } });
  expect((await world.admin('POST', '/treasury/moves', move)).body.data.id).toBe(made.body.data.id);
  expect(await world.admin('POST', '/treasury/moves', { ...move, ...usd(6) })).toMatchObject({ status: 409 });
  expect(await world.admin('POST', '/treasury/acts/nothing/cancel')).toMatchObject({
    status: 400,
    body: { error: { message: 'There is no act with this id' } },
  });
  const acts = () => world.admin<{ data: readonly Record<string, unknown>[] }>('GET', '/treasury/acts');
  await world.until(acts, ({ body }) => body.data[0]!['status'] === 'sent');
  expect((await world.admin('GET', '/payments')).body.data).toMatchObject({ transit_micro_usdc: 5_000_000 });
  expect(await world.admin('POST', `/treasury/acts/${made.body.data.id}/cancel`)).toMatchObject({
    status: 422,
    body: { error: { message: expect.stringContaining('It is too late') } },
  });
  // No fees left.
  expect((await world.admin('GET', '/withdrawals')).body.data).toEqual([]);

  // Nobody was named as its sender: the operator says which deposit it is.
  await token.transfer(own, treasury, 4_900_000n);
  const suspense = () => world.admin<{ data: readonly { id: string; payer: string }[] }>('GET', '/deposits');
  const { body } = await world.until(suspense, (answer) =>
    answer.body.data.some(({ payer: from }) => from === own.address),
  );
  const { id: deposit } = body.data.find(({ payer: from }) => from === own.address)!;
  const arrival = `/treasury/moves/${made.body.data.id}/arrival`;
  expect(await world.admin('POST', arrival, { deposit })).toMatchObject({
    status: 200,
    body: { data: { status: 'done', arrived_micro_usdc: 4_900_000, fee_micro_usdc: 100_000, fee_usd: '0.1' } },
  });
  expect((await world.admin('POST', arrival, { deposit })).body.data['status']).toBe('done');

  const good = { ...usd(0.1), paid_by: 'fees', reference: 'the fee of m1' };
  expect(await world.admin('POST', '/treasury/losses/made-good', good)).toMatchObject({
    status: 422,
    body: { error: { message: 'Nothing was booked. fees has 0 USDC' } },
  });

  // As much of the fees as the losses stays. A withdrawal that was made is told again all the same.
  const { ledger } = world.spine.app;
  const [first] = (await suspense()).body.data;
  await world.admin('POST', `/deposits/${encodeURIComponent(first!.id)}/attribute`, { account: payer.accountId });
  const from = escrowOf(payer.account);
  await ledger.transfer({ id: 'test-fees', from, to: 'fees', amount: 1_100_000n, memo: '' });
  const vault = freshKey();
  const withdraw = (key: string) =>
    world.call('POST', '/../../admin/v1/withdrawals', {
      headers: { ...bearer(world.spine.adminKey), 'idempotency-key': key },
      body: { network, address: vault.address, ...usd(1) },
    });
  const withdrawn = await withdraw('once');
  expect(withdrawn.status).toBe(201);
  expect((await withdraw('once')).body.data.id).toBe(withdrawn.body.data.id);
  expect(await withdraw('twice')).toMatchObject({
    status: 422,
    body: { error: { message: expect.stringContaining('Losses of 0.1 USDC are not paid back yet') } },
  });
  await world.until(
    () => token.balanceOf(vault.address),
    (paid) => paid === 1_000_000n,
  );
  expect(
    await world.admin('POST', '/treasury/losses/made-good', { ...good, paid_by: 'operator', reference: 'by me' }),
  ).toMatchObject({ status: 201, body: { data: { status: 'done', borne_by: 'operator', network: null } } });
  const difference = { network, ...usd(1), reference: 'none' };
  expect(
    await world.admin('POST', '/treasury/differences', { ...difference, more: true, borne_by: 'fees' }),
  ).toMatchObject({ status: 400, body: { error: { param: 'borne_by' } } });
  expect(await world.admin('POST', '/treasury/differences', difference)).toMatchObject({
    status: 422,
    body: { error: { message: expect.stringContaining('this is not the difference') } },
  });
  expect((await world.admin('GET', '/audit?chain=true')).body.data).toMatchObject({
    ok: true,
    chains: { ok: true, losses: 0, transit: 0, chains: [{ held: 18_900_000, booked: 18_900_000 }] },
  });
});
