import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sumOfferCalls } from '#analytics';
import { audit, createLedger } from '#billing/compose';
import type { Ledger } from '#billing';
import { COUNTED_PRICE, fund } from '../../support/counted-calls.ts';
import { ENGINES, openEngine, type OpenedEngine } from '../../support/engines.ts';

const DAY_MS = 86_400_000;
const DAY = 20_000;
/** More than two pages. */
const MANY = 600;

describe.each(ENGINES)('on %s', (name) => {
  let engine: OpenedEngine;
  let ledger: Ledger;
  let at = DAY * DAY_MS;
  beforeEach(async () => {
    engine = await openEngine(name);
    ledger = await createLedger({ database: engine.database, now: () => at });
    await fund(engine.database, ledger, ['acme', 'tollgate:gateway']);
  });
  afterEach(async () => {
    await ledger.close();
    await engine.dispose();
  });

  let made = 0;
  interface Made {
    readonly account?: string;
    readonly call?: object;
    /** null: the call is released. */
    readonly usage?: object | null;
    readonly run?: object;
  }
  async function make({ account = 'acme', call = {}, usage = { prompt: 10, completion: 5 }, run = {} }: Made) {
    made += 1;
    const id = `call-${made}`;
    const detail = JSON.stringify({ primitive: 'model', service: 'acme/chat', ...call });
    const locked = await ledger.lock({
      id,
      account,
      amount: 10n,
      prices: [COUNTED_PRICE.id],
      expiresAt: at + DAY_MS,
      detail,
    });
    if (!locked.ok) throw new Error(locked.reason);
    if (usage === null) return ledger.release({ id, detail: JSON.stringify({ outcome: 'failed', ...run }) });
    const charge = 'outcome' in run && run.outcome === 'free' ? 0n : 7n;
    return ledger.settle({
      id,
      price: COUNTED_PRICE.id,
      provider: 'p1',
      charge,
      draw: false,
      feeBps: 0,
      usage: JSON.stringify({ call: Number(charge), ...usage }),
      detail: JSON.stringify({ service: 'acme/chat', providerName: 'Vendor', outcome: 'complete', ...run }),
    });
  }

  const sums = (first = DAY, last = DAY) =>
    sumOfferCalls(engine.database, 'tollgate:operator', { first, last }, (provider) =>
      provider === 'Vendor'
        ? {
            rates: { prompt: 2_000_000n, completion: 4_000_000n, input_cache_read: 1_000_000n },
            serviceTiers: { flex: { prompt: 1_000_000n, completion: 2_000_000n } },
          }
        : null,
    );

  test('calls of all accounts are in the sums, with what the vendor may have billed besides', async () => {
    at = DAY * DAY_MS - 1;
    await make({});
    at = DAY * DAY_MS;
    await make({ account: 'tollgate:gateway' });
    await make({ run: { cached: 4, reasoning: 3 } });
    await make({ usage: { prompt: 6, input_cache_read: 4, completion: 5 }, run: { cached: 4, serviceTier: 'flex' } });
    await make({ run: { estimated: true, flags: ['usage_implausible', 'over_cap'] } });
    await make({ run: { outcome: 'free' } });
    await make({ run: { ownKey: true } });
    const failed = [
      { provider: 'Vendor', service: 'acme/chat', status: null },
      { provider: 'Vendor', service: 'acme/chat', status: 200 },
      { provider: 'Vendor', service: 'acme/chat', status: 500 },
      { provider: 'Other', service: 'acme/chat', status: null },
    ];
    await make({ run: { failedAttempts: failed } });
    await make({ usage: null, run: { failedAttempts: failed.slice(0, 1), clientGone: true } });
    await make({ usage: null, run: { clientGone: true }, call: { service: 'acme/chat:nitro' } });
    await make({ usage: null });
    // No calls of a vendor, or calls that other locks have.
    await make({ call: { primitive: 'tool' } });
    await make({ call: { run: true } });
    await make({ call: { batch: true } });
    await make({ run: { outcome: 'continued' } });
    at = (DAY + 1) * DAY_MS;
    await make({});
    await expect.poll(async () => (await sums(DAY + 1, DAY + 1)).length).toBe(1);
    const none = {
      free: 0,
      measured: 0,
      claims: 0,
      refused: 0,
      broken: 0,
      aborted: 0,
      ownKeys: 0,
      cached: 0,
      reasoning: 0,
    };
    const nothing = {
      ...none,
      day: DAY,
      service: 'acme/chat',
      requests: 0,
      prompt: 0,
      completion: 0,
      charged: 0n,
      fee: 0n,
    };
    expect((await sums()).toSorted((a, b) => (a.provider < b.provider ? -1 : 1))).toEqual([
      { ...nothing, provider: '', aborted: 1, cost: null },
      { ...nothing, provider: 'Other', broken: 1, cost: null },
      {
        ...nothing,
        provider: 'Vendor',
        requests: 6,
        free: 1,
        measured: 1,
        claims: 1,
        refused: 1,
        broken: 3,
        ownKeys: 1,
        prompt: 60,
        completion: 30,
        cached: 8,
        reasoning: 3,
        charged: 35n,
        // Four of 10 x 2 + 5 x 4, one with four of the prompt at 1, and flex: 10 x 1 + 5 x 2.
        cost: 4n * 40n + 36n + 20n,
      },
    ]);
    expect((await audit(engine.database)).ok).toBe(true);
  });

  test('more calls than one page has are all counted, once', async () => {
    at = DAY * DAY_MS;
    await Promise.all(Array.from({ length: MANY }, () => make({})));
    await expect.poll(async () => (await sums())[0]?.requests, { timeout: 20_000 }).toBe(MANY);
    expect((await audit(engine.database)).ok).toBe(true);
  });
});
