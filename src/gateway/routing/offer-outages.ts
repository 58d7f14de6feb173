import { dropOldest } from '#wire';
import type { Standing } from './router.ts';
import {
  fail,
  hasCooledDown,
  isDown,
  newOutage,
  restart,
  standingOf,
  succeed,
  triedAgainAt,
  type Outage,
  type OutageRules,
} from './outage.ts';

/**
 * The outages of one offer: one that holds for every account, and one for each account whose own calls failed.
 * Failures of one account's calls close the offer for that account alone: anybody can write a request that a
 * provider answers with an error, and pays nothing for it.
 */
export interface OfferOutages {
  /** `account`: for whose call; none for what holds for every account. */
  standing(at: number, account?: string): Standing;
  /** When the next call of the account may try it. */
  triedAgainAt(at: number, account?: string): number;
  /** It failed in a way that no call can cause. */
  failed(at: number, adds: number): void;
  /** A call of this account failed. */
  failedFor(account: string, at: number, present: boolean): void;
  /**
   * The account's last failure counts as evidence for every account. Each account counts as two failures at most,
   * and it takes three accounts until it rests for all.
   */
  witnessed(account: string, at: number): void;
  succeeded(at: number, beganAt: number): void;
  probing(until: number, at: number, account?: string): void;
  notProbed(at: number, account?: string): void;
  returned(at: number): void;
}

/** Accounts whose failures rest an offer for every account. */
const ACCOUNTS_MIN = 3;
/** Failures of one account that count for all. */
const FAILURES_PER_ACCOUNT = 2;
/** Accounts whose outages are remembered per offer; the one that failed longest ago is forgotten first. */
const ACCOUNTS_MAX = 32;

interface AccountOutage extends Outage {
  /** Its failures are evidence for every account. */
  witness: boolean;
  /** How many of them count: 0 to FAILURES_PER_ACCOUNT. */
  counting: number;
}

const SEVERITY: Readonly<Record<Standing, number>> = { good: 0, recent: 1, probe: 2, resting: 3, open: 4 };

export function createOfferOutages(rules: OutageRules): OfferOutages {
  const common = newOutage();
  const own = new Map<string, AccountOutage>();

  const ownOf = (account: string | undefined): AccountOutage | undefined =>
    account === undefined || own.size === 0 ? undefined : own.get(account);

  /**
   * An account that knows the offer as down is held back by its own outage; the one try at a cooled-down offer is
   * for an account that does not.
   */
  const isPastCommon = (of: Outage | undefined, at: number): boolean =>
    of !== undefined && isDown(of, at, rules) && hasCooledDown(common, at, rules);

  /** The outage that a try of this account probes: its own while it knows the offer as down, else everybody's. */
  const triedFor = (account: string | undefined, at: number): Outage => {
    const of = ownOf(account);
    return of && isDown(of, at, rules) ? of : common;
  };

  return {
    standing(at, account) {
      const forAll = standingOf(common, at, rules);
      const of = ownOf(account);
      if (!of) return forAll;
      const forIt = standingOf(of, at, rules);
      return isPastCommon(of, at) || SEVERITY[forIt] > SEVERITY[forAll] ? forIt : forAll;
    },
    triedAgainAt(at, account) {
      const of = ownOf(account);
      if (!of || !isDown(of, at, rules)) return triedAgainAt(common, rules);
      return isPastCommon(of, at)
        ? triedAgainAt(of, rules)
        : Math.max(triedAgainAt(of, rules), triedAgainAt(common, rules));
    },
    failed(at, adds) {
      fail(common, at, adds, rules);
    },
    failedFor(account, at, present) {
      let of = own.get(account);
      if (of) own.delete(account);
      else {
        of = { ...newOutage(), witness: false, counting: 0 };
        dropOldest(own, ACCOUNTS_MAX - 1);
      }
      // Newest last. If it was the one to probe the offer, it is heard of now.
      own.set(account, of);
      if (!isDown(of, at, rules)) common.probedUntil = 0;
      // All that broke with a connection is one failure.
      fail(of, at, of.streak === 0 || present ? 1 : 0, rules);
    },
    witnessed(account, at) {
      const of = own.get(account);
      if (!of) return;
      const isNew = !of.witness;
      of.witness = true;
      of.counting = Math.min(FAILURES_PER_ACCOUNT, of.counting + 1);
      let accounts = 0;
      let failures = 0;
      for (const each of own.values()) {
        if (!each.witness || !isDown(each, at, rules)) continue;
        accounts++;
        failures += each.counting;
      }
      if (accounts < ACCOUNTS_MIN) return;
      // An account that failed before does not make it rest any longer.
      if (isNew || !common.down) fail(common, at, 0, rules);
      // It never closes for an account whose own calls have not failed: accounts cost little to make.
      common.streak = Math.max(common.streak, Math.min(failures, rules.failuresMax - 1));
    },
    succeeded(at, beganAt) {
      succeed(common, beganAt);
      if (own.size === 0) return;
      for (const [account, of] of own) {
        of.counting = 0;
        if (!succeed(of, beganAt)) continue;
        of.witness = false;
        if (at - of.failedAt >= rules.windowMs) own.delete(account);
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
      for (const of of own.values()) restart(of, at, rules);
    },
  };
}
