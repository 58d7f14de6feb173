import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { atThisLoad } from '../support/at-this-load.ts';
import { startGateway, type Gateway } from '../support/gateway.ts';
import { startProvider, type TestProvider } from '../support/provider.ts';

// The gateway's process is killed under load, again and again, on the embedded database. Whoever saw the end of a
// reply finds it settled after the restart, but for those of the last moment where charges may be late; the locks of
// calls that died are given back; the books add up.

const [ROUNDS, CLEAN_STARTS] = process.env['TOLLGATE_DEEP'] === '1' ? [1_000, 3] : [2, 1];
const CLIENTS = 12;
const READY_MS_MAX = 3_000;
/**
 * On a machine that is busy with other things, a start after a kill takes at most this many times as long as one
 * after a clean stop.
 */
const SLOWER_THAN_CLEAN_MAX = 4;

let provider: TestProvider;
let gateway: Gateway;
let key: string;
/** The values of `ledger.flush`, and the milliseconds before a kill in which charges may be undone. */
const FLUSHES = [
  ['each', 0],
  ['50ms', 50],
] as const;

beforeAll(async () => {
  provider = await startProvider({ logMax: 0 });
});
afterEach(() => gateway.stop());
afterAll(() => provider.stop());

async function start(flush: string): Promise<void> {
  gateway = await startGateway({
    toml: `
[ledger]
flush = "${flush}"
[limits]
requests_per_minute = 10000000
burst = 1000000
[[models]]
name = "test/model"
display_name = "Test: Model"
provider_name = "Test"
context_length = 10000
[models.pricing]
prompt = 1
completion = 2
[models.params]
model = "upstream-model"
api_base = "${provider.url}"
api_key = "unused"`,
  });
  ({ key } = await gateway.openAccount('crash', 1000));
}

interface Acknowledged {
  readonly id: string;
  readonly cost: number;
  /** When its end was seen, in milliseconds. */
  readonly at: number;
}

/** Calls until the gateway dies; returns the calls whose end was seen. */
async function client(round: number, index: number, acknowledged: Acknowledged[]): Promise<void> {
  for (let turn = 0; ; turn++) {
    const stream = (turn + index) % 2 === 0;
    const content = `round ${round} !tokens:${1 + ((turn * 7 + index) % 9)}${index % 4 === 0 ? ' !token-ms:3' : ''}`;
    try {
      const response = await fetch(`${gateway.baseUrl}/api/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'test/model', max_tokens: 20, stream, messages: [{ role: 'user', content }] }),
      });
      const text = await response.text();
      const complete = stream ? text.endsWith('data: [DONE]\n\n') : response.ok;
      const last = stream ? text.split('\n\n').at(-3)?.slice('data: '.length) : text;
      if (complete)
        acknowledged.push({
          id: response.headers.get('x-generation-id')!,
          cost: (JSON.parse(last!) as { usage: { cost: number } }).usage.cost,
          at: performance.now(),
        });
    } catch {
      return;
    }
  }
}

async function readGeneration(id: string): Promise<{ state: string; total_cost: number } | null> {
  const response = await fetch(`${gateway.baseUrl}/api/v1/generation?id=${id}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  return response.ok ? ((await response.json()) as { data: { state: string; total_cost: number } }).data : null;
}

test.each(FLUSHES)(
  `flushed %s, ${ROUNDS} kills under load: nothing acknowledged is lost that may not be, audit clean, ready in time`,
  { timeout: ROUNDS * 180_000 },
  async (flush, lateMs) => {
    await start(flush);
    const readyMs: number[] = [];
    const lost: unknown[] = [];
    let total = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const acknowledged: Acknowledged[] = [];
      const clients = Array.from({ length: CLIENTS }, (_, index) => client(round, index, acknowledged));
      // Some calls have ended and others have not, however slow the machine is.
      const enough = 1 + ((round * 37) % 40);
      await vi.waitFor(() => expect(acknowledged.length).toBeGreaterThanOrEqual(enough), {
        timeout: 60_000,
        interval: 1,
      });
      const killedAt = performance.now();
      await gateway.kill9();
      await Promise.all(clients);
      await gateway.restart();
      readyMs.push(gateway.readyMs);
      for (const { id, cost, at } of acknowledged) {
        const generation = await readGeneration(id);
        if (generation?.state === 'settled' && generation.total_cost === cost) continue;
        const isUndone = generation === null || (generation.state === 'expired' && generation.total_cost === 0);
        if (!isUndone || killedAt - at >= atThisLoad(lateMs))
          lost.push({ round, id, cost, generation, beforeMs: killedAt - at });
      }
      total += acknowledged.length;
      const { data } = (await gateway.admin('GET', '/audit')) as { data: { ok: boolean; checks: { ok: boolean }[] } };
      expect(data.checks.filter((check) => !check.ok)).toEqual([]);
      const account = (await gateway.admin('GET', '/accounts/tollgate%3Alocal%3Acrash')) as {
        data: { locked_micro_usdc: number };
      };
      expect(account.data.locked_micro_usdc).toBe(0);
    }
    readyMs.sort((a, b) => a - b);
    const p99 = readyMs[Math.ceil(readyMs.length * 0.99) - 1]!;
    console.log(
      `  ${ROUNDS} kills, ${total} acknowledged calls, ready p50 ${Math.round(readyMs[readyMs.length >> 1]!)} ms, p99 ${Math.round(p99)} ms`,
    );
    expect(lost).toEqual([]);
    expect(total).toBeGreaterThan(ROUNDS);
    const clean: number[] = [];
    for (let i = 0; i < CLEAN_STARTS; i++) {
      await gateway.term();
      await gateway.restart();
      clean.push(gateway.readyMs);
    }
    expect(p99).toBeLessThan(Math.max(atThisLoad(READY_MS_MAX), SLOWER_THAN_CLEAN_MAX * Math.max(...clean)));
  },
);
