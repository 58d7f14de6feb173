import { getApproveInstruction, getMintToInstruction } from '@solana-program/token';
import type { Address, Instruction } from '@solana/kit';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { createHandover } from '../../../src/billing/chains/handover.ts';
import type { Incoming, IncomingPage } from '../../../src/billing/chains/chain.ts';
import { ataOf, mintBytes, TOKEN_PROGRAM, USDC } from '../../support/chain/solana-accounts.ts';
import { startRpcFaultProxy } from '../../support/chain/rpc-fault-proxy.ts';
import { solanaStage, type SolanaStage } from '../../support/chain/solana-stage.ts';
import { memo, newPayer, pay, plainTransfer, send, transfer, type Payer } from '../../support/chain/solana-wallet.ts';

/**
 * All that comes into the treasury is told once, in order, when it is final: payments, plain transfers, and what
 * nobody can be found for.
 */
const MANY = process.env['TOLLGATE_DEEP'] === '1' ? 300 : 47;

let stage: SolanaStage;
let payer: Payer;
beforeEach(async () => {
  stage = await solanaStage();
  payer = await stage.payer();
  stage.twin.fundSol(payer.address, 10_000_000_000n);
});
afterEach(() => stage.close());

/** Slots pass until the node's lists are read up to now. */
function settle(): void {
  stage.twin.advance(stage.twin.chain.finalizeAfter + 32);
}

async function begin(): Promise<string> {
  settle();
  const { cursor, events } = await stage.chain.incoming(null);
  expect(events).toEqual([]);
  return cursor;
}

async function all(from: string): Promise<{ events: Incoming[]; cursor: string; pages: IncomingPage[] }> {
  const pages: IncomingPage[] = [];
  let cursor = from;
  do {
    pages.push(await stage.chain.incoming(cursor));
    cursor = pages.at(-1)!.cursor;
  } while (pages.at(-1)!.more);
  return { events: pages.flatMap(({ events }) => events), cursor, pages };
}

const toTreasury = (amount: bigint, from = payer) =>
  transfer({ from: from.address, to: stage.treasury.address, amount });

test('signed payments and plain transfers with a memo arrive once each, when they are final', async () => {
  const { twin, chain } = stage;
  await send(twin, payer, [toTreasury(11n), memo('from before')]);
  const start = await begin();
  const payment = chain.read(await pay(twin, payer, await chain.requirements(1_000n, 'solana:me')));
  await chain.submit(payment);
  const plain = await send(twin, payer, [memo('for solana:me'), toTreasury(2_000n)]);
  const old = await send(twin, payer, [plainTransfer(payer.address, stage.treasury.address, 3_000n)]);
  expect((await chain.incoming(start)).events).toEqual([]);
  twin.finalize();
  expect((await chain.incoming(start)).events).toEqual([]);
  settle();
  const { events, cursor } = await all(start);
  expect(events).toMatchObject([
    { amount: 1_000n, sender: payer.address, paymentId: payment.id, memo: 'solana:me', final: true },
    { id: `${plain}:0`, transaction: plain, amount: 2_000n, sender: payer.address, memo: 'for solana:me' },
    { id: `${old}:0`, amount: 3_000n, sender: payer.address, memo: null },
  ]);
  expect(events[0]!.id).toBe(
    `${((await chain.find(payment, null)) as { event: { transaction: string } }).event.transaction}:0`,
  );
  expect(await all(cursor)).toMatchObject({ events: [] });
});

test('what only mentions the treasury’s account is no event: failures, nothing at all, and what goes out', async () => {
  const { twin, chain } = stage;
  await send(twin, payer, [toTreasury(5_000_000n)]);
  const start = await begin();
  await send(twin, payer, [toTreasury(0n)]);
  await expect(send(twin, payer, [toTreasury(99_000_000n)])).rejects.toThrow('InstructionError');
  const receiver = await stage.payer();
  const payout = { id: 'withdrawal-1', to: receiver.address, amount: 2_000_000n };
  await chain.send(payout, await chain.sign(payout, null));
  settle();
  expect((await all(start)).events).toEqual([]);
  expect(twin.chain.tokens(stage.treasury.address)).toBe(3_000_000n);
});

test('two treasuries of a handover are read to one slot, however fast slots come', async () => {
  const { twin } = stage;
  const next = await newPayer();
  twin.fundUsdc(next.address, 0n);
  const proxy = await startRpcFaultProxy(twin.url);
  onTestFinished(() => proxy.stop());
  const current = stage.another({ treasuryKey: next.secret, rpcUrl: proxy.url });
  const handover = createHandover(current, stage.another({ rpcUrl: proxy.url }));
  settle();
  // One with each question.
  proxy.set({
    when() {
      twin.advance(1);
      return false;
    },
    fault: { kind: 'refuse' },
  });
  let { cursor } = await handover.incoming(null);
  expect(await handover.balanceAt(cursor)).toBe(0n);
  const balances: (bigint | null)[] = [];
  let events = 0;
  for (let turn = 0; turn < 6; turn += 1) {
    await send(twin, payer, [toTreasury(1n), transfer({ from: payer.address, to: next.address, amount: 2n })]);
    settle();
    const page = await handover.incoming(cursor);
    events += page.events.length;
    cursor = page.cursor;
    balances.push(await handover.balanceAt(cursor));
  }
  expect(balances.filter((balance) => balance !== null).length).toBeGreaterThanOrEqual(3);
  for (const balance of balances) if (balance !== null) expect(balance % 3n).toBe(0n);
  expect(events).toBeGreaterThanOrEqual(6);
});

test('what a delegate moves comes from who owns it', async () => {
  const { twin } = stage;
  const owner = await stage.payer();
  twin.fundSol(owner.address);
  const authority = { address: owner.address, signTransactions: () => Promise.resolve([]) };
  await send(twin, owner, [
    getApproveInstruction({
      source: ataOf(owner.address) as Address,
      delegate: payer.address,
      owner: authority,
      amount: 50n,
    }),
  ]);
  const start = await begin();
  await send(twin, payer, [
    transfer({ from: payer.address, to: stage.treasury.address, amount: 50n, source: ataOf(owner.address) }),
  ]);
  settle();
  expect((await all(start)).events).toMatchObject([{ amount: 50n, sender: owner.address }]);
});

test('several senders in one transaction are several events; what cannot be told apart has no sender', async () => {
  const { twin } = stage;
  const second = await stage.payer();
  const start = await begin();
  const shared = await send(twin, payer, [toTreasury(100n), toTreasury(20n, second), toTreasury(3n)], [second]);
  // A mint that this wallet may print.
  twin.chain.setAccount(USDC, {
    lamports: twin.chain.rent(82),
    data: mintBytes(payer.address, 10n ** 15n, 6),
    programAddress: TOKEN_PROGRAM,
    executable: false,
  });
  const authority = { address: payer.address, signTransactions: () => Promise.resolve([]) };
  const print: Instruction = getMintToInstruction({
    mint: USDC as Address,
    token: ataOf(stage.treasury.address) as Address,
    mintAuthority: authority,
    amount: 7n,
  });
  const printed = await send(twin, payer, [print, toTreasury(1n)]);
  settle();
  const { events } = await all(start);
  expect(events).toMatchObject([
    { id: `${shared}:0`, amount: 100n, sender: payer.address, paymentId: null },
    { id: `${shared}:1`, amount: 20n, sender: second.address, paymentId: null },
    { id: `${shared}:2`, amount: 3n, sender: payer.address, paymentId: null },
    { id: `${printed}:0`, amount: 8n, sender: '', paymentId: null },
  ]);
});

test('pages are in order, without a gap and without a repetition, wherever reading is taken up again', async () => {
  const { twin } = stage;
  const start = await begin();
  const sent: string[] = [];
  for (let at = 1; at <= MANY; at += 1) {
    sent.push(await send(twin, payer, [toTreasury(BigInt(at))]));
    // Several in one slot: they are told apart by their signatures only.
    if (at % 3 !== 0) twin.chain.slot -= 1;
  }
  twin.advance(1);
  settle();
  const { events, pages } = await all(start);
  expect(events.map(({ transaction }) => transaction)).toEqual(sent);
  expect(events.map(({ amount }) => amount)).toEqual(sent.map((_, at) => BigInt(at + 1)));
  // A process that starts at any of these cursors reads the same rest.
  const other = stage.another();
  let cursor = pages[0]!.cursor;
  const rest: Incoming[] = [];
  for (let page = 1; page < pages.length; page += 1) {
    const next = await other.incoming(cursor);
    rest.push(...next.events);
    cursor = next.cursor;
  }
  expect([...pages[0]!.events, ...rest]).toEqual(events);
  for (const page of pages) {
    const read = pages.slice(0, pages.indexOf(page) + 1).flatMap((one) => one.events);
    expect(events.filter(({ height }) => height <= page.height).every((one) => read.includes(one))).toBe(true);
  }
});

test('a cursor that the node’s history does not reach back to is an error, not an end', async () => {
  const { twin, chain } = stage;
  const start = await begin();
  await send(twin, payer, [toTreasury(9n)]);
  settle();
  twin.advance(500);
  twin.faults.forgetBefore = twin.chain.slot - 100;
  await expect(chain.incoming(start)).rejects.toMatchObject({
    name: 'ChainUnavailable',
    message: /does not reach back/,
  });
  twin.faults.forgetBefore = 0;
  expect((await chain.incoming(start)).events).toMatchObject([{ amount: 9n }]);
  // A node of a pool that has just begun: others have the history, it lists nothing.
  twin.faults.lie = (method, honest) => (method === 'getSignaturesForAddress' ? [] : honest);
  await expect(stage.another().incoming(start)).rejects.toMatchObject({ name: 'ChainUnavailable' });
  twin.faults.lie = null;
  await expect(chain.incoming('nonsense')).rejects.toThrow(/cursor of Solana/);
});

test('a treasury that was idle for longer than the node remembers goes on', async () => {
  const { twin, chain } = stage;
  let cursor = await begin();
  twin.advance(1_000);
  ({ cursor } = await chain.incoming(cursor));
  twin.faults.forgetBefore = twin.chain.slot - 200;
  await send(twin, payer, [toTreasury(9n)]);
  settle();
  const page = await stage.another().incoming(cursor);
  expect(page.events).toMatchObject([{ amount: 9n }]);
  expect((await chain.incoming(page.cursor)).events).toEqual([]);
});

test('a node that is behind does not make a page', async () => {
  const { twin, chain } = stage;
  let start = await begin();
  twin.advance(300);
  start = (await chain.incoming(start)).cursor;
  await send(twin, payer, [toTreasury(9n)]);
  settle();
  twin.faults.staleBy = 200;
  await expect(chain.incoming(start)).rejects.toMatchObject({ name: 'ChainUnavailable' });
  // A late one of a pool.
  twin.faults.staleBy = 0;
  twin.faults.lie = (method, honest) => (method === 'getTransaction' ? null : honest);
  await expect(chain.incoming(start)).rejects.toMatchObject({ name: 'ChainUnavailable' });
  twin.faults.lie = null;
  expect((await chain.incoming(start)).events).toMatchObject([{ amount: 9n }]);
});

test('the balance is told for a cursor, whatever has come after it', async () => {
  const { twin, chain } = stage;
  await send(twin, payer, [toTreasury(40n)]);
  settle();
  const start = await begin();
  expect(await chain.balanceAt(start)).toBe(40n);
  await send(twin, payer, [toTreasury(2n)]);
  expect(await chain.balanceAt(start)).toBe(40n);
  twin.finalize();
  expect(await chain.balanceAt(start)).toBe(40n);
  settle();
  const { cursor } = await all(start);
  expect(await chain.balanceAt(cursor)).toBe(42n);
});

test('a treasury that never rests is compared: each time something came after the cursor', async () => {
  const { twin, chain } = stage;
  let cursor = await begin();
  const balances: (bigint | null)[] = [];
  for (let turn = 0; turn < 4; turn += 1) {
    // Two in one slot, and one that is final and not read yet.
    await send(twin, payer, [toTreasury(10n)]);
    twin.chain.slot -= 1;
    await send(twin, payer, [toTreasury(20n)]);
    settle();
    await send(twin, payer, [toTreasury(300n)]);
    twin.finalize();
    ({ cursor } = await all(cursor));
    balances.push(await chain.balanceAt(cursor));
  }
  expect(balances).toEqual([30n, 360n, 690n, 1_020n]);
});

test('a node that lists the transactions of a slot in another order tells no balance', async () => {
  const { twin, chain } = stage;
  const start = await begin();
  await send(twin, payer, [toTreasury(10n)]);
  twin.chain.slot -= 1;
  await send(twin, payer, [toTreasury(20n)]);
  settle();
  await send(twin, payer, [toTreasury(300n)]);
  twin.finalize();
  twin.faults.lie = (method, honest) => {
    if (method !== 'getSignaturesForAddress') return honest;
    const [newest, second, first, ...older] = honest as unknown[];
    return [newest, first, second, ...older];
  };
  const { cursor } = await all(start);
  expect(await chain.balanceAt(cursor)).toBeNull();
});

test('a slot that ends as it began tells no balance, because its order cannot be known', async () => {
  const { twin, chain, treasury } = stage;
  twin.fundSol(treasury.address, 10_000_000_000n);
  await send(twin, payer, [toTreasury(10n)]);
  const start = await begin();
  await send(twin, payer, [toTreasury(5n)]);
  twin.chain.slot -= 1;
  await send(twin, treasury, [transfer({ from: treasury.address, to: payer.address, amount: 5n })]);
  settle();
  await send(twin, payer, [toTreasury(300n)]);
  twin.finalize();
  twin.faults.lie = (method, honest) => {
    if (method !== 'getSignaturesForAddress') return honest;
    const [newest, second, first, ...older] = honest as unknown[];
    return [newest, first, second, ...older];
  };
  const { cursor } = await all(start);
  // In the order of the list, the slot would end with 15.
  expect(await chain.balanceAt(cursor)).toBeNull();
});
