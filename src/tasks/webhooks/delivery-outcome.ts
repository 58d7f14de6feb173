/**
 * The meaning of a receiver's HTTP status for a delivery. `again`: retry it. `never`: drop it. `gone`: the receiver
 * wants no more deliveries, so the webhook ends.
 */
export type DeliveryOutcome = 'delivered' | 'again' | 'never' | 'gone';

const TIMEOUT = 408;
const GONE = 410;
const TOO_EARLY = 425;
const TOO_MANY = 429;

/** A redirect gives `never`: it is not followed, and a retry would get the same answer. */
export function outcomeOf(status: number): DeliveryOutcome {
  if (status >= 200 && status < 300) return 'delivered';
  if (status === GONE) return 'gone';
  return status >= 500 || status === TIMEOUT || status === TOO_EARLY || status === TOO_MANY ? 'again' : 'never';
}

/** Delays after the first, second … attempt: five attempts in about ten minutes. */
const DELAYS_MS = [5_000, 30_000, 120_000, 420_000] as const;
const JITTER = 0.25;
/** A longer Retry-After of a receiver is shortened to this. */
const ASKED_MS_MAX = 600_000;

/**
 * Milliseconds until the next attempt, after `attempts` attempts; null after the last one. `asked`: the receiver's
 * `Retry-After`, in seconds.
 */
export function delayAfter(attempts: number, random: () => number, asked?: unknown): number | null {
  const delay = DELAYS_MS[attempts - 1];
  if (delay === undefined) return null;
  const jittered = Math.round(delay * (1 - JITTER + 2 * JITTER * random()));
  const askedMs = typeof asked === 'string' && /^\d{1,6}$/.test(asked) ? Number(asked) * 1_000 : 0;
  return Math.max(jittered, Math.min(askedMs, ASKED_MS_MAX));
}
