import { dropOldest } from '#wire';

/**
 * The state of an offer. `good`: no recent failure. `recent`: it failed within the last 30 s and has succeeded since.
 * `probe`: it has cooled down and waits for one call to try it. `resting`: it cools down, a call is probing it, or its
 * provider is away. `open`: like `resting`, but after so many failures in a row that it must not be tried.
 */
export type HealthState = 'good' | 'recent' | 'probe' | 'resting' | 'open';

/**
 * The outages of one offer: one for all accounts, and one for each account whose own calls failed. If the calls of one
 * account fail, the offer closes for that account alone. Otherwise anybody could close it, by free requests that a
 * provider answers with an error.
 */
export interface OfferOutages {
  healthState(at: number, account?: string): HealthState;
  isFailing(at: number): boolean;
  /** Whether the last that is known for all accounts is a failure, however long ago it was. */
  lastFailed(): boolean;
  /** Whether it is down for all accounts, and for which accounts it is down besides. */
  down(at: number): { readonly forAll: boolean; readonly accounts: readonly string[] };
  triedAgainAt(at: number, account?: string): number;
  failed(at: number, adds: number): void;
  /** Records a failed call of this account. */
  failedFor(account: string, at: number, present: boolean): void;
  /**
   * The account's last failure counts as evidence for all accounts. Each account counts as at most two failures. Three
   * accounts are needed before the offer rests for all.
   */
  witnessed(account: string, at: number): void;
  succeeded(at: number, beganAt: number): void;
  probing(until: number, at: number, account?: string): void;
  notProbed(at: number, account?: string): void;
  returned(at: number): void;
}

/** A run of failures of one offer, either for all accounts or for one account. */
interface Outage {
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
  readonly windowMs: number;
  readonly failuresMax: number;
}

/** The number of accounts with failures after which an offer rests for all accounts. */
const ACCOUNTS_MIN = 3;
/** The maximum number of failures of one account that count for all. */
const FAILURES_PER_ACCOUNT = 2;
/**
 * Maximum number of accounts with outages in memory for each offer. The one with the oldest failure is deleted first.
 */
const ACCOUNTS_MAX = 32;

interface AccountOutage extends Outage {
  /** Its failures are evidence for all accounts. */
  witness: boolean;
  /** How many of its failures count: 0 to FAILURES_PER_ACCOUNT. */
  counting: number;
}

const SEVERITY: Readonly<Record<HealthState, number>> = { good: 0, recent: 1, probe: 2, resting: 3, open: 4 };

export function createOfferOutages(rules: OutageRules): OfferOutages {
  const common = newOutage();
  const own = new Map<string, AccountOutage>();

  const ownOf = (account: string | undefined): AccountOutage | undefined =>
    account === undefined || own.size === 0 ? undefined : own.get(account);

  /**
   * For an account whose own calls failed, its own outage decides. The one trial at an offer that has cooled down for
   * all is left to another account.
   */
  const isPastCommon = (outage: Outage | undefined, at: number): boolean =>
    outage !== undefined && isDown(outage, at, rules) && hasCooledDown(common, at, rules);

  /**
   * The outage that a trial of this account tests: the account's own outage while that is down, otherwise the common
   * one.
   */
  const triedFor = (account: string | undefined, at: number): Outage => {
    const outage = ownOf(account);
    return outage && isDown(outage, at, rules) ? outage : common;
  };

  return {
    healthState(at, account) {
      const forAll = healthStateOf(common, at, rules);
      const outage = ownOf(account);
      if (!outage) return forAll;
      const forIt = healthStateOf(outage, at, rules);
      return isPastCommon(outage, at) || SEVERITY[forIt] > SEVERITY[forAll] ? forIt : forAll;
    },
    isFailing: (at) =>
      [common, ...own.values()].some((outage) => isDown(outage, at, rules) || hasJustFailed(outage, at, rules)),
    lastFailed: () => common.down,
    down: (at) => ({
      forAll: isDown(common, at, rules),
      accounts: [...own].flatMap(([account, outage]) => (isDown(outage, at, rules) ? [account] : [])),
    }),
    triedAgainAt(at, account) {
      const outage = ownOf(account);
      if (!outage || !isDown(outage, at, rules)) return triedAgainAt(common, rules);
      return isPastCommon(outage, at)
        ? triedAgainAt(outage, rules)
        : Math.max(triedAgainAt(outage, rules), triedAgainAt(common, rules));
    },
    failed(at, adds) {
      fail(common, at, adds, rules);
    },
    failedFor(account, at, present) {
      let outage = own.get(account);
      if (outage) own.delete(account);
      else {
        outage = { ...newOutage(), witness: false, counting: 0 };
        dropOldest(own, ACCOUNTS_MAX - 1);
      }
      // The newest is last. If this call was the probe for all accounts, its result is known now.
      own.set(account, outage);
      if (!isDown(outage, at, rules)) common.probedUntil = 0;
      // All calls that broke with one connection count as one failure.
      fail(outage, at, outage.streak === 0 || present ? 1 : 0, rules);
    },
    witnessed(account, at) {
      const outage = own.get(account);
      if (!outage) return;
      const isNew = !outage.witness;
      outage.witness = true;
      outage.counting = Math.min(FAILURES_PER_ACCOUNT, outage.counting + 1);
      let accounts = 0;
      let failures = 0;
      for (const each of own.values()) {
        if (!each.witness || !isDown(each, at, rules)) continue;
        accounts++;
        failures += each.counting;
      }
      if (accounts < ACCOUNTS_MIN) return;
      // An account that has failed before does not prolong the rest.
      if (isNew || !common.down) fail(common, at, 0, rules);
      // The streak stays below the limit for `open`, so the offer never closes for an account whose own calls have not
      // failed. Otherwise somebody could close it with many accounts, which cost little to create.
      common.streak = Math.max(common.streak, Math.min(failures, rules.failuresMax - 1));
    },
    succeeded(at, beganAt) {
      succeed(common, beganAt);
      if (own.size === 0) return;
      for (const [account, outage] of own) {
        outage.counting = 0;
        if (!succeed(outage, beganAt)) continue;
        outage.witness = false;
        if (at - outage.failedAt >= rules.windowMs) own.delete(account);
      }
    },
    probing(until, at, account) {
      triedFor(account, at).probedUntil = until;
    },
    notProbed(at, account) {
      triedFor(account, at).probedUntil = 0;
    },
    returned(at) {
      restart(common, at, rules);
      for (const outage of own.values()) restart(outage, at, rules);
    },
  };
}

/** After this many cool-down periods a failure no longer counts. */
const FORGET_COOLDOWNS = 10;

function newOutage(): Outage {
  return { down: false, streak: 0, failedAt: -Infinity, probedUntil: 0 };
}

function healthStateOf(outage: Outage, at: number, { cooldownMs, windowMs, failuresMax }: OutageRules): HealthState {
  if (outage.failedAt === -Infinity) return 'good';
  const since = at - outage.failedAt;
  if (!outage.down || since > cooldownMs * (1 + FORGET_COOLDOWNS)) return since < windowMs ? 'recent' : 'good';
  if (since >= cooldownMs && at >= outage.probedUntil) return 'probe';
  return outage.streak >= failuresMax ? 'open' : 'resting';
}

/** Whether the offer is down and the failure is recent enough to count. */
const isDown = (outage: Outage, at: number, { cooldownMs }: OutageRules): boolean =>
  outage.down && at - outage.failedAt <= cooldownMs * (1 + FORGET_COOLDOWNS);

/** Whether the last call failed a moment ago. Without a cool-down the offer is not down then. */
const hasJustFailed = ({ streak, failedAt }: Outage, at: number, { windowMs }: OutageRules): boolean =>
  streak > 0 && at - failedAt < windowMs;

const hasCooledDown = (outage: Outage, at: number, { cooldownMs }: OutageRules): boolean =>
  at - outage.failedAt >= cooldownMs;

const triedAgainAt = (outage: Outage, { cooldownMs }: OutageRules): number =>
  Math.max(outage.failedAt + cooldownMs, outage.probedUntil);

/** `adds`: the number to add to the streak. */
function fail(outage: Outage, at: number, adds: number, { cooldownMs }: OutageRules): void {
  if (at - outage.failedAt > cooldownMs * (1 + FORGET_COOLDOWNS)) outage.streak = 0;
  outage.streak += adds;
  outage.down = cooldownMs > 0;
  outage.failedAt = at;
  outage.probedUntil = 0;
}

/** Returns true if the outage is over. The success of a call that began before the failure does not end it. */
function succeed(outage: Outage, beganAt: number): boolean {
  outage.streak = 0;
  if (beganAt < outage.failedAt) return false;
  outage.down = false;
  outage.probedUntil = 0;
  return true;
}

/** The provider has reconnected, so one call may try it at once. */
function restart(outage: Outage, at: number, { cooldownMs }: OutageRules): void {
  if (!outage.down) return;
  outage.failedAt = Math.min(outage.failedAt, at - cooldownMs);
  outage.streak = 0;
  outage.probedUntil = 0;
}
