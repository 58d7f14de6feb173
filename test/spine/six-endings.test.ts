import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { earningsOf } from '#billing';
import { nextClientGone } from '../support/client-gone.ts';
import { ENGINES } from '../support/engines.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { events, MODEL, startSpine, type Spine } from '../support/spine.ts';

// Every ending of a call, streamed and not, on both databases: what the consumer pays and what the provider earns.

const DEEP = process.env['TOLLGATE_DEEP'] === '1';

const request = (content: string, more: object = {}) => ({
  model: MODEL,
  messages: [{ role: 'user', content }],
  max_tokens: 50,
  ...more,
});

interface Generation {
  readonly state: string;
  readonly cost_micro_usdc: number;
  readonly estimated: boolean;
  readonly flags: string[];
  readonly tokens_prompt: number;
  readonly tokens_completion: number;
  readonly entries: { readonly type: string; readonly amount_micro_usdc: number }[];
}

describe.each(ENGINES)('on %s', (engine) => {
  /** No clock is over in the first. Each other has one that is, so that no slow machine meets the wrong one. */
  let [usual, impatient, hurried]: Spine[] = [];
  let spine: Spine;
  const stops: (() => Promise<void>)[] = [];
  async function start(toml: string): Promise<Spine> {
    const database = engine === 'postgres' ? await freshDatabase(inject('postgresUrl')) : null;
    const started = await startSpine({ toml: SHORT + toml, ...(database ? { databaseUrl: database.url } : {}) });
    stops.push(async () => {
      await started.stop();
      await database?.drop();
    });
    return started;
  }
  beforeAll(async () => {
    [usual, impatient, hurried] = await Promise.all([USUAL, IMPATIENT, HURRIED].map(start));
  });
  afterAll(async () => {
    await Promise.all(stops.map((stop) => stop()));
  });
  beforeEach(() => {
    spine = usual!;
  });
  afterEach(async () => {
    await spine.quiet();
    const report = await spine.audit();
    expect(report.checks.filter((check) => !check.ok)).toEqual([]);
  });

  /** Runs one call and tells how money moved. */
  async function measure(
    run: () => Promise<unknown>,
  ): Promise<{ paid: bigint; earned: bigint; generation: Generation }> {
    const providerId = spine.app.catalog.offers()[0]!.provider.id;
    const earnings = async () => (await spine.app.ledger.balance(earningsOf(providerId)))?.available ?? 0n;
    const [before, earnedBefore] = [await spine.balance(), await earnings()];
    const id = await run();
    await spine.quiet();
    const [after, earnedAfter] = [await spine.balance(), await earnings()];
    const response = await spine.get(`/generation?id=${String(id)}`);
    const generation = response.ok ? ((await response.json()) as { data: Generation }).data : null;
    return { paid: before.available - after.available, earned: earnedAfter - earnedBefore, generation: generation! };
  }

  const whole = async (content: string, more: object = {}) => {
    const response = await spine.post('/chat/completions', request(content, more));
    await response.text();
    return response.headers.get('x-generation-id');
  };
  const streamed = (content: string, more: object = {}) => whole(content, { ...more, stream: true });
  const lastCall = () => spine.provider.log.at(-1)!;
  const priceOf = (prompt: number, completion: number) => BigInt(prompt + 2 * completion);

  const ways = [
    ['streamed', streamed],
    ['not streamed', whole],
  ] as const;
  // By day PostgreSQL sees the streamed ones.
  for (const [name, call] of engine === 'sqlite' || DEEP ? ways : ways.slice(0, 1)) {
    test(`complete with usage, ${name}: the price of the usage`, async () => {
      const { paid, earned, generation } = await measure(() => call('hello !tokens:7'));
      expect(paid).toBe(priceOf(lastCall().promptTokens, 7));
      expect(earned).toBe(paid);
      expect(generation).toMatchObject({ state: 'settled', cost_micro_usdc: Number(paid), estimated: false });
    });

    test(`complete without usage, ${name}: free, and the provider is flagged`, async () => {
      const { paid, earned, generation } = await measure(() => call('hello !tokens:7 !usage:none'));
      expect([paid, earned]).toEqual([0n, 0n]);
      expect(generation.flags).toContain('usage_missing');
    });

    test(`usage of zero, ${name}: zero`, async () => {
      const { paid, generation } = await measure(() => call('hello !tokens:7 !usage:zero'));
      expect(paid).toBe(0n);
      expect(generation.state).toBe('settled');
    });

    test(`a claim beyond the cap, ${name}: never more than the lock, and the provider is flagged`, async () => {
      const { paid, generation } = await measure(() => call('hello !tokens:7 !usage:x1000'));
      expect(paid).toBeGreaterThan(0n);
      const lock = generation.entries.find((entry) => entry.type === 'lock')!;
      expect(paid).toBeLessThanOrEqual(BigInt(lock.amount_micro_usdc));
      expect(generation.flags).toContain('usage_implausible');
    });

    test(`an error status, ${name}: free`, async () => {
      const { paid, earned } = await measure(() => call('hello !status:500'));
      expect([paid, earned]).toEqual([0n, 0n]);
    });

    test(`a cut in the middle of the reply, ${name}: free`, async () => {
      const { paid, earned } = await measure(() => call('hello !tokens:7 !cut:150'));
      expect([paid, earned]).toEqual([0n, 0n]);
    });

    test(`finish_reason error, ${name}: free`, async () => {
      const { paid } = await measure(() => call('hello !tokens:7 !finish:error'));
      expect(paid).toBe(0n);
    });

    test(`a provider that falls silent, ${name}: free`, async () => {
      spine = impatient!;
      const { paid } = await measure(() => call('hello !tokens:7 !stall:250'));
      expect(paid).toBe(0n);
    });
  }

  test('the client leaves midway and the provider ends in time: what was reported', async () => {
    const { paid, earned, generation } = await measure(async () => {
      const leaving = new AbortController();
      spine.provider.instruct({ stallAt: 1_000, stallUntil: nextClientGone(spine) });
      const response = await spine.post(
        '/chat/completions',
        request('hello !tokens:20', { stream: true }),
        {},
        leaving.signal,
      );
      const reader = response.body!.getReader();
      await reader.read();
      leaving.abort();
      return response.headers.get('x-generation-id');
    });
    expect(paid).toBe(priceOf(lastCall().promptTokens, 20));
    expect(earned).toBe(paid);
    expect(generation).toMatchObject({ state: 'settled', estimated: false, cancelled: true });
  });

  test('the client leaves midway and the provider goes on for ever: what came, as measured', async () => {
    spine = hurried!;
    const { paid, generation } = await measure(async () => {
      const leaving = new AbortController();
      const response = await spine.post(
        '/chat/completions',
        request('hello !tokens:50 !token-ms:200', { stream: true }),
        {},
        leaving.signal,
      );
      const reader = response.body!.getReader();
      await reader.read();
      leaving.abort();
      return response.headers.get('x-generation-id');
    });
    expect(paid).toBeGreaterThan(0n);
    expect(paid).toBeLessThan(priceOf(lastCall().promptTokens, 50));
    expect(generation).toMatchObject({
      state: 'settled',
      outcome: 'cut',
      finish_reason: 'cancelled',
      estimated: true,
      cancelled: true,
    });
  });

  test('the call takes too long and its client reads on: what came, as measured', async () => {
    spine = hurried!;
    const { paid, earned, generation } = await measure(() => streamed('hello !tokens:50 !token-ms:200'));
    expect(paid).toBeGreaterThan(0n);
    expect(paid).toBeLessThan(priceOf(lastCall().promptTokens, 50));
    expect(earned).toBe(paid);
    expect(generation).toMatchObject({
      state: 'settled',
      outcome: 'cut',
      finish_reason: 'timeout',
      estimated: true,
      cancelled: false,
      flags: [],
    });
  });

  test('nothing came of a stream before the call took too long: free', async () => {
    spine = hurried!;
    const { paid, earned } = await measure(() => streamed('hello !head-delay:forever'));
    expect([paid, earned]).toEqual([0n, 0n]);
  });

  test('output that runs past the cap: what is measured, at most the cap, and the provider is flagged', async () => {
    const said = `hello ${'word '.repeat(100)}!tokens:20000 !ignore-max`;
    const { paid, earned, generation } = await measure(() => streamed(said, { max_tokens: 5 }));
    const { tokens_prompt: prompt } = generation;
    expect(generation).toMatchObject({ flags: ['over_cap'], estimated: true, tokens_completion: 5 });
    // A token for each four bytes, and some for what is around the words.
    expect(Math.abs(prompt - Buffer.byteLength(said) / 4)).toBeLessThan(10);
    expect(paid).toBe(priceOf(prompt, 5));
    expect(earned).toBe(paid);
  });

  test('the end of a stream is sent only after its settlement', async () => {
    const response = await spine.post('/chat/completions', request('hello !tokens:3', { stream: true }));
    const text = await response.text();
    // No waiting for quiet here: who has seen the end has a settled record.
    const { data } = (await (await spine.get(`/generation?id=${response.headers.get('x-generation-id')}`)).json()) as {
      data: Generation;
    };
    expect(data.state).toBe('settled');
    const chunks = events(text);
    expect(chunks.at(-1)).toBe('[DONE]');
    expect(chunks.at(-2)).toMatchObject({
      choices: [{ finish_reason: 'stop' }],
      usage: { completion_tokens: 3, cost: data.cost_micro_usdc / 1e6 },
    });
  });
});

const SHORT = `
[limits]
requests_per_minute = 100000
[upstream]
head_timeout_ms = 60000
cooldown_ms = 0
`;
const USUAL = '';
const IMPATIENT = 'idle_timeout_ms = 600\n';
const HURRIED = 'call_timeout_ms = 4000\n[billing]\ndrain_ms = 1500\n';
