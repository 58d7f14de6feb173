import { expect, onTestFinished, test } from 'vitest';
import { audit, createGiveBack, createLedger, createPriceBook, createRefunds } from '#billing/compose';
import { escrowOf, treasuryOf } from '#billing';
import { priceId } from '#billing/amounts';
import { createKeptResponses } from '#kept-responses';
import { createBackground } from '../../../src/openai/responses/background/background.ts';
import { callIdOf, responseIdOf } from '../../../src/openai/responses/kept/kept-ids.ts';
import { ENGINES, openTestDatabase } from '../../gateway/test-database.ts';

// A gateway that was out of reach between the charge and the answer of a response, until another one gave it back.

const rates = { call: 100n * 1_000_000n };
const PRICE = { id: priceId('p', 'acme/model', rates), rates, provider: 'p', service: 'acme/model' };
const ACCOUNT = 'tollgate:local:acme';

test.each(ENGINES)('%s: a response whose charge was given back gets no answer any more', async (engine) => {
  const database = await openTestDatabase(engine);
  const clock = { now: Date.now() };
  const now = () => clock.now;
  const ledger = await createLedger({ database, now });
  onTestFinished(() => ledger.close());
  await createPriceBook(database).remember([PRICE]);
  await ledger.transfer({ id: 'f', from: treasuryOf('test'), to: escrowOf(ACCOUNT), amount: 1_000n, memo: '' });
  const limits = { keepMs: 86_400_000, accountBytesMax: 1e7, accountCountMax: 9, bytesMax: 1e9, backgroundCountMax: 9 };
  const stores = () =>
    createKeptResponses({ database, limits, longestLockMs: 700_000, secret: [Buffer.alloc(32)] as never, now });
  const [late, other] = [stores(), stores()];
  const giveBack = createGiveBack({ ledger, refunds: createRefunds(database, ledger), onGivenBack: () => {} });
  const background = createBackground({
    keptResponses: other,
    giveBack,
    onError: (error) => expect.fail(String(error)),
  });

  const id = responseIdOf(`gen-${'a'.repeat(32)}`);
  const whose = { id, account: ACCOUNT, within: null };
  const response = (status: string) => JSON.stringify({ id, object: 'response', status, output: [] });
  const begun = {
    ...whose,
    service: 'acme/model',
    previous: null,
    input: '[]',
    response: response('queued'),
    items: [],
  };
  await late.running.begin(begun, null);
  const call = { id: callIdOf(id), account: ACCOUNT, detail: '{}' };
  await ledger.lock({ ...call, amount: 500n, prices: [PRICE.id], expiresAt: clock.now + 700_000 });
  const settled = {
    id: call.id,
    price: PRICE.id,
    provider: 'p',
    charge: 100n,
    draw: false,
    feeBps: 0,
    usage: '{"call":"1"}',
  };
  await ledger.settle({ ...settled, detail: '{}' });

  clock.now += 61_000;
  await background.sweep(9);
  expect(await ledger.balance(escrowOf(ACCOUNT))).toMatchObject({ available: 1_000n });
  const end = { ...whose, response: response('completed'), items: [], events: [] };
  expect(await late.running.finish(end)).toBe('gone');
  const [found] = await other.findAll([id], whose);
  expect((await other.read([found!])).get(id)?.response).toContain('"failed"');
  expect((await audit(database)).checks.filter(({ ok }) => !ok)).toEqual([]);
});
