import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'vitest';
import { atThisLoad } from './at-this-load.ts';

/** The results of one account's sequential calls. Times are in milliseconds. */
export interface Fare {
  readonly tried: number;
  readonly served: number;
  /** Durations of all calls, including failed ones. 95 % of them took no longer than `p95Ms`. */
  readonly medianMs: number;
  readonly p95Ms: number;
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
export async function bystand({ call, calls = CALLS, everyMs = 20 }: BystanderOptions): Promise<Fare> {
  const waits: number[] = [];
  let served = 0;
  for (let i = 0; i < calls; i++) {
    const began = performance.now();
    if (await call().catch(() => false)) served++;
    waits.push(performance.now() - began);
    await pause(everyMs);
  }
  waits.sort((a, b) => a - b);
  return {
    tried: calls,
    served,
    medianMs: waits[calls >> 1]!,
    p95Ms: waits[Math.ceil(calls * 0.95) - 1]!,
    worstMs: waits.at(-1)!,
  };
}

/** Shorter waits, scaled by the load, are noise of the machine, so their ratio means nothing. */
export const NOISE_MS = 25;

/**
 * The promise of docs/operations.md to every account, whatever other accounts do: 95 % of its calls are served, and the
 * wait at most doubles.
 */
export function expectUnharmed(before: Fare, during: Fare): void {
  expect(during.served / during.tried, JSON.stringify({ before, during })).toBeGreaterThanOrEqual(0.95);
  expect(during.medianMs, JSON.stringify({ before, during })).toBeLessThanOrEqual(
    2 * Math.max(before.medianMs, atThisLoad(NOISE_MS)),
  );
}
