import { expect, onTestFinished, test } from 'vitest';
import { audit, createLedger, createPriceBook } from '#billing/compose';
import { priceId } from '#billing/amounts';
import { createQuotes } from '#call/compose';
import type { Call } from '#call';
import { adHoc } from '../../support/ad-hoc.ts';
import { ENGINES, openTestDatabase } from '../test-database.ts';

// An account may have 1,000 quotes that a call can still use. Quotes that were used do not count. What a quote needs is
// in its own row.

const MOST = 1_000;
const AT_ONCE = 20;
const rates = { call: 10_000_000_000n };
const provider = { id: 'provider', name: 'Provider' };
const offer = { id: 'tool/provider:a/tool', service: 'a/tool', provider };
const candidates = [{ offer, price: { id: priceId('provider', 'a/tool', rates), rates }, estimate: 10_000n }];
const call = {
  caller: { account: 'tollgate:local:busy', key: null, wallet: null },
  primitive: 'tool',
  service: 'a/tool',
  operation: null,
  lendable: 0n,
  candidates,
} as unknown as Call;

test.each(ENGINES)('%s: quotes that were used leave room for others', async (engine) => {
  const database = await openTestDatabase(engine);
  const now = () => 1_000_000;
  const ledger = await createLedger({ database, now });
  onTestFinished(() => ledger.close());
  const quotes = createQuotes({ database, ledger, prices: createPriceBook(database, now), validMs: 300_000, now });
  const give = () => quotes.give(call, call.candidates);
  const given = [];
  // A few at a time, because a connection of the pool is waited for only for three seconds.
  for (let from = 0; from < MOST; from += AT_ONCE)
    given.push(...(await Promise.all(Array.from({ length: AT_ONCE }, give))));
  await expect(give()).rejects.toThrow('This account has 1000 quotes');
  await quotes.claim(given[0]!.id, 'gen-1');
  const next = await give();
  await expect(give()).rejects.toThrow('This account has 1000 quotes');
  // A quote whose call failed can be used again, and counts again.
  await quotes.claim(next.id, 'gen-2');
  await quotes.free(next.id, 'gen-2');
  await expect(give()).rejects.toThrow('This account has 1000 quotes');
});

test.each(ENGINES)('%s: a quote of a call that costs nothing is for one call, too', async (engine) => {
  const database = await openTestDatabase(engine);
  const now = () => 1_000_000;
  const ledger = await createLedger({ database, now });
  onTestFinished(() => ledger.close());
  const quotes = createQuotes({ database, ledger, prices: createPriceBook(database, now), validMs: 300_000, now });
  const price = { id: priceId('provider', 'a/tool', {}), rates: {} };
  const free = candidates.map((one) => ({ ...one, price, estimate: 0n })) as unknown as Call['candidates'];
  const { id } = await quotes.give(call, free);
  await quotes.claim(id, 'gen-1');
  const { account } = call.caller;
  await ledger.lock({ id: 'gen-1', account, amount: 0n, prices: [price.id], expiresAt: 2_000_000, detail: '{}' });
  const end = { charge: 0n, draw: false, feeBps: 0, usage: '{}', detail: '{}' };
  expect(await ledger.settle({ id: 'gen-1', price: price.id, provider: 'provider', ...end })).toMatchObject({
    ok: true,
  });
  await expect(quotes.find(id, call.caller)).rejects.toThrow('This quote was already used');
  await expect(quotes.claim(id, 'gen-2')).rejects.toThrow('This quote was already used');
  expect((await audit(database)).checks.filter(({ ok }) => !ok)).toEqual([]);
});

test.each(ENGINES)('%s: a key leaves quotes to the rest of its account', async (engine) => {
  const database = await openTestDatabase(engine);
  const now = () => 1_000_000;
  const ledger = await createLedger({ database, now });
  onTestFinished(() => ledger.close());
  const quotes = createQuotes({ database, ledger, prices: createPriceBook(database, now), validMs: 300_000, now });
  const byKey = (hash: string) => ({ ...call, caller: { ...call.caller, key: { hash, restricted: true } } }) as Call;
  const give = (by: Call) => quotes.give(by, call.candidates);
  const greedy = byKey('greedy');
  for (let from = 0; from < MOST; from += AT_ONCE)
    await Promise.all(Array.from({ length: AT_ONCE }, () => give(greedy)));
  await expect(give(greedy)).rejects.toThrow('This key has its share of the quotes that are valid and unused');
  const modest = byKey('modest');
  for (let from = 0; from < MOST / 2; from += AT_ONCE)
    await Promise.all(Array.from({ length: AT_ONCE }, () => give(modest)));
  await expect(give(modest)).rejects.toThrow('This key');
  await give(call);
});

test.each(ENGINES)('%s: a quote holds its price, and nothing else is stored for it', async (engine) => {
  const database = await openTestDatabase(engine);
  const now = () => 1_000_000;
  const ledger = await createLedger({ database, now });
  onTestFinished(() => ledger.close());
  const prices = createPriceBook(database, now);
  const quotes = createQuotes({ database, ledger, prices, validMs: 300_000, now });
  const { id } = await quotes.give(call, call.candidates);
  expect(await database.query(adHoc('SELECT id FROM prices'), [])).toEqual([]);
  const quoted = await quotes.find(id, call.caller);
  expect(quoted.offers.get(offer.id)!.price).toEqual(candidates[0]!.price);

  // An earlier version stored the price, and only its id with the quote.
  const offers = JSON.stringify([{ offer: offer.id, price: candidates[0]!.price.id, facts: {} }]);
  await database.query(adHoc('UPDATE quotes SET offers = $1'), [offers]);
  expect((await quotes.find(id, call.caller)).offers.size).toBe(0);
  await prices.remember([{ ...candidates[0]!.price, provider: 'provider', service: 'a/tool' }]);
  expect((await quotes.find(id, call.caller)).offers.get(offer.id)!.price).toEqual(candidates[0]!.price);
});
