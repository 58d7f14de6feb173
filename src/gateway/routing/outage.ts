import type { Standing } from './router.ts';

/** A run of failures of one offer: as it is for every account, or for one of them. */
export interface Outage {
  /** It failed, and no call that began after that has succeeded. */
  down: boolean;
  /** Failures in a row, without any success between them. */
  streak: number;
  failedAt: number;
  /** Until when a call that probes a cooled-down offer keeps others from it. */
  probedUntil: number;
}

export interface OutageRules {
  readonly cooldownMs: number;
  /** How long a failure counts as a recent outage. */
  readonly windowMs: number;
  /** Failures in a row after which an offer is not tried at all while it cools down. */
  readonly failuresMax: number;
}

/** Cool-downs after which a failure is too old to mean anything. */
const FORGET_COOLDOWNS = 10;

export function newOutage(): Outage {
  return { down: false, streak: 0, failedAt: -Infinity, probedUntil: 0 };
}

export function standingOf(outage: Outage, at: number, { cooldownMs, windowMs, failuresMax }: OutageRules): Standing {
  if (outage.failedAt === -Infinity) return 'good';
  const since = at - outage.failedAt;
  if (!outage.down || since > cooldownMs * (1 + FORGET_COOLDOWNS)) return since < windowMs ? 'recent' : 'good';
  if (since >= cooldownMs && at >= outage.probedUntil) return 'probe';
  return outage.streak >= failuresMax ? 'open' : 'resting';
}

/** Whether the offer is down and the failure is not too old to mean that. */
export const isDown = (outage: Outage, at: number, { cooldownMs }: OutageRules): boolean =>
  outage.down && at - outage.failedAt <= cooldownMs * (1 + FORGET_COOLDOWNS);

export const hasCooledDown = (outage: Outage, at: number, { cooldownMs }: OutageRules): boolean =>
  at - outage.failedAt >= cooldownMs;

/** When the next call may try a resting offer. */
export const triedAgainAt = (outage: Outage, { cooldownMs }: OutageRules): number =>
  Math.max(outage.failedAt + cooldownMs, outage.probedUntil);

/** `adds`: how much longer the failure makes the streak. */
export function fail(outage: Outage, at: number, adds: number, { cooldownMs }: OutageRules): void {
  if (at - outage.failedAt > cooldownMs * (1 + FORGET_COOLDOWNS)) outage.streak = 0;
  outage.streak += adds;
  outage.down = cooldownMs > 0;
  outage.failedAt = at;
  outage.probedUntil = 0;
}

/** True where the outage is over: a call that began before the failure does not say that the offer is back. */
export function succeed(outage: Outage, beganAt: number): boolean {
  outage.streak = 0;
  if (beganAt < outage.failedAt) return false;
  outage.down = false;
  outage.probedUntil = 0;
  return true;
}

/** The provider is connected anew: one call may try it at once. */
export function restart(outage: Outage, at: number, { cooldownMs }: OutageRules): void {
  if (!outage.down) return;
  outage.failedAt = Math.min(outage.failedAt, at - cooldownMs);
  outage.streak = 0;
  outage.probedUntil = 0;
}
