import type { HealthState } from './router.ts';

/** A run of failures of one offer, either for all accounts or for one account. */
export interface Outage {
  /** The offer failed, and no call that began later has succeeded. */
  down: boolean;
  /** Failures in a row, without any success between them. */
  streak: number;
  failedAt: number;
  /** Until when a call that probes the cooled-down offer keeps other calls away. */
  probedUntil: number;
}

export interface OutageRules {
  readonly cooldownMs: number;
  /** How long a failure counts as a recent outage. */
  readonly windowMs: number;
  /** After this many failures in a row, an offer that cools down is not tried at all. */
  readonly failuresMax: number;
}

/** After this many cool-down periods a failure no longer counts. */
const FORGET_COOLDOWNS = 10;

export function newOutage(): Outage {
  return { down: false, streak: 0, failedAt: -Infinity, probedUntil: 0 };
}

export function healthStateOf(
  outage: Outage,
  at: number,
  { cooldownMs, windowMs, failuresMax }: OutageRules,
): HealthState {
  if (outage.failedAt === -Infinity) return 'good';
  const since = at - outage.failedAt;
  if (!outage.down || since > cooldownMs * (1 + FORGET_COOLDOWNS)) return since < windowMs ? 'recent' : 'good';
  if (since >= cooldownMs && at >= outage.probedUntil) return 'probe';
  return outage.streak >= failuresMax ? 'open' : 'resting';
}

/** Whether the offer is down and the failure is recent enough to count. */
export const isDown = (outage: Outage, at: number, { cooldownMs }: OutageRules): boolean =>
  outage.down && at - outage.failedAt <= cooldownMs * (1 + FORGET_COOLDOWNS);

export const hasCooledDown = (outage: Outage, at: number, { cooldownMs }: OutageRules): boolean =>
  at - outage.failedAt >= cooldownMs;

/** When the next call may try a resting offer. */
export const triedAgainAt = (outage: Outage, { cooldownMs }: OutageRules): number =>
  Math.max(outage.failedAt + cooldownMs, outage.probedUntil);

/** `adds`: the number to add to the streak. */
export function fail(outage: Outage, at: number, adds: number, { cooldownMs }: OutageRules): void {
  if (at - outage.failedAt > cooldownMs * (1 + FORGET_COOLDOWNS)) outage.streak = 0;
  outage.streak += adds;
  outage.down = cooldownMs > 0;
  outage.failedAt = at;
  outage.probedUntil = 0;
}

/** Returns true if the outage is over. The success of a call that began before the failure does not end it. */
export function succeed(outage: Outage, beganAt: number): boolean {
  outage.streak = 0;
  if (beganAt < outage.failedAt) return false;
  outage.down = false;
  outage.probedUntil = 0;
  return true;
}

/** The provider has reconnected, so one call may try it at once. */
export function restart(outage: Outage, at: number, { cooldownMs }: OutageRules): void {
  if (!outage.down) return;
  outage.failedAt = Math.min(outage.failedAt, at - cooldownMs);
  outage.streak = 0;
  outage.probedUntil = 0;
}
