import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { createLedger } from '#billing/compose';
import { escrowOf, type Ledger } from '#billing';
import type { Incoming } from '../../../src/billing/chains/chain.ts';
import { createDepositRows, type DepositRows } from '../../../src/billing/chains/deposit-rows.ts';
import { createDeposits, type Deposits } from '../../../src/billing/chains/deposits.ts';
import { openTestDatabase } from '../../gateway/test-database.ts';

// What came in by plain transfers of nobody who is known, and who is given it.

const SENDER = '0xAb5801a7D398351b8bE11C439e05C5B3259aeC9B';
const ACCOUNT = 'eip155:1:0xab5801a7d398351b8be11c439e05c5b3259aec9b';

let ledger: Ledger;
let rows: DepositRows;
let deposits: Deposits;
let now = 1_000;
beforeEach(async () => {
  const database = await openTestDatabase('sqlite');
  ledger = await createLedger({ database });
  onTestFinished(() => ledger.close());
  rows = createDepositRows(database, { now: () => now });
  deposits = createDeposits({
    rows,
    ledger,
    chainOf: () => null,
    policyOf: () => ({ confirmations: 1, unfinalMax: 0n }),
    strangersMax: 1_000_000n,
    waitMs: 0,
    recall: async () => {},
    namesAnother: () => false,
    attribute: async () => null,
    onProblem() {},
    now: () => now,
    signal: new AbortController().signal,
  });
});

async function send(network: string, amount: bigint): Promise<string> {
  now += 1;
  const event: Incoming = {
    id: `t${now}:0`,
    transaction: `t${now}`,
    amount,
    height: 1n,
    confirmations: 1,
    final: true,
    sender: SENDER,
    paymentId: null,
    memo: null,
  };
  await deposits.arrived(event, network);
  return `${network}/${event.id}`;
}
const balance = async (account: string) => (await ledger.balance(account))?.available ?? 0n;

test('the contract of one chain is not given what its address sent on another', async () => {
  await send('eip155:1', 1n);
  const elsewhere = await send('eip155:2', 2n);
  expect(await deposits.attribute(SENDER, ACCOUNT, 'eip155:1')).toMatchObject([{ network: 'eip155:1', credited: 1n }]);
  expect(await deposits.attribute(SENDER, ACCOUNT, 'eip155:1')).toEqual([]);
  expect([await balance(escrowOf(ACCOUNT)), await balance('suspense')]).toEqual([1n, 2n]);
  expect((await rows.suspense(null, 10)).map(({ id }) => id)).toEqual([elsewhere]);
});

test('an ordinary wallet is given what it sent on any', async () => {
  await send('eip155:1', 1n);
  await send('eip155:2', 2n);
  expect(await deposits.attribute(SENDER, 'eip155:x', null)).toHaveLength(2);
  expect([await balance(escrowOf('eip155:x')), await balance('suspense')]).toEqual([3n, 0n]);
});

test('a wallet is given all that it sent, also when that is much', async () => {
  for (let sent = 0; sent < 101; sent += 1) await send('eip155:2', 1n);
  await send('eip155:1', 1n);
  expect(await deposits.attribute(SENDER, ACCOUNT, 'eip155:1')).toHaveLength(1);
  expect(await deposits.attribute(SENDER, 'eip155:x', null)).toHaveLength(101);
  expect([await balance(escrowOf('eip155:x')), await balance('suspense')]).toEqual([101n, 0n]);
});

test('one by one it is given once, to whoever is named', async () => {
  const id = await send('eip155:1', 5n);
  const given = await Promise.all([deposits.attributeOne(id, 'a'), deposits.attributeOne(id, 'b')]);
  expect(given.filter((one) => one !== null)).toHaveLength(1);
  expect((await balance(escrowOf('a'))) + (await balance(escrowOf('b')))).toBe(5n);
  expect(await deposits.attributeOne('nothing', 'a')).toBeNull();
  expect(await balance('suspense')).toBe(0n);
});

test('it is listed page by page, the newest first', async () => {
  const ids = [await send('eip155:1', 1n), await send('eip155:1', 2n), await send('eip155:1', 3n)].toReversed();
  const first = await rows.suspense(null, 2);
  const rest = await rows.suspense(first.at(-1)!, 2);
  expect([...first, ...rest].map(({ id }) => id)).toEqual(ids);
});

test('a deposit that was undone for good and comes after all is nobody’s, and no wallet can claim it', async () => {
  const id = 'eip155:1/asset/payer/nonce';
  const event: Incoming = {
    id: 'late:0',
    transaction: 'late',
    amount: 5n,
    height: 1n,
    confirmations: 1,
    final: true,
    sender: SENDER,
    paymentId: id,
    memo: null,
  };
  await rows.insert(
    { id, network: 'eip155:1', account: ACCOUNT, payer: SENDER, amount: 5n, payment: null, request: null },
    0,
    null,
  );
  await rows.noteEvent(id, { ...event, final: false }, { chain: 100n, strangers: 100n }, 0);
  await rows.markCredited(id, 0);
  await rows.beginReversal(id, 'undone');
  await rows.endReversal(id);
  await deposits.arrived(event, 'eip155:1');
  await deposits.arrived(event, 'eip155:1');
  expect([await balance('suspense'), await balance(escrowOf(ACCOUNT))]).toEqual([5n, 0n]);
  expect(await deposits.attribute(SENDER, ACCOUNT, null)).toEqual([]);
  const [late] = await rows.suspense(null, 10);
  expect(await deposits.attributeOne(late!.id, ACCOUNT)).not.toBeNull();
  expect([await balance('suspense'), await balance(escrowOf(ACCOUNT))]).toEqual([0n, 5n]);
});
