import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { escrowOf } from '#billing';
import { ENGINES } from '../support/engines.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// Two hundred calls at once on an escrow that affords twenty: twenty pass.

/** "user" and "hello", what a template may add, and 50 tokens at 2 USD per 1M. */
const ESTIMATE = 4 + 5 + 64 + 16 + 2 * 50;

const CASES = ENGINES.flatMap((engine) => ['each', '50ms'].map((flush) => [engine, flush] as const));

describe.each(CASES)('on %s, flushed %s', (engine, flush) => {
  const toml = `${UNHURRIED}\n[ledger]\nflush = "${flush}"\n`;
  let gateways: Spine[] = [];
  let drop = async () => {};
  beforeAll(async () => {
    if (engine === 'postgres') {
      const database = await freshDatabase(inject('postgresUrl'));
      drop = () => database.drop();
      const first = await startSpine({ databaseUrl: database.url, toml });
      gateways = [first, await startSpine({ databaseUrl: database.url, toml, provider: first.provider })];
    } else gateways = [await startSpine({ toml })];
  });
  afterAll(async () => {
    for (const gateway of gateways.reverse()) await gateway.stop();
    await drop();
  });

  test.each([false, true])('exactly as many calls pass as the escrow affords (stream: %s)', async (stream) => {
    const spine = gateways[0]!;
    // Too little for a twenty-first by one micro-USD.
    const { key, account } = await spine.tenant(`crowd-${stream}`, ((20 * ESTIMATE + ESTIMATE - 1) / 1e6).toFixed(6));
    spine.provider.log.length = 0;
    // Nobody answers until all have been decided on, so that no refund makes room.
    const open = Promise.withResolvers<void>();
    const lowest: bigint[] = [];
    const watch = setInterval(
      () => void spine.app.ledger.balance(escrowOf(account)).then((balance) => lowest.push(balance!.available)),
      5,
    );
    let refused = 0;
    const calls = Array.from({ length: 200 }, async (_, index) => {
      const gateway = gateways[index % gateways.length]!;
      const response = await gateway.post('/chat/completions', ask('hello', { stream }), {
        authorization: `Bearer ${key}`,
      });
      if (response.status === 402 && ++refused === 180) open.resolve();
      await response.text();
      return response.status;
    });
    spine.provider.hold(open.promise);
    const statuses = await Promise.all(calls);
    clearInterval(watch);
    spine.provider.hold(null);
    expect(statuses.filter((status) => status === 200)).toHaveLength(20);
    expect(statuses.filter((status) => status === 402)).toHaveLength(180);
    expect(spine.provider.log).toHaveLength(20);
    expect(lowest.every((available) => available >= 0n)).toBe(true);
    const paid = spine.provider.log.reduce(
      (sum, call) => sum + BigInt(call.promptTokens + 2 * call.completionTokens),
      0n,
    );
    expect(await spine.faults()).toEqual([]);
    expect(await spine.app.ledger.balance(escrowOf(account))).toEqual({
      available: BigInt(21 * ESTIMATE - 1) - paid,
      locked: 0n,
    });
  });

  test('while calls come and go, the escrow is spent to the end and never beyond', async () => {
    const spine = gateways[0]!;
    const { key, account } = await spine.tenant('flow', (3_000 / 1e6).toFixed(6));
    spine.provider.log.length = 0;
    let served = 0;
    const worker = async (index: number) => {
      for (let i = 0; i < 12; i++) {
        const response = await gateways[index % gateways.length]!.post('/chat/completions', ask('hello !tokens:50'), {
          authorization: `Bearer ${key}`,
        });
        await response.text();
        expect([200, 402]).toContain(response.status);
        if (response.status === 200) served++;
      }
    };
    await Promise.all(Array.from({ length: 16 }, (_, index) => worker(index)));
    expect(await spine.faults()).toEqual([]);
    const cost = BigInt(spine.provider.log[0]!.promptTokens + 2 * 50);
    const { available } = (await spine.app.ledger.balance(escrowOf(account)))!;
    expect(available).toBe(3_000n - BigInt(served) * cost);
    expect(served).toBe(spine.provider.log.length);
    expect(available).toBeGreaterThanOrEqual(0n);
    // What is left does not afford another call's estimate.
    expect(available).toBeLessThan(BigInt(ESTIMATE + 11) + cost);
  });
});
