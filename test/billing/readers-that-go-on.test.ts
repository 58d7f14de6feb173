import { expect, onTestFinished, test } from 'vitest';
import { audit, createBill, createLedger, createPriceBook } from '#billing/compose';
import { CancelSource } from '#billing/amounts';
import { CRASH_PRICE } from '../support/crash-price.ts';
import { openEngine } from '../support/engines.ts';

/* A route may read a reply on after its client has left, to keep it or to learn of a task. The bound holds there. */

const PIECE = 100;
const DRAIN_BYTES = 1_000;
/** A reply that ends by itself, so that a test without the bound ends too. */
const PIECES_MAX = 1_000;

test('after its client has left, a reply that is read on is ended at the bound', async () => {
  const { database, dispose } = await openEngine('sqlite');
  const ledger = await createLedger({ database });
  onTestFinished(async () => {
    await ledger.close();
    await dispose();
  });
  await createPriceBook(database).remember([CRASH_PRICE]);
  await ledger.transfer({ id: 'fund', from: 'treasury:test', to: 'escrow:a', amount: 1_000n, memo: '' });
  const bill = createBill({
    ledger,
    lockOf: ({ id }) => ({
      id,
      account: 'a',
      amount: 100n,
      prices: [CRASH_PRICE.id],
      expiresAt: Date.now() + 600_000,
      detail: '{}',
    }),
    feeBps: 0,
    drainMs: 600_000,
    drainBytes: DRAIN_BYTES,
    refuse: (_call, { reason }) => new Error(reason),
    receipt: () => null,
    onStarted: () => {},
    onRefused: () => {},
    onResolved: () => {},
  });
  const call = {
    id: 'gen-1',
    candidates: [{ price: CRASH_PRICE, estimate: 100n }],
    continues: null,
    parent: null,
    lendable: 0n,
    adapter: {},
  };
  const client = new CancelSource();
  const end = { type: 'end', price: CRASH_PRICE.id, provider: 'p', providerName: 'p', usage: { call: 7n } } as const;
  const frames = bill(async function* (_call, upstream) {
    for (let n = 0; n < PIECES_MAX && !upstream.aborted; n += 1)
      yield { type: 'data', data: new Uint8Array(PIECE) } as const;
    yield { ...end, outcome: 'complete', estimated: false, detail: {}, result: null } as const;
  })(call, client);
  let pieces = 0;
  for await (const { type } of frames) {
    if (type === 'data') pieces += 1;
    client.abort();
  }
  // The first came before the client left, and the last is the one beyond the bound.
  expect(pieces).toBe(DRAIN_BYTES / PIECE + 2);
  expect(await ledger.find('gen-1')).toMatchObject({ state: 'settled', charged: 7n });
  expect((await audit(database)).checks.filter(({ ok }) => !ok)).toEqual([]);
});
