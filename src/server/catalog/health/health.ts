import { dropOldest } from '#wire';
import { OWN_ACCOUNT } from '#accounts';
import type { Offer } from '../offers.ts';
import {
  type CallSample,
  type CountedOffers,
  createOfferFigures,
  createOfferStates,
  OFFERS_MAX,
} from './offer-figures.ts';
import type { OfferFigures } from './kept-figures.ts';
import type { OutageRules, HealthState } from './offer-outages.ts';

/** An offer that has failed, without a success of any account since. */
export interface OfferOutage {
  /** Id of the offer. */
  readonly offer: string;
  /** Whether it rests for all accounts. */
  readonly forAll: boolean;
  /** The accounts for which it rests, because their own calls failed. Empty once these failures are forgotten. */
  readonly accounts: readonly string[];
  /** Epoch milliseconds of the first failure; null if a call succeeded since, which began before the newest failure. */
  readonly since: number | null;
}

/** The health of offers, from real calls. */
export interface Health extends Pick<
  CountedOffers,
  'flagged' | 'compliance' | 'latencyMs' | 'tokensPerSecond' | 'stats' | 'evidence'
> {
  /**
   * `counted`: false for a call that is free by its protocol's table. Such a call shows that the offer can be reached,
   * but does not count in the figures.
   */
  succeeded(offer: Offer, sample: CallSample, counted?: boolean): void;
  /** The call did not reach the offer. No account can cause that, so the offer rests for all. */
  unreachable(offer: Offer, counted?: boolean): void;
  /** A call of `account` failed, which began at the offer at `beganAt`. The offer rests for that account. */
  failed(offer: Offer, account: string, beganAt: number): void;
  /**
   * The last failure of this account's calls was the offer's fault, because the call failed nowhere else. It counts in
   * the figures. `evidence`: it also counts for all accounts. If several accounts have evidence, the offer rests for
   * all.
   */
  blamed(offer: Offer, account: string, beganAt: number, evidence: boolean): void;
  /**
   * A provider has reconnected. Failures on its earlier connection need no more cool-down: one call may try it at once.
   */
  returned(provider: string): void;
  /** False while an offer cools down after a failure, for this account or for all. */
  available(offer: Offer, account?: string): boolean;
  /** Whether its provider is here, and the last call of any account that is known did not fail. */
  works(offer: Offer): boolean;
  /**
   * Whether it may be called and hardly works: most of its calls of the last hour failed, or the last that is known of
   * it is that it failed for all, which is not forgotten until a call succeeds.
   */
  failing(offer: Offer): boolean;
  /** The outage of an offer as this process saw it; null if its last call succeeded. For the operator alone. */
  outageOf(offer: Pick<Offer, 'id'>): OfferOutage | null;
  /** Of all offers, the newest failure last. */
  outages(): readonly OfferOutage[];
  /**
   * False for an offer of a stranger until it has served some calls. Until then it gets few calls at a time, and what
   * it does not answer soon goes to the next offer.
   */
  isProven(offer: Offer): boolean;
  /** The calls that run at an offer that is not proven. The caller reports each begin (1) and each end (-1). */
  trials(offer: Offer): number;
  tried(offer: Offer, change: 1 | -1): void;
  /** The state of an offer for `account`; without `account`, its state for all accounts. */
  healthState(offer: Offer, account?: string): HealthState;
  /** A call is about to try this cooled-down offer. Other calls stay away until its result is known. */
  probing(offer: Offer, account?: string): void;
  /**
   * The call that was going to try this offer was refused before it was sent. Another call may try the offer at once.
   */
  notProbed(offer: Offer, account?: string): void;
  /** Seconds until the first of these offers may be tried again, at least 1. */
  retryAfterS(offers: readonly Offer[], account?: string): number;
}

export interface HealthOptions {
  readonly now: () => number;
  /**
   * Added to `now`, it gives epoch milliseconds, so that all gateways, also after a restart, agree on the minutes.
   * Default 0.
   */
  readonly epochOffsetMs?: number;
  /** How long a failed offer is skipped by the accounts for which it failed. */
  readonly cooldownMs: number;
  /** How long a failure counts as a recent outage. */
  readonly windowMs?: number;
  /** After this many failures in a row, an offer that cools down is not tried at all. */
  readonly failuresMax?: number;
  /** How long one probing call may keep other calls away if its result never comes. */
  readonly probeMs?: number;
  /** False while an offer's provider is not connected. */
  readonly present?: (offer: Offer) => boolean;
  /** Whether an offer has to prove itself, because anybody may sell here. Default: none has. */
  readonly isStranger?: (offer: Offer) => boolean;
}

/**
 * Health of offers, from real calls. After a failure an offer rests for `cooldownMs`, either for the account of the
 * failed call or for all accounts (see OfferOutages). Then one call at a time probes it, until one succeeds. All state
 * is bounded: for each offer the counts of one hour by minute, and the newest 128 measurements.
 */
export function createHealth(options: HealthOptions): Health & OfferFigures {
  const {
    now,
    epochOffsetMs = 0,
    cooldownMs,
    windowMs = 30_000,
    failuresMax = 10,
    probeMs = 10_000,
    present = () => true,
    isStranger = () => false,
  } = options;
  const rules: OutageRules = { cooldownMs, windowMs, failuresMax };
  const states = createOfferStates(rules);
  const figures = createOfferFigures(states, () => now() + epochOffsetMs);
  /** When each provider last reconnected. The newest comes last. */
  const returnedAt = new Map<string, number>();

  const healthState = (offer: Offer, account?: string): HealthState => {
    const state = states.find(offer.id)?.outages?.healthState(now(), account) ?? 'good';
    // An offer whose provider is away comes after all others. If there are no others, the call waits for the provider's
    // return, unless many calls have already waited in vain.
    return state === 'open' || present(offer) ? state : 'resting';
  };

  /**
   * Whether the failed call began on an earlier connection of the provider. Such a failure does not count against the
   * new connection.
   */
  const isOfEarlierConnection = (offer: Offer, beganAt: number): boolean =>
    beganAt < (returnedAt.get(offer.provider.id) ?? -Infinity);

  const outageOf = ({ id }: Pick<Offer, 'id'>): OfferOutage | null => {
    const state = states.find(id);
    const { forAll, accounts } = state?.outages?.down(now()) ?? NOT_DOWN;
    const since = state?.failsSince ?? null;
    return forAll || accounts.length > 0 || since !== null ? { offer: id, forAll, accounts, since } : null;
  };

  return {
    ...figures,
    healthState,
    outageOf,
    outages: () => [...states.all()].flatMap((state) => outageOf(state) ?? []),
    available(offer, account) {
      return isAvailable(healthState(offer, account));
    },
    works: (offer) => present(offer) && states.find(offer.id)?.outages?.isFailing(now()) !== true,
    failing(offer) {
      if (states.find(offer.id)?.outages?.lastFailed() === true) return true;
      const { requests, failures } = figures.stats(offer).lastHour;
      return requests >= JUDGED_FROM && failures * 2 > requests;
    },
    isProven: (offer) => !isStranger(offer) || (states.find(offer.id)?.successes ?? 0) >= PROVEN_FROM,
    trials: ({ id }) => states.find(id)?.trials ?? 0,
    tried({ id }, change) {
      const state = states.stateOf(id);
      state.trials = Math.max(0, state.trials + change);
    },
    probing(offer, account) {
      const at = now();
      states.find(offer.id)?.outages?.probing(at + probeMs, at, account);
    },
    notProbed(offer, account) {
      states.find(offer.id)?.outages?.notProbed(now(), account);
    },
    succeeded(offer, sample, counted = true) {
      const at = now();
      const state = states.stateOf(offer.id);
      if (counted) figures.succeeded(state, sample, at + epochOffsetMs);
      state.outages?.succeeded(at, at - sample.durationMs);
      figures.proved(state, true);
    },
    unreachable(offer, counted = true) {
      const state = states.ofFailed(offer.id);
      if (counted) figures.failed(state);
      state.outages.failed(now(), 1);
      figures.proved(state, false);
    },
    failed(offer, account, beganAt) {
      const state = states.ofFailed(offer.id);
      const { outages } = state;
      figures.proved(state, false);
      if (isOfEarlierConnection(offer, beganAt)) return;
      // The gateway's own requests do not depend on a consumer, so their failures count for all accounts.
      if (account === OWN_ACCOUNT) outages.failed(now(), 1);
      else outages.failedFor(account, now(), present(offer));
    },
    blamed(offer, account, beganAt, evidence) {
      const state = states.ofFailed(offer.id);
      figures.failed(state);
      if (evidence && present(offer) && !isOfEarlierConnection(offer, beganAt)) state.outages.witnessed(account, now());
    },
    returned(provider) {
      const at = now();
      returnedAt.delete(provider);
      dropOldest(returnedAt, OFFERS_MAX - 1);
      returnedAt.set(provider, at);
      for (const state of states.all()) if (state.provider === provider) state.outages?.returned(at);
    },
    retryAfterS(offers, account) {
      const at = now();
      let soonest = Infinity;
      for (const offer of offers) {
        const outages = states.find(offer.id)?.outages;
        if (!outages || isAvailable(outages.healthState(at, account))) return 1;
        soonest = Math.min(soonest, outages.triedAgainAt(at, account));
      }
      return soonest === Infinity ? 1 : Math.max(1, Math.ceil((soonest - at) / 1000));
    },
  };
}

/** With fewer calls in the last hour, failures are not held against an offer in public: one caller may cause them. */
const JUDGED_FROM = 10;

/** Calls of all accounts that a stranger's offer has served, at any gateway, before it counts as one that works. */
const PROVEN_FROM = 3;

const NOT_DOWN = { forAll: false, accounts: [] } as const;

const isAvailable = (healthState: HealthState): boolean =>
  healthState === 'good' || healthState === 'recent' || healthState === 'probe';
