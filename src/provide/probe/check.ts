/** Something that a probe looks at. `run` resolves with what it found, and rejects with ProbeFailure. */
export interface Check {
  /** What is looked at, such as `model`. */
  readonly kind: string;
  /** Which one, such as the name of the service. */
  readonly name: string;
  readonly run: () => Promise<string>;
}

export interface CheckResult {
  readonly ok: boolean;
  /** What was found, or what is wrong and would be right. */
  readonly detail: string;
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
    const detail = await check.run();
    return { ok: true, detail, ms: now() - begun };
  } catch (error) {
    return { ok: false, detail: error instanceof Error ? error.message : String(error), ms: now() - begun };
  }
}
