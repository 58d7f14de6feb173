import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'vitest';
import { atThisLoad } from './at-this-load.ts';

/** The results of one account's sequential calls. Times are in milliseconds. */
export interface Fare {
  readonly tried: number;
  readonly served: number;
  /** Durations of all calls, including failed ones. 95 % of them took no longer than `p95Ms`, and 99 % than `p99Ms`. */
  readonly medianMs: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
  readonly worstMs: number;
}

export interface BystanderOptions {
  /** Makes one call. Resolves with true if it was served. A rejection counts as not served. */
  readonly call: () => Promise<boolean>;
  /** Default 20. In the deep run 30. */
  readonly calls?: number;
  /** Pause between two calls. Default 20 ms. */
  readonly everyMs?: number;
}

const CALLS = process.env['TOLLGATE_DEEP'] === '1' ? 30 : 20;

/**
 * Makes calls as a well-behaved account while others misbehave. The gateway must be another process. Otherwise a stall
 * of its event loop would also stop this clock.
 */
export async function bystand(options: BystanderOptions): Promise<Fare> {
  return fareOf(await answersTo(options));
}

/** So many calls alone, and then beside what `begin` begins: the load of the machine changes for both. */
const TURN_CALLS = 10;

/** Begins what the calls are beside. Its function ends that, and is awaited. */
type Begin = () => () => Promise<unknown>;

/**
 * As bystand, alone and beside what `begin` begins. `beginElsewhere` begins work beside the calls that are alone, which
 * takes as much of the machine as `begin`: then only what is shared with the calls makes the difference.
 */
async function bystandInTurns(
  { calls = CALLS, ...options }: BystanderOptions,
  begin: Begin,
  beginElsewhere: Begin = () => async () => {},
): Promise<{ readonly before: Fare; readonly during: Fare }> {
  const turnBeside = async (beginOne: Begin) => {
    const end = beginOne();
    try {
      return await answersTo({ ...options, calls: TURN_CALLS });
    } finally {
      await end();
    }
  };
  const alone: Answer[] = [];
  const beside: Answer[] = [];
  while (beside.length < calls) {
    alone.push(...(await turnBeside(beginElsewhere)));
    beside.push(...(await turnBeside(begin)));
  }
  return { before: fareOf(alone), during: fareOf(beside) };
}

interface Answer {
  readonly ms: number;
  readonly isServed: boolean;
}

async function answersTo({ call, calls = CALLS, everyMs = 20 }: BystanderOptions): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let i = 0; i < calls; i++) {
    const began = performance.now();
    const isServed = await call().catch(() => false);
    answers.push({ ms: performance.now() - began, isServed });
    await pause(everyMs);
  }
  return answers;
}

function fareOf(answers: readonly Answer[]): Fare {
  const waits = answers.map(({ ms }) => ms).sort((a, b) => a - b);
  return {
    tried: answers.length,
    served: answers.filter(({ isServed }) => isServed).length,
    medianMs: waits[waits.length >> 1]!,
    p95Ms: waits[Math.ceil(waits.length * 0.95) - 1]!,
    p99Ms: waits[Math.ceil(waits.length * 0.99) - 1]!,
    worstMs: waits.at(-1)!,
  };
}

/** Shorter waits, scaled by the load, are noise of the machine, so their ratio means nothing. */
const NOISE_MS = 25;

/** Of the slowest calls on a machine that other tests share, which the deep run is not, the wait may double again. */
const TIMES_MAX = process.env['TOLLGATE_DEEP'] === '1' ? 2 : 4;
/** Of the readings in turns the best one counts: other work on the machine makes a reading worse, and never better. */
const READINGS = 4;

/**
 * The promise of docs/run/memory.md to every account, whatever other accounts do: 95 % of its calls are served, and the
 * wait at most doubles.
 */
export function expectUnharmed(before: Fare, during: Fare): void {
  const shown = JSON.stringify({ before, during });
  expect(during.served / during.tried, shown).toBeGreaterThanOrEqual(0.95);
  expect(during.medianMs, shown).toBeLessThanOrEqual(2 * waitOf(before, 'medianMs'));
}

const waitOf = (before: Fare, part: 'medianMs' | 'p95Ms' | 'p99Ms'): number =>
  Math.max(before[part], atThisLoad(NOISE_MS));

/** As expectUnharmed of bystandInTurns, and for its slowest calls by `part`. */
export async function expectUnharmedInTurns(
  part: 'p95Ms' | 'p99Ms',
  ...turns: Parameters<typeof bystandInTurns>
): Promise<void> {
  for (let left = READINGS - 1; ; left -= 1) {
    const { before, during } = await bystandInTurns(...turns);
    const isHarmed =
      during[part] > TIMES_MAX * waitOf(before, part) || during.medianMs > 2 * waitOf(before, 'medianMs');
    if (left > 0 && isHarmed) continue;
    expectUnharmed(before, during);
    return expect(during[part], JSON.stringify({ before, during })).toBeLessThanOrEqual(
      TIMES_MAX * waitOf(before, part),
    );
  }
}
