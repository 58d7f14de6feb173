import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { audit, createLedger, createPriceBook } from '#billing/compose';
import { escrowOf, type PriceVersion, treasuryOf } from '#billing';
import { cost, priceId, ratesToJson, usageToText, type Rates } from '#billing/amounts';
import { adHoc } from '../support/ad-hoc.ts';
import { ENGINES, openEngine, type OpenedEngine } from '../support/engines.ts';

// The audit finds a charge by the wrong tier, and a price version whose tiers were changed.

const version = (rates: Rates): PriceVersion => ({ id: priceId('p', 's', rates), provider: 'p', service: 's', rates });
const TIERED = version({
  prompt: 2_000_000n,
  completion: 10_000_000n,
  tiers: [{ above: 200n, rates: { prompt: 4_000_000n, completion: 15_000_000n } }],
});
const FLEX = version({ prompt: 1_000_000n, completion: 5_000_000n });
const LONG = { prompt: 101n, input_cache_read: 100n, completion: 1n };

describe.each(ENGINES)('%s', (name) => {
  let engine: OpenedEngine;
  beforeEach(async () => {
    engine = await openEngine(name);
    const book = createPriceBook(engine.database);
    await book.remember([TIERED, FLEX]);
    expect((await createPriceBook(engine.database).find(TIERED.id))!.rates).toEqual(TIERED.rates);
    const ledger = await createLedger({ database: engine.database, now: () => 1_000 });
    await ledger.transfer({ id: 'fund', from: treasuryOf('test'), to: escrowOf('a'), amount: 10_000n, memo: '' });
    const prices = [TIERED.id, FLEX.id];
    await ledger.lock({ id: 'long', account: 'a', amount: 2_000n, prices, expiresAt: 2_000, detail: '{}' });
    await ledger.settle({
      id: 'long',
      price: TIERED.id,
      provider: 'p',
      feeBps: 0,
      charge: cost(TIERED.rates, LONG),
      draw: false,
      usage: usageToText(LONG),
      detail: '{"outcome":"complete"}',
    });
    await ledger.close();
  });
  afterEach(() => engine.dispose());

  const failing = async () =>
    (await audit(engine.database, { overdueMs: null })).checks.filter(({ ok }) => !ok).map((check) => check.name);
  const change = async (text: string) => {
    await engine.database.batch([{ statement: adHoc(text) }]);
    return failing();
  };

  test('a charge of the tier that its usage is in passes', async () => {
    expect(cost(TIERED.rates, LONG)).toBe(819n);
    expect(await failing()).toEqual([]);
  });

  test('a charge of the second tier for a prompt of the first is told', async () => {
    const at = { ...LONG, prompt: 100n };
    expect(await change(`UPDATE locks SET usage = '${usageToText(at)}' WHERE id = 'long'`)).toEqual(['charges']);
  });

  test.each<[string, Rates]>([
    ['a threshold', { ...TIERED.rates, tiers: [{ above: 201n, rates: TIERED.rates.tiers![0]!.rates }] }],
    [
      'a rate of a tier',
      { ...TIERED.rates, tiers: [{ above: 200n, rates: { prompt: 4_000_001n, completion: 15_000_000n } }] },
    ],
  ])('%s that was changed is told', async (_what, rates) => {
    const json = JSON.stringify(ratesToJson(rates));
    expect(await change(`UPDATE prices SET rates = '${json}' WHERE id = '${TIERED.id}'`)).toContain('prices');
  });

  test('a charge by a version that the lock does not name is told', async () => {
    expect(await change(`UPDATE locks SET prices = '["${FLEX.id}"]' WHERE id = 'long'`)).toEqual(['charges']);
  });
});
