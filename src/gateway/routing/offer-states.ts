import { dropOldest } from '#wire';
import { providerOf } from '../catalog/offers.ts';
import { createOfferOutages, type OfferOutages } from './offer-outages.ts';
import type { OutageRules } from './outage.ts';
import { createSamples, type Samples } from './samples.ts';
import { createSlidingCount, type SlidingCount } from './sliding-count.ts';

/** The health of one offer. */
export interface OfferState {
  readonly id: string;
  readonly provider: string;
  successes: number;
  failures: number;
  readonly flags: Map<string, number>;
  /** Counts of SUCCESS, FAILURE and FLAG. */
  readonly lastHour: SlidingCount;
  readonly latency: Samples;
  readonly throughput: Samples;
  /** null until the offer fails for the first time. */
  outages: OfferOutages | null;
}

type FailedState = OfferState & { readonly outages: OfferOutages };

/** The states of offers, by id. */
export interface OfferStates {
  find(id: string): OfferState | undefined;
  /** Adds a new state for an unknown offer. */
  of(id: string): OfferState;
  /** The state of an offer that failed. It moves to the newest end, so that offers without calls are deleted first. */
  ofFailed(id: string): FailedState;
  all(): Iterable<OfferState>;
}

/** Maximum number of offers in memory. The oldest is deleted first. */
export const OFFERS_MAX = 10_000;
const SAMPLES = 128;
export const MINUTES = 60;
export const MINUTE_MS = 60_000;

export const SUCCESS = 0;
export const FAILURE = 1;
export const FLAG = 2;

export function createOfferStates(rules: OutageRules): OfferStates {
  const states = new Map<string, OfferState>();
  const of = (id: string): OfferState => {
    let state = states.get(id);
    if (!state) {
      dropOldest(states, OFFERS_MAX - 1);
      states.set(id, (state = newState(id)));
    }
    return state;
  };
  return {
    find: (id) => states.get(id),
    of,
    ofFailed(id) {
      const state = of(id);
      states.delete(id);
      states.set(id, state);
      state.outages ??= createOfferOutages(rules);
      return state as FailedState;
    },
    all: () => states.values(),
  };
}

function newState(id: string): OfferState {
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
