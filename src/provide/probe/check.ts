/** What a check found, and what its file should say besides. */
export interface Found {
  readonly detail: string;
  readonly advice: readonly string[];
}

/** Something that a probe looks at. `run` resolves with what it found, and rejects with ProbeFailure. */
export interface Check {
  /** What is looked at, such as `model`. */
  readonly kind: string;
  /** Which one, such as the name of the service. */
  readonly name: string;
  readonly run: () => Promise<string | Found>;
}

export interface CheckResult {
  readonly ok: boolean;
  /** What was found, or what is wrong and would be right. */
  readonly detail: string;
  /** What the file should say, though all is well without. */
  readonly advice: readonly string[];
  readonly ms: number;
}

/** What was looked at is not as it should be; `message` says what is wrong. */
export class ProbeFailure extends Error {
  override readonly name = 'ProbeFailure';
}

/** Runs one check. Whatever goes wrong in it is its result. */
export async function runCheck(check: Check, now: () => number): Promise<CheckResult> {
  const begun = now();
  try {
    const found = await check.run();
    const { detail, advice } = typeof found === 'string' ? { detail: found, advice: [] } : found;
    return { ok: true, detail, advice, ms: now() - begun };
  } catch (error) {
    return { ok: false, detail: error instanceof Error ? error.message : String(error), advice: [], ms: now() - begun };
  }
}
