import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { createActRows } from '../../../src/billing/chains/act-rows.ts';
import { createDepositRows } from '../../../src/billing/chains/deposit-rows.ts';
import { createHandoverCare } from '../../../src/billing/chains/handover.ts';
import { createWithdrawalRows } from '../../../src/billing/chains/withdrawal-rows.ts';
import { adHoc } from '../../support/ad-hoc.ts';
import { evmMoney, solanaMoney } from '../../support/chain/money-chain.ts';
import { openMoneyWorldOn, type MoneyWorld, type Payer } from '../../support/chain/money-world.ts';

/*
 * The signed text of one withdrawal is damaged in the database. The other withdrawals are paid, the books are compared
 * with the treasury, and the operator is told.
 */

const PAID = 5_000_000n;
const PUT = adHoc('UPDATE withdrawals SET signed = $2 WHERE id = $1 RETURNING id');
const GET = adHoc('SELECT signed FROM withdrawals WHERE id = $1');
const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const NO_JSON = ['is no JSON', 'damaged'] as const;
const NO_PAYOUT = ['has no payout in it', '{"text":"{}","transaction":null}'] as const;

describe.each([
  ['an EVM chain', evmMoney, NO_JSON],
  ['Solana', solanaMoney, NO_PAYOUT],
] as const)('over %s', (_name, startChain, everyday) => {
  let world: MoneyWorld;
  let payer: Payer;
  beforeAll(async () => {
    world = await openMoneyWorldOn(await startChain());
    payer = await world.payer();
    const gateway = await world.gateway();
    const { payment } = await gateway.sign(payer, PAID);
    await gateway.chains.deposits.take(payment, { account: payer.account, request: null });
    await world.settle(gateway);
    await gateway.close();
  });
  afterAll(() => world.close());

  test.each(DEEP ? [NO_JSON, NO_PAYOUT] : [everyday])(
    'one whose text %s stops neither the others nor the comparisons',
    async (_what, damaged) => {
      const gateway = await world.gateway();
      const { withdrawals, withdrawalRows } = gateway.chains;
      const ask = async (name: string, amount: bigint, handedOut: boolean) => {
        const id = `${name} of ${damaged}`;
        const { network } = world;
        const { account, address } = payer;
        await withdrawals.request({ id, network, account, source: escrowOf(account), address, amount, handedOut });
        return id;
      };
      const stateOf = async (id: string) => (await withdrawalRows.find(id))!.state;

      const one = await ask('one', 1_000_000n, true);
      await expect.poll(() => stateOf(one)).toBe('signed');
      const [kept] = await world.database.query(GET, [one]);
      await world.database.query(PUT, [one, damaged]);
      const other = await ask('other', 400_000n, false);
      await expect
        .poll(async () => {
          await world.finalize();
          await gateway.chains.audit();
          return stateOf(other);
        })
        .toBe('paid');
      const [compared] = await gateway.chains.audit();
      expect(compared!.error).toBeNull();
      expect(compared!.reserves!.held).toBe(compared!.reserves!.booked);
      await expect.poll(() => gateway.problems.join('\n')).toContain('a signed withdrawal cannot be read');

      // Nobody knows which treasury signed it. So the one that hands over keeps its key, and what this may pay.
      const now = Date.now;
      const { database, network } = world;
      const care = createHandoverCare({
        acts: { begin: () => Promise.reject(new Error('nothing is moved')) },
        actRows: createActRows(database, { now }),
        withdrawalRows: createWithdrawalRows(database, { now }),
        depositRows: createDepositRows(database, { now }),
        now,
      });
      const isUnderWay = () => care.isUnderWay(gateway.chains.chain(network)!, payer.address);
      expect(await isUnderWay()).toBe(true);

      expect(await withdrawals.submit(one)).not.toBeNull();
      await world.database.query(PUT, [one, kept!['signed']!]);
      expect(await isUnderWay()).toBe(false);
      await gateway.close();
      await world.settle();
      expect(await createWithdrawalRows(database, { now }).find(one)).toMatchObject({ state: 'paid' });
    },
  );
});
