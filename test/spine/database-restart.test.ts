import { expect, test } from 'vitest';
import { startPostgres } from '../support/postgres.ts';
import { ask, UNHURRIED } from '../support/spine.ts';
import { atThisLoad } from '../support/at-this-load.ts';
import { ofFile, spineOfFile } from '../support/of-file.ts';

// PostgreSQL goes away under load and comes back: callers hear 503 meanwhile, the gateway stays up, and every call
// is resolved once.

/** Callers at once, and calls that each restart sees before and after it. */
const [CALLERS, CALLS] = process.env['TOLLGATE_DEEP'] === '1' ? [12, 60] : [8, 24];

const postgres = ofFile(startPostgres, (one) => one.stop());
const spine = spineOfFile(() => ({
  databaseUrl: postgres.url,
  toml: `${UNHURRIED}\n[billing]\nsweep_ms = 200\n[upstream]\ncall_timeout_ms = 20000`,
}));

interface Outcome {
  readonly status: number;
  readonly type: string | null;
  readonly retryAfter: number;
  readonly ms: number;
  readonly cost: number;
}

/** Callers without pause until `stop`. */
function load(callers: number): { stop(): Promise<readonly Outcome[]>; readonly outcomes: Outcome[] } {
  const outcomes: Outcome[] = [];
  let stopped = false;
  const caller = async (index: number) => {
    for (let turn = 0; !stopped; turn++) {
      const begun = performance.now();
      const response = await spine.post(
        '/chat/completions',
        ask(`hello !tokens:${1 + (turn % 9)}`, { stream: (index + turn) % 3 === 0 }),
      );
      const text = await response.text();
      const failure = text.includes('"error"');
      outcomes.push({
        status: response.status,
        type: failure ? (/"type":"(\w+)"/.exec(text)?.[1] ?? null) : null,
        retryAfter: Number(response.headers.get('retry-after')),
        ms: performance.now() - begun,
        cost: failure ? 0 : Number(/"cost":([\d.e-]+)/.exec(text)?.[1] ?? 0),
      });
      if (response.status !== 200) await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const callers_ = Array.from({ length: callers }, (_, index) => caller(index));
  return {
    outcomes,
    async stop() {
      stopped = true;
      await Promise.all(callers_);
      return outcomes;
    },
  };
}
const until = async (condition: () => boolean, what: string) => {
  for (const end = Date.now() + 60_000; !condition(); await new Promise((resolve) => setTimeout(resolve, 10)))
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
};
const successes = (outcomes: readonly Outcome[]) =>
  outcomes.filter(({ status, type }) => status === 200 && type === null);

test.each(['immediate', 'fast'] as const)('a restart (%s) under load', async (mode) => {
  const before = await spine.balance();
  const seen = spine.provider.log.length;
  const running = load(CALLERS);
  await until(() => successes(running.outcomes).length > CALLS, 'calls before the restart');
  await postgres.restart(mode);
  const back = performance.now();
  const already = successes(running.outcomes).length;
  await until(() => successes(running.outcomes).length > already + CALLS, 'calls after the restart');
  expect(performance.now() - back).toBeLessThan(atThisLoad(5_000));
  const outcomes = await running.stop();

  for (const { status, type, retryAfter, ms } of outcomes) {
    expect([200, 503]).toContain(status);
    if (status === 503) {
      expect(type).toBe('internal');
      expect(retryAfter).toBeGreaterThanOrEqual(1);
    }
    expect(ms).toBeLessThan(atThisLoad(10_000));
  }
  expect(await spine.faults()).toEqual([]);
  // Who got its answer with a cost paid it; a call whose answer was lost on the way has its one charge or none.
  const paid = Number(before.available - (await spine.balance()).available);
  const told = Math.round(successes(outcomes).reduce((sum, { cost }) => sum + cost * 1e6, 0));
  const possible = spine.provider.log
    .slice(seen)
    .reduce((sum, call) => sum + call.promptTokens + 2 * call.completionTokens, 0);
  expect(paid).toBeGreaterThanOrEqual(told);
  expect(paid).toBeLessThanOrEqual(possible);
});

test('while it is gone: readiness says so, calls are 503 with Retry-After, public pages go on, and nothing reaches a provider', async () => {
  await postgres.kill9();
  const seen = spine.provider.log.length;
  const begun = performance.now();
  for (const stream of [false, true]) {
    const response = await spine.post('/chat/completions', ask('hello', { stream }));
    expect(response.status).toBe(503);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    const { error } = (await response.json()) as { error: { message: string } };
    expect(error).toMatchObject({ type: 'internal', code: 503 });
    expect(error.message).not.toMatch(/postgres|:5432|ECONN|127\.0/i);
  }
  for (const path of ['/session/balance', '/keys', '/generation?id=x', '/credits'])
    expect((await spine.get(path)).status, path).toBe(503);
  const ready = await fetch(`${spine.origin}/health/ready`);
  expect([ready.status, await ready.json()]).toMatchObject([
    503,
    { message: expect.stringMatching(/^The database (?:cannot be reached|takes no writes)/) },
  ]);
  expect((await fetch(`${spine.origin}/health/live`)).status).toBe(200);
  for (const path of ['/models', '/providers', '/ping']) expect((await spine.get(path)).status).toBe(200);
  expect(performance.now() - begun).toBeLessThan(atThisLoad(15_000));
  expect(spine.provider.log.length).toBe(seen);

  await postgres.restart();
  for (const end = Date.now() + atThisLoad(5_000); (await fetch(`${spine.origin}/health/ready`)).status !== 200;)
    if (Date.now() > end) throw new Error('not ready again in time');
  expect((await spine.post('/chat/completions', ask('hello'))).status).toBe(200);
  expect(await spine.faults()).toEqual([]);
});

test('a call that runs while it goes away and comes back is settled in the end, or free; its client hears of it', async () => {
  const open = Promise.withResolvers<void>();
  spine.provider.hold(open.promise);
  const seen = spine.provider.log.length;
  const before = await spine.balance();
  const call = spine.post('/chat/completions', ask('hello !tokens:5'));
  while (spine.provider.log.length === seen) await new Promise((resolve) => setImmediate(resolve));
  await postgres.kill9();
  open.resolve();
  spine.provider.hold(null);
  await spine.provider.settled(seen + 1);
  await postgres.restart();
  const response = await call;
  await response.text();
  expect([200, 503]).toContain(response.status);
  const paid = before.available - (await spine.balance()).available;
  if (response.status === 200) {
    expect(await spine.faults()).toEqual([]);
    expect(paid).toBeGreaterThan(0n);
  } else {
    // The lock is left to expire, which no clock of this test waits for; it must be whole, and the only one.
    const { available, locked } = await spine.balance();
    expect(available + locked).toBe(before.available);
    expect(await spine.app.ledger.expire(Date.now() + 86_400_000)).toHaveLength(1);
    expect(await spine.faults()).toEqual([]);
  }
});
