/** The result of a check, and advice on the file. */
export interface Found {
  readonly detail: string;
  readonly advice: readonly string[];
}

/** Something that a probe looks at. `run` resolves with what it found, and rejects with ProbeFailure. */
export interface Check {
  /** The kind of subject, such as `model`. */
  readonly kind: string;
  /** Which one, such as the name of the service. */
  readonly name: string;
  readonly run: () => Promise<string | Found>;
}

export interface CheckResult {
  readonly ok: boolean;
  /** The finding; of a failure what is wrong and what would be right. */
  readonly detail: string;
  /** Improvements of the file that are not needed for the check to pass. */
  readonly advice: readonly string[];
  readonly ms: number;
}

/** The subject of a check is not as it should be; `message` says what is wrong. */
export class ProbeFailure extends Error {
  override readonly name = 'ProbeFailure';
}

/** Runs one check. An error in it is its result. */
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
