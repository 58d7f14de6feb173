/**
 * The meaning of a receiver's status for a delivery. `gone`: the receiver wants nothing more, and the webhook ends.
 */
export type DeliveryOutcome = 'delivered' | 'again' | 'never' | 'gone';

const TIMEOUT = 408;
const GONE = 410;
const TOO_EARLY = 425;
const TOO_MANY = 429;

/** Redirects are not followed, and will be the same the next time. */
export function outcomeOf(status: number): DeliveryOutcome {
  if (status >= 200 && status < 300) return 'delivered';
  if (status === GONE) return 'gone';
  return status >= 500 || status === TIMEOUT || status === TOO_EARLY || status === TOO_MANY ? 'again' : 'never';
}

/** Waits after the first, second … attempt: five attempts in about ten minutes. */
const DELAYS_MS = [5_000, 30_000, 120_000, 420_000] as const;
const JITTER = 0.25;
/** A receiver that asks for more than this gets its next attempt earlier. */
const ASKED_MS_MAX = 600_000;

/**
 * Milliseconds until the next attempt after so many; null after the last one. `asked`: the receiver's
 * `Retry-After`, in seconds.
 */
export function delayAfter(attempts: number, random: () => number, asked?: unknown): number | null {
  const delay = DELAYS_MS[attempts - 1];
  if (delay === undefined) return null;
  const jittered = Math.round(delay * (1 - JITTER + 2 * JITTER * random()));
  const askedMs = typeof asked === 'string' && /^\d{1,6}$/.test(asked) ? Number(asked) * 1_000 : 0;
  return Math.max(jittered, Math.min(askedMs, ASKED_MS_MAX));
}
