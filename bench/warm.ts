import type { Generator } from './generator.ts';
import type { Job } from './load/job.ts';
import { SMALL_CONNECTIONS } from './plan.ts';

/** The first calls of a target, which are not measured. They end after so many calls, or after so long. */
export interface Warmth {
  readonly calls: number;
  readonly msMax: number;
}

/**
 * V8 still compiles the code of a gateway during its first 30,000 calls, and far less of a passthrough's. So without
 * them the figures are those of a gateway that has just started.
 */
export const WARM: Warmth = { calls: 30_000, msMax: 20_000 };
/** For orders of magnitude. */
export const LUKEWARM: Warmth = { calls: 2_000, msMax: 1_500 };

const TURN_MS = 1_000;

/** Throws when a call fails: a target that cannot do the work is not measured. */
export async function warm(
  generator: Generator,
  jobOf: (shape: Job['shape']) => Job,
  { calls, msMax }: Warmth,
): Promise<void> {
  const begun = performance.now();
  const left = () => msMax - (performance.now() - begun);
  for (let done = 0; done < calls && left() > 0;) {
    const durationMs = Math.ceil(Math.min(TURN_MS, left()));
    const result = await generator.run(jobOf({ kind: 'closed', connections: SMALL_CONNECTIONS, durationMs }));
    if (result.errors > 0 || result.calls === 0)
      throw new Error(`${result.errors} of ${result.calls + result.errors} calls failed: ${result.firstError}`);
    done += result.calls;
  }
}
