import type { Offer } from '../call.ts';
import type { Health, OfferStats, Standing } from './router.ts';
import { createSamples, type Samples } from './samples.ts';
import { createSlidingCount, type SlidingCount } from './sliding-count.ts';

export interface HealthOptions {
  readonly now: () => number;
  /** How long an offer that failed is passed over. */
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

/** Offers that are remembered; the one that was heard of longest ago is forgotten first. */
const OFFERS_MAX = 10_000;
const SAMPLES = 128;
/** Cool-downs after which a failure is too old to mean anything. */
const FORGET_COOLDOWNS = 10;
const MINUTES = 60;

const SUCCESS = 0;
const FAILURE = 1;
const FLAG = 2;

interface State {
  readonly provider: string;
  requests: number;
  failures: number;
  readonly flags: Map<string, number>;
  readonly lastHour: SlidingCount;
  readonly latency: Samples;
  readonly throughput: Samples;
  /** It failed, and no call that began after that has succeeded. */
  down: boolean;
  /** Failures in a row, without any success between them. */
  streak: number;
  failedAt: number;
  /** Until when a call that probes a cooled-down offer keeps others from it. */
  probedUntil: number;
}

/**
 * Health of offers from real calls. A failure makes an offer rest for `cooldownMs`; after that one call at a time probes it, until one succeeds.
 * All state is bounded: per offer an hour of counts by the minute and the newest 128 measurements.
 */
export function createHealth(options: HealthOptions): Health {
  const { now, cooldownMs, windowMs = 30_000, failuresMax = 10, probeMs = 10_000, present = () => true } = options;
  const states = new Map<string, State>();
  /** When each provider last connected anew; the newest last. */
  const returnedAt = new Map<string, number>();

  const stateOf = (offer: Offer): State => {
    let state = states.get(offer.id);
    if (!state) {
      if (states.size >= OFFERS_MAX) states.delete(states.keys().next().value!);
      states.set(offer.id, (state = newState(offer.provider.id)));
    }
    return state;
  };

  const standingOf = (state: State, at: number): Standing => {
    if (state.failedAt === -Infinity) return 'good';
    const since = at - state.failedAt;
    if (!state.down || since > cooldownMs * (1 + FORGET_COOLDOWNS)) return since < windowMs ? 'recent' : 'good';
    if (since >= cooldownMs && at >= state.probedUntil) return 'probe';
    return state.streak >= failuresMax ? 'open' : 'resting';
  };

  const standing = (offer: Offer): Standing => {
    const state = states.get(offer.id);
    const found = state ? standingOf(state, now()) : 'good';
    // Behind all others; when there are no others the call waits for the provider's return, unless many waited in vain.
    return found === 'open' || present(offer) ? found : 'resting';
  };

  return {
    standing,
    available(offer) {
      const found = standing(offer);
      return found === 'good' || found === 'recent' || found === 'probe';
    },
    probing(offer) {
      stateOf(offer).probedUntil = now() + probeMs;
    },
    notProbed(offer) {
      const state = states.get(offer.id);
      if (state) state.probedUntil = 0;
    },
    succeeded(offer, { firstByteMs, durationMs, completionTokens }, counted = true) {
      const at = now();
      const state = stateOf(offer);
      if (counted) {
        state.requests++;
        state.lastHour.add(SUCCESS, at);
        state.latency.add(firstByteMs);
        if (completionTokens > 0 && durationMs > 0) state.throughput.add((completionTokens * 1000) / durationMs);
      }
      state.streak = 0;
      // A call that began before the failure does not say that the offer is back.
      if (at - durationMs >= state.failedAt) {
        state.down = false;
        state.probedUntil = 0;
      }
    },
    failed(offer, beganAt, counted = true) {
      const at = now();
      const state = stateOf(offer);
      // Newest last, so that what is forgotten first is what nobody calls.
      states.delete(offer.id);
      states.set(offer.id, state);
      if (counted) {
        state.requests++;
        state.failures++;
        state.lastHour.add(FAILURE, at);
      }
      // What broke with an earlier connection of the provider says nothing of this one.
      if (beganAt !== undefined && beganAt < (returnedAt.get(offer.provider.id) ?? -Infinity)) return;
      if (at - state.failedAt > cooldownMs * (1 + FORGET_COOLDOWNS)) state.streak = 0;
      // All that broke with a connection is one failure.
      if (beganAt === undefined || state.streak === 0 || present(offer)) state.streak++;
      state.down = cooldownMs > 0;
      state.failedAt = at;
      state.probedUntil = 0;
    },
    returned(provider) {
      const at = now();
      returnedAt.delete(provider);
      if (returnedAt.size >= OFFERS_MAX) returnedAt.delete(returnedAt.keys().next().value!);
      returnedAt.set(provider, at);
      for (const state of states.values()) {
        if (state.provider !== provider || !state.down) continue;
        state.failedAt = Math.min(state.failedAt, at - cooldownMs);
        state.streak = 0;
        state.probedUntil = 0;
      }
    },
    flagged(offer, flag) {
      const state = stateOf(offer);
      state.flags.set(flag, (state.flags.get(flag) ?? 0) + 1);
      state.lastHour.add(FLAG, now());
    },
    compliance(offer) {
      const state = states.get(offer.id);
      if (!state || state.flags.size === 0) return 1;
      const at = now();
      const flags = state.lastHour.total(FLAG, at);
      if (flags === 0) return 1;
      const calls = state.lastHour.total(SUCCESS, at) + state.lastHour.total(FAILURE, at);
      // Five calls on credit, so that a first bad reply does not condemn a new offer.
      return Math.max(0, 1 - flags / (Math.max(calls, flags) + 5));
    },
    retryAfterS(offers) {
      const at = now();
      let soonest = Infinity;
      for (const offer of offers) {
        const state = states.get(offer.id);
        const found = state ? standingOf(state, at) : 'good';
        if (!state || found === 'good' || found === 'recent' || found === 'probe') return 1;
        soonest = Math.min(soonest, Math.max(state.failedAt + cooldownMs, state.probedUntil));
      }
      return soonest === Infinity ? 1 : Math.max(1, Math.ceil((soonest - at) / 1000));
    },
    latencyMs: (offer) => states.get(offer.id)?.latency.percentile(0.5) ?? null,
    tokensPerSecond: (offer) => states.get(offer.id)?.throughput.percentile(0.5) ?? null,
    stats(offer) {
      const state = states.get(offer.id);
      return state ? statsOf(state, now()) : NO_STATS;
    },
  };
}

const NO_STATS: OfferStats = {
  requests: 0,
  failures: 0,
  flags: {},
  lastHour: { requests: 0, failures: 0, flags: 0 },
  uptime: null,
  latencyMs: null,
  throughput: null,
};

function newState(provider: string): State {
  return {
    provider,
    requests: 0,
    failures: 0,
    flags: new Map(),
    lastHour: createSlidingCount({ slots: MINUTES, slotMs: 60_000, kinds: 3 }),
    latency: createSamples(SAMPLES),
    throughput: createSamples(SAMPLES),
    down: false,
    streak: 0,
    failedAt: -Infinity,
    probedUntil: 0,
  };
}

function statsOf(state: State, at: number): OfferStats {
  const failures = state.lastHour.total(FAILURE, at);
  const requests = failures + state.lastHour.total(SUCCESS, at);
  const p50 = state.latency.percentile(0.5);
  const speed = state.throughput.percentile(0.5);
  return {
    requests: state.requests,
    failures: state.failures,
    flags: Object.fromEntries(state.flags),
    lastHour: { requests, failures, flags: state.lastHour.total(FLAG, at) },
    uptime: requests === 0 ? null : 1 - failures / requests,
    latencyMs: p50 === null ? null : { p50, p95: state.latency.percentile(0.95)! },
    throughput: speed === null ? null : { p50: speed },
  };
}
