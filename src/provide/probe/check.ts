/** The result of a successful check, with advice on the file. */
export interface Found {
  readonly detail: string;
  readonly advice: readonly string[];
}

/** One check. `run` resolves with what it found, and rejects with ProbeFailure. */
export interface Check {
  /** The kind of thing to check, such as `model`. */
  readonly kind: string;
  /** Its name, such as the name of the service. */
  readonly name: string;
  readonly run: () => Promise<string | Found>;
}

export interface CheckResult {
  readonly ok: boolean;
  /** The finding. For a failure: what is wrong, and what would be right. */
  readonly detail: string;
  /** Optional improvements of the file. */
  readonly advice: readonly string[];
  readonly ms: number;
}

/** A check failed. `message` says what is wrong. */
export class ProbeFailure extends Error {
  override readonly name = 'ProbeFailure';
}

/** Runs one check. An error becomes a failed result. */
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
