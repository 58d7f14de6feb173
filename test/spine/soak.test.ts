import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { freshDatabase } from '../support/fresh-database.ts';
import type { LoggedCall } from '../support/provider/log.ts';
import { MODEL, startSpine, type Spine } from '../support/spine.ts';

// 2,000 mixed calls with a provider that misbehaves at random and clients that hang up at random. Afterwards the
// books are audited, and every charge is computed again from what the provider wrote down, knowing nothing of the
// gateway's code.

const CALLS = process.env['TOLLGATE_DEEP'] === '1' ? 20_000 : 2_000;
const CONCURRENCY = 24;
const MAX_TOKENS = 30;
const PROMPT_PRICE = 1;
const COMPLETION_PRICE = 2;

let spine: Spine;
let drop: () => Promise<void>;
beforeAll(async () => {
  const database = await freshDatabase(inject('postgresUrl'));
  drop = () => database.drop();
  spine = await startSpine({
    databaseUrl: database.url,
    toml: '[limits]\nrequests_per_minute = 10000000\nburst = 100000\n[billing]\ndrain_ms = 300\n[upstream]\nidle_timeout_ms = 1000\nhead_timeout_ms = 5000\ncooldown_ms = 0',
  });
});
afterAll(async () => {
  await spine.stop();
  await drop();
});

/** A small seeded generator (mulberry32): a failing run can be run again. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const BEHAVIOURS = [
  ...Array.from({ length: 12 }, () => ''),
  '!cut:20',
  '!cut:220',
  '!reset:150',
  '!cut-head:0',
  '!cut-head:30',
  '!stall:60',
  '!stall:300:100',
  '!status:500',
  '!status:503:garbage',
  '!status:429',
  '!status:400',
  '!usage:none',
  '!usage:null',
  '!usage:empty',
  '!usage:zero',
  '!usage:x1000',
  '!usage:negative',
  '!usage:strings',
  '!usage:nan-literal',
  '!usage:no-total',
  '!usage:twice',
  '!usage:after-done',
  '!usage-place:finish',
  '!finish:beside',
  '!finish:error',
  '!token-ms:8',
  '!head-delay:60',
  '!split:11 !eol:crlf',
  '!error-at:2',
  '!no-done',
  '!ignore-max !tokens:60',
];

interface Ended {
  readonly hungUp: boolean;
  readonly id: string | null;
}

async function call(index: number, random: () => number): Promise<Ended> {
  const behaviour = BEHAVIOURS[Math.floor(random() * BEHAVIOURS.length)]!;
  const stream = random() < 0.6;
  const content = `call ${index} !tokens:${1 + Math.floor(random() * 25)} ${behaviour}`;
  const leaving = new AbortController();
  const hangsUp = random() < 0.2;
  const timer = hangsUp ? setTimeout(() => leaving.abort(), random() * 80) : undefined;
  try {
    const response = await spine.post(
      '/chat/completions',
      { model: MODEL, max_tokens: MAX_TOKENS, stream, messages: [{ role: 'user', content }] },
      { 'x-request-id': `soak-${index}` },
      leaving.signal,
    );
    await response.text();
    return { hungUp: false, id: response.headers.get('x-generation-id') };
  } catch (error) {
    if (!leaving.signal.aborted) throw error;
    return { hungUp: true, id: null };
  } finally {
    clearTimeout(timer);
  }
}

/**
 * What a call has to cost by the provider's own log, in micro-USD; 'estimate' where the reply was cut because its
 * client had left.
 */
function expected(logged: LoggedCall, lock: number): number | 'estimate' {
  const { behaviour, plannedTokens } = logged;
  const { stream } = logged.body as { stream: boolean };
  if (logged.end === 'client_closed') return 'estimate';
  const failed =
    logged.end !== 'finished' ||
    behaviour.finish === 'error' ||
    (stream && behaviour.errorAt !== null && plannedTokens > behaviour.errorAt);
  if (failed) return 0;
  // Of a stream, what comes after its end is not part of it.
  if (stream && behaviour.usage === 'after-done') return 0;
  switch (behaviour.usage) {
    case 'after-done':
    case 'true':
    case 'no-total':
    case 'twice':
      // A claim beyond the cap costs the cap.
      return PROMPT_PRICE * logged.promptTokens + COMPLETION_PRICE * Math.min(plannedTokens, MAX_TOKENS);
    case 'x1000':
      // Beyond every bound: the lock, and not a micro-USD more.
      return lock;
    default:
      return 0;
  }
}

test(
  `${CALLS} mixed calls: the books add up, no lock is left, every charge is the provider's`,
  { timeout: 600_000 },
  async () => {
    const random = seeded(20_261_120);
    const ended = new Map<string, Ended>();
    let next = 0;
    await Promise.all(
      Array.from({ length: CONCURRENCY }, async () => {
        while (next < CALLS) {
          const index = next++;
          ended.set(`soak-${index}`, await call(index, random));
        }
      }),
    );
    await spine.quiet();

    const report = await spine.audit();
    expect(report.checks.filter((check) => !check.ok)).toEqual([]);

    const rows = await spine.app.database.query({
      name: 'soak-locks',
      text: 'SELECT state, charged, amount, lock_detail, detail FROM locks',
    });
    const locks = new Map(
      rows.map((row) => [(JSON.parse(String(row['lock_detail'])) as { requestId: string }).requestId, row]),
    );
    expect(rows.filter((row) => row['state'] === 'held')).toEqual([]);

    const wrong: unknown[] = [];
    let charged = 0n;
    let exact = 0;
    let estimated = 0;
    for (const logged of spine.provider.log) {
      const requestId = String(logged.headers['x-request-id']);
      const lock = locks.get(requestId);
      const { messages } = logged.body as { messages: { content: string }[] };
      // A provider that ends at the very moment the drain does may have ended unheard: then the gateway has
      // measured, too; or, where not even the head of the reply had come by then, there was nothing to measure.
      const { hungUp } = ended.get(requestId)!;
      const measured = hungUp && /"estimated":true|"error":"the client is gone"/.test(String(lock?.['detail']));
      const due = measured ? 'estimate' : expected(logged, Number(lock!['amount']));
      const paid = Number(lock?.['charged'] ?? -1n);
      charged += (lock?.['charged'] as bigint | undefined) ?? 0n;
      if (due === 'estimate') {
        estimated += 1;
        if (/"error":"the client is gone"/.test(String(lock?.['detail'])) && paid !== 0)
          wrong.push({ requestId, paid, why: 'a call without a reply was charged' });
        // The provider saw its socket close: either the client had left, or we gave up on it. Never more than the lock.
        if (paid < 0 || paid > Number(lock!['amount']))
          wrong.push({ requestId, paid, behaviour: messages[0]!.content, why: 'an estimate beyond the lock' });
        if (paid > 0 && !hungUp && logged.behaviour.stallAt !== null)
          wrong.push({ requestId, paid, why: 'a stalled call was charged' });
      } else {
        exact += 1;
        if (paid !== due)
          wrong.push({
            requestId,
            paid,
            due,
            behaviour: messages[0]!.content,
            end: logged.end,
            hungUp,
            detail: lock?.['detail'],
          });
      }
    }
    expect(wrong.slice(0, 10)).toEqual([]);
    // Every call that was locked reached the provider once, and every one that reached it was locked. A request whose
    // kept connection closes before the first byte of an answer goes out once more.
    const requests = Map.groupBy(spine.provider.log, ({ headers }) => String(headers['x-request-id']));
    const again = [...requests].filter(
      ([, [first, ...more]]) => more.length > (JSON.stringify(first!.body).includes('!cut-head:0') ? 1 : 0),
    );
    expect(again.map(([requestId]) => requestId)).toEqual([]);
    const balance = await spine.balance();
    expect(100_000_000n - balance.available).toBe(charged);
    expect(exact).toBeGreaterThan(CALLS / 2);
    console.log(
      `  ${CALLS} calls: ${exact} charges recomputed exactly, ${estimated} cut off, ${charged} micro-USD charged in all`,
    );
  },
);
