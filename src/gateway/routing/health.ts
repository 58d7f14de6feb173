import { dropOldest } from '#wire';
import { OWN_ACCOUNT, type Offer } from '../call.ts';
import { providerOf } from '../catalog/offers.ts';
import { createOfferOutages, type OfferOutages } from './offer-outages.ts';
import type { OutageRules } from './outage.ts';
import type { Health, OfferStats, Standing } from './router.ts';
import { createSamples, type Samples } from './samples.ts';
import { createSlidingCount, type SlidingCount } from './sliding-count.ts';
import { createUnsavedFigures, FLAG_PREFIX, type Figure, type UnsavedFigures } from './unsaved-figures.ts';

export interface HealthOptions {
  readonly now: () => number;
  /**
   * What makes epoch milliseconds of `now`, so that gateways and later starts name the same minutes alike; default 0.
   */
  readonly epochOffsetMs?: number;
  /** How long an offer that failed is passed over, by those it failed for. */
  readonly cooldownMs: number;
  /** How long a failure counts as a recent outage. */
  readonly windowMs?: number;
  /** Failures in a row after which an offer is not tried at all while it cools down. */
  readonly failuresMax?: number;
  /** How long one call may keep the others from probing, should nothing be heard of it. */
  readonly probeMs?: number;
  /** False while an offer's provider is connected nowhere. */
  readonly present?: (offer: Offer) => boolean;
}

/** The counts of offers, for where they are kept. */
export interface OfferFigures {
  readonly unsaved: UnsavedFigures;
  /** These are the sums that are kept; what is not saved yet comes on top of each. */
  restore(figures: readonly Figure[]): void;
}

/** Offers that are remembered; the one that was heard of longest ago is forgotten first. */
const OFFERS_MAX = 10_000;
const SAMPLES = 128;
const MINUTES = 60;
const MINUTE_MS = 60_000;

const SUCCESS = 0;
const FAILURE = 1;
const FLAG = 2;

interface State {
  readonly id: string;
  readonly provider: string;
  successes: number;
  failures: number;
  readonly flags: Map<string, number>;
  readonly lastHour: SlidingCount;
  readonly latency: Samples;
  readonly throughput: Samples;
  /** null until it fails for the first time. */
  outages: OfferOutages | null;
}

/**
 * Health of offers from real calls. A failure makes an offer rest for `cooldownMs`, for the account whose call
 * failed or for all (see OfferOutages); after that one call at a time probes it, until one succeeds. All state is
 * bounded: per offer an hour of counts by the minute and the newest 128 measurements.
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
  } = options;
  const rules: OutageRules = { cooldownMs, windowMs, failuresMax };
  const states = new Map<string, State>();
  /** When each provider last connected anew; the newest last. */
  const returnedAt = new Map<string, number>();

  const unsaved = createUnsavedFigures();

  const stateById = (id: string): State => {
    let state = states.get(id);
    if (!state) {
      dropOldest(states, OFFERS_MAX - 1);
      states.set(id, (state = newState(id)));
    }
    return state;
  };
  const stateOf = (offer: Offer): State => stateById(offer.id);

  const epoch = (at: number): number => at + epochOffsetMs;
  const unsavedOf = (state: State, at: number) => unsaved.of(state.id, Math.floor(epoch(at) / MINUTE_MS) * MINUTE_MS);

  const standing = (offer: Offer, account?: string): Standing => {
    const found = states.get(offer.id)?.outages?.standing(now(), account) ?? 'good';
    // Behind all others; when there are no others the call waits for the provider's return, unless many waited in vain.
    return found === 'open' || present(offer) ? found : 'resting';
  };

  /** Of an offer that failed. Newest last, so that what is forgotten first is what nobody calls. */
  const heardFailing = (offer: Offer): State & { readonly outages: OfferOutages } => {
    const state = stateOf(offer);
    states.delete(offer.id);
    states.set(offer.id, state);
    state.outages ??= createOfferOutages(rules);
    return state as State & { readonly outages: OfferOutages };
  };

  const countFailure = (state: State, at: number): void => {
    state.failures++;
    state.lastHour.add(FAILURE, epoch(at));
    unsavedOf(state, at).failures++;
  };

  /** What broke with an earlier connection of the provider says nothing of this one. */
  const isOfEarlierConnection = (offer: Offer, beganAt: number): boolean =>
    beganAt < (returnedAt.get(offer.provider.id) ?? -Infinity);

  return {
    standing,
    available(offer, account) {
      return isAvailable(standing(offer, account));
    },
    probing(offer, account) {
      const at = now();
      states.get(offer.id)?.outages?.probing(at + probeMs, at, account);
    },
    notProbed(offer, account) {
      states.get(offer.id)?.outages?.notProbed(now(), account);
    },
    succeeded(offer, { firstByteMs, durationMs, completionTokens }, counted = true) {
      const at = now();
      const state = stateOf(offer);
      if (counted) {
        state.successes++;
        state.lastHour.add(SUCCESS, epoch(at));
        unsavedOf(state, at).successes++;
        state.latency.add(firstByteMs);
        if (completionTokens > 0 && durationMs > 0) state.throughput.add((completionTokens * 1000) / durationMs);
      }
      state.outages?.succeeded(at, at - durationMs);
    },
    unreachable(offer, counted = true) {
      const at = now();
      const state = heardFailing(offer);
      if (counted) countFailure(state, at);
      state.outages.failed(at, 1);
    },
    failed(offer, account, beganAt) {
      const { outages } = heardFailing(offer);
      if (isOfEarlierConnection(offer, beganAt)) return;
      // No consumer shapes what the gateway asks for itself.
      if (account === OWN_ACCOUNT) outages.failed(now(), 1);
      else outages.failedFor(account, now(), present(offer));
    },
    blamed(offer, account, beganAt, evidence) {
      const at = now();
      const state = heardFailing(offer);
      countFailure(state, at);
      if (evidence && present(offer) && !isOfEarlierConnection(offer, beganAt)) state.outages.witnessed(account, at);
    },
    returned(provider) {
      const at = now();
      returnedAt.delete(provider);
      dropOldest(returnedAt, OFFERS_MAX - 1);
      returnedAt.set(provider, at);
      for (const state of states.values()) if (state.provider === provider) state.outages?.returned(at);
    },
    flagged(offer, flag) {
      const state = stateOf(offer);
      const at = now();
      state.flags.set(flag, (state.flags.get(flag) ?? 0) + 1);
      state.lastHour.add(FLAG, epoch(at));
      const { flags } = unsavedOf(state, at);
      flags.set(flag, (flags.get(flag) ?? 0) + 1);
    },
    compliance(offer) {
      const state = states.get(offer.id);
      if (!state || state.flags.size === 0) return 1;
      const at = epoch(now());
      const flags = state.lastHour.total(FLAG, at);
      if (flags === 0) return 1;
      const calls = state.lastHour.total(SUCCESS, at) + state.lastHour.total(FAILURE, at);
      // Five calls on credit, so that a first bad reply does not condemn a new offer.
      return Math.max(0, 1 - flags / (Math.max(calls, flags) + 5));
    },
    retryAfterS(offers, account) {
      const at = now();
      let soonest = Infinity;
      for (const offer of offers) {
        const outages = states.get(offer.id)?.outages;
        if (!outages || isAvailable(outages.standing(at, account))) return 1;
        soonest = Math.min(soonest, outages.triedAgainAt(at, account));
      }
      return soonest === Infinity ? 1 : Math.max(1, Math.ceil((soonest - at) / 1000));
    },
    latencyMs: (offer) => states.get(offer.id)?.latency.percentile(0.5) ?? null,
    tokensPerSecond: (offer) => states.get(offer.id)?.throughput.percentile(0.5) ?? null,
    stats(offer) {
      const state = states.get(offer.id);
      return state ? statsOf(state, epoch(now())) : NO_STATS;
    },
    unsaved,
    restore(figures) {
      const at = epoch(now());
      const more = new Map(unsaved.figures().map((figure) => [keyOf(figure), figure.count]));
      for (const figure of figures) {
        if (figure.minute > 0 && figure.minute <= at - MINUTES * MINUTE_MS) continue;
        restoreFigure(stateById(figure.offer), { ...figure, count: figure.count + (more.get(keyOf(figure)) ?? 0) }, at);
      }
    },
  };
}

const isAvailable = (standing: Standing): boolean =>
  standing === 'good' || standing === 'recent' || standing === 'probe';

const NO_STATS: OfferStats = {
  requests: 0,
  failures: 0,
  flags: {},
  lastHour: { requests: 0, failures: 0, flags: 0 },
  uptime: null,
  latencyMs: null,
  throughput: null,
};

const keyOf = ({ offer, kind, minute }: Figure): string => `${offer}\n${kind}\n${minute}`;

function restoreFigure(state: State, { kind, minute, count }: Figure, at: number): void {
  const isFlag = kind.startsWith(FLAG_PREFIX);
  if (minute > 0)
    state.lastHour.set(kind === 'success' ? SUCCESS : kind === 'failure' ? FAILURE : FLAG, minute, count, at);
  else if (isFlag) state.flags.set(kind.slice(FLAG_PREFIX.length), count);
  else if (kind === 'success') state.successes = count;
  else state.failures = count;
}

function newState(id: string): State {
  return {
    id,
    provider: providerOf(id),
    successes: 0,
    failures: 0,
    flags: new Map(),
    lastHour: createSlidingCount({ slots: MINUTES, slotMs: MINUTE_MS, kinds: 3 }),
    latency: createSamples(SAMPLES),
    throughput: createSamples(SAMPLES),
    outages: null,
  };
}

function statsOf(state: State, at: number): OfferStats {
  const failures = state.lastHour.total(FAILURE, at);
  const requests = failures + state.lastHour.total(SUCCESS, at);
  const p50 = state.latency.percentile(0.5);
  const speed = state.throughput.percentile(0.5);
  return {
    requests: state.successes + state.failures,
    failures: state.failures,
    flags: Object.fromEntries(state.flags),
    lastHour: { requests, failures, flags: state.lastHour.total(FLAG, at) },
    uptime: requests === 0 ? null : 1 - failures / requests,
    latencyMs: p50 === null ? null : { p50, p95: state.latency.percentile(0.95)! },
    throughput: speed === null ? null : { p50: speed },
  };
}
