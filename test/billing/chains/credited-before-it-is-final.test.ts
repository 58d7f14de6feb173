import { expect, onTestFinished, test } from 'vitest';
import { createDepositRows } from '../../../src/billing/chains/deposit-rows.ts';
import { createChainRows } from '../../../src/billing/chains/chain-rows.ts';
import { ENGINES, openEngine } from '../../support/engines.ts';

const COUNT = 60;
const LIMIT = { chain: 100n, strangers: 1_000n };
/** Of two chains together. */
const SHARED = { chain: 100n, strangers: 150n };

test.each(ENGINES)(
  'payments that three gateways see at once are not lent out beyond the limit (%s)',
  async (engine) => {
    const opened = await openEngine(engine);
    onTestFinished(() => opened.dispose());
    const { database } = opened;
    const others = engine === 'postgres' ? [await opened.again(), await opened.again()] : [];
    const gateways = [database, ...others].map((one) => createDepositRows(one, { now: Date.now }));
    const books = createChainRows(database, { now: Date.now });
    const book = { asset: 'a', treasury: 't', opening: 0n, cursor: '0', height: 0n };
    for (const network of ['n', 'm']) await books.insert({ network, ...book });
    const at = (index: number) => gateways[index % gateways.length]!;
    const ids = Array.from({ length: COUNT }, (_, index) => `d${index}`);
    const row = { network: 'n', account: 'a', payer: 'p', amount: 10n, payment: null, request: null };
    await Promise.all(ids.map((id, index) => at(index).insert({ ...row, id }, 0, null)));
    const event = { transaction: 't', amount: 10n, height: 1n, confirmations: 1 };
    const noted = await Promise.all(
      ids.map((id, index) => at(index).noteEvent(id, { ...event, id, final: false }, LIMIT, 0)),
    );
    expect(noted.filter((one) => one !== null)).toHaveLength(10);
    // What is final is no loan.
    const left = ids.find((_, index) => noted[index] === null)!;
    expect(await at(0).noteEvent(left, { ...event, id: left, final: true }, LIMIT, 0)).toMatchObject({
      state: 'crediting',
    });

    // Wallets without an account of their own have one limit more, over all chains. 110 are theirs already.
    const more = ids.map((id) => `more ${id}`);
    await Promise.all(more.map((id, index) => at(index).insert({ ...row, network: 'm', id }, 0, null)));
    const shared = await Promise.all(
      more.map((id, index) => at(index).noteEvent(id, { ...event, id, final: false }, SHARED, 0)),
    );
    expect(shared.filter((one) => one !== null)).toHaveLength(4);
    await at(0).insert({ ...row, network: 'm', id: 'known', account: 'tollgate:local:acme' }, 0, null);
    expect(await at(1).noteEvent('known', { ...event, id: 'known', final: false }, SHARED, 0)).not.toBeNull();
  },
);

test('what came in after a withdrawal was taken does not hold it up', async () => {
  const opened = await openEngine('sqlite');
  onTestFinished(() => opened.dispose());
  const rows = createDepositRows(opened.database, { now: () => 1_000 });
  await rows.insert(
    { id: 'd', network: 'n', account: 'a', payer: 'p', amount: 10n, payment: null, request: null },
    0,
    null,
  );
  await rows.noteEvent(
    'd',
    { id: 'e', transaction: 't', amount: 10n, height: 1n, confirmations: 1, final: false },
    LIMIT,
    0,
  );
  expect([await rows.unfinal('a', 999), await rows.unfinal('a', 1_000)]).toEqual([false, true]);
});
