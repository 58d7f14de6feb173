import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'vitest';
import { atThisLoad } from './at-this-load.ts';

/** How one account's calls fared, made one after the other. Times in milliseconds. */
export interface Fare {
  readonly tried: number;
  readonly served: number;
  /** Median and longest wait of all calls, the failed ones too. */
  readonly medianMs: number;
  readonly worstMs: number;
}

export interface BystanderOptions {
  /** Makes one call; true where it was served. A rejection is a call that was not. */
  readonly call: () => Promise<boolean>;
  /** Default 20, in the deep run 30. */
  readonly calls?: number;
  /** Pause between two calls. Default 20 ms. */
  readonly everyMs?: number;
}

const CALLS = process.env['TOLLGATE_DEEP'] === '1' ? 30 : 20;

/**
 * Calls as an account that does nothing wrong while others misbehave. The gateway must be a process of its own: a
 * stall of its event loop would otherwise stop this clock as well.
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
  return { tried: calls, served, medianMs: waits[calls >> 1]!, worstMs: waits.at(-1)! };
}

/** Below this, times the load, a wait is noise of the machine: a ratio of such waits says nothing. */
const NOISE_MS = 25;

/**
 * What docs/operations.md promises to every account whatever another one does: 95 % of its calls, and at most twice
 * the wait.
 */
export function expectUnharmed(before: Fare, during: Fare): void {
  expect(during.served / during.tried, JSON.stringify({ before, during })).toBeGreaterThanOrEqual(0.95);
  expect(during.medianMs, JSON.stringify({ before, during })).toBeLessThanOrEqual(
    2 * Math.max(before.medianMs, atThisLoad(NOISE_MS)),
  );
}
