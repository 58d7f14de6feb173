import { afterEach, describe, expect, it } from 'vitest';
import { createLedger, createPriceBook, findLocks } from '#billing/compose';
import { escrowOf, treasuryOf } from '#billing';
import { priceId } from '#billing/amounts';
import { ENGINES, openEngine, type OpenedEngine } from '../support/engines.ts';

let opened: OpenedEngine | null = null;
afterEach(async () => {
  await opened?.dispose();
  opened = null;
});

const NEWEST = { at: 1_000_000, id: '' };

describe.each(ENGINES)('the locks of an account on %s', (engine) => {
  it('are found part by part, the newest first, each of them once', async () => {
    opened = await openEngine(engine);
    const { database } = opened;
    let now = 1_000;
    const ledger = await createLedger({ database, now: () => now });
    try {
      const rates = { call: 1n };
      const price = priceId('p', 's', rates);
      await createPriceBook(database, () => now).remember([{ id: price, provider: 'p', service: 's', rates }]);
      await ledger.transfer({
        id: 'fund',
        from: treasuryOf('operator'),
        to: escrowOf('alice'),
        amount: 1_000n,
        memo: '',
      });
      await ledger.transfer({
        id: 'fund-2',
        from: treasuryOf('operator'),
        to: escrowOf('bob'),
        amount: 1_000n,
        memo: '',
      });
      const expected: string[] = [];
      for (let i = 0; i < 40; i++) {
        // Four of a millisecond.
        now = 1_000 + Math.floor(i / 4);
        const id = `gen-${String(i).padStart(2, '0')}`;
        const account = i % 5 === 0 ? 'bob' : 'alice';
        const detail = JSON.stringify({ primitive: i % 2 === 0 ? 'tool' : 'model', service: 's', key: null });
        expect(
          await ledger.lock({ id, account, amount: 1n, prices: [price], expiresAt: now + 9_000, detail }),
        ).toMatchObject({ ok: true });
        if (account === 'alice') expected.unshift(id);
      }
      const all = async (more: object, slice: number) => {
        const found: string[] = [];
        let before: { at: number; id: string } | null = NEWEST;
        while (before) {
          const part = await findLocks(database, { account: 'alice', before, from: 0, limit: 3, ...more }, slice);
          found.push(...part.records.map(({ id }) => id));
          before = part.next;
        }
        return found;
      };
      for (const slice of [1, 2, 5, 1_000]) expect(await all({}, slice)).toEqual(expected);
      const tools = expected.filter((id) => Number(id.slice(4)) % 2 === 0);
      for (const slice of [1, 7, 1_000]) expect(await all({ begins: '{"primitive":"tool"' }, slice)).toEqual(tools);
      expect(await all({ state: 'settled' }, 7)).toEqual([]);
      expect(await all({ from: 1_008 }, 7)).toEqual(expected.filter((id) => Number(id.slice(4)) >= 32));
    } finally {
      await ledger.close();
    }
  });
});
