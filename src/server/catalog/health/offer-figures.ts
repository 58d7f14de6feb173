import type { Offer } from '../offers.ts';
import {
  addPrompts,
  createUnsavedFigures,
  dayOf,
  FLAG_PREFIX,
  type Figure,
  type OfferFigures,
  PROMPT_DAYS,
  type PromptSums,
} from './kept-figures.ts';
import { providerOf } from '../offers.ts';
import { createOfferOutages, type OfferOutages, type OutageRules } from './offer-outages.ts';
import { createSamples, type Samples, createSlidingCount, type SlidingCount } from './rolling-stats.ts';

export interface OfferStats {
  /** All calls ever, of all gateways of the database. `lastHour` also counts all gateways. */
  readonly requests: number;
  readonly failures: number;
  readonly flags: Readonly<Record<string, number>>;
  /** `flags`: how often replies were flagged. */
  readonly lastHour: { readonly requests: number; readonly failures: number; readonly flags: number };
  /** Share of the last hour's calls that did not fail, 0 to 1; null before the first. */
  readonly uptime: number | null;
  /**
   * Milliseconds to the first byte, and completion tokens per second, measured by this process; null before the first
   * call.
   */
  readonly latencyMs: { readonly p50: number; readonly p95: number } | null;
  readonly throughput: { readonly p50: number } | null;
  /**
   * The prompts of today and yesterday (UTC), of all gateways; null without any. Only of an offer whose cached tokens
   * cost less, because there a provider pays for it if it claims too many.
   */
  readonly prompts: Readonly<PromptSums> | null;
}

export interface CallSample {
  readonly firstByteMs: number;
  readonly durationMs: number;
  readonly completionTokens: number;
  /** Absent where cached tokens do not cost less, and for a call that was not charged by its tokens. */
  readonly prompts?: Readonly<PromptSums> | undefined;
}

/** The counts and measurements of offers. */
export interface CountedOffers extends OfferFigures {
  /** `at`: epoch milliseconds. */
  succeeded(state: OfferState, sample: CallSample, at: number): void;
  failed(state: OfferState): void;
  flagged(offer: Offer, flag: string): void;
  /** 1 if all replies of the last hour followed the rules. The more replies were flagged, the closer to 0. */
  compliance(offer: Offer): number;
  /**
   * Median time to the first byte, and median completion tokens per second, of the newest calls; null before the first.
   */
  latencyMs(offer: Offer): number | null;
  tokensPerSecond(offer: Offer): number | null;
  stats(offer: Offer): OfferStats;
  /** Notes whether the offer has just worked. */
  proved(state: OfferState, isSuccess: boolean): void;
  /** As this process has seen it. */
  evidence(offer: Pick<Offer, 'id'>): OfferEvidence;
}

/** When an offer worked last, and since when it fails, in epoch milliseconds; null for never. */
interface OfferEvidence {
  readonly workedAt: number | null;
  readonly failsSince: number | null;
}

/** `epochNow` gives epoch milliseconds. */
export function createOfferFigures(states: OfferStates, epochNow: () => number): CountedOffers {
  const unsaved = createUnsavedFigures();
  const unsavedOf = (state: OfferState, at: number) =>
    unsaved.deltaOf(state.id, Math.floor(at / MINUTE_MS) * MINUTE_MS);

  return {
    succeeded(state, { firstByteMs, durationMs, completionTokens, prompts }, at) {
      state.successes++;
      state.lastHour.add(SUCCESS, at);
      const delta = unsavedOf(state, at);
      delta.successes++;
      if (prompts !== undefined) {
        addPrompts(delta, prompts);
        addPrompts(promptsOf(state, dayOf(at)), prompts);
      }
      state.latency.add(firstByteMs);
      if (completionTokens > 0 && durationMs > 0) state.throughput.add((completionTokens * 1000) / durationMs);
    },
    failed(state) {
      const at = epochNow();
      state.failures++;
      state.lastHour.add(FAILURE, at);
      unsavedOf(state, at).failures++;
    },
    flagged(offer, flag) {
      const at = epochNow();
      const state = states.stateOf(offer.id);
      state.flags.set(flag, (state.flags.get(flag) ?? 0) + 1);
      state.lastHour.add(FLAG, at);
      const { flags } = unsavedOf(state, at);
      flags.set(flag, (flags.get(flag) ?? 0) + 1);
    },
    compliance(offer) {
      const state = states.find(offer.id);
      if (!state || state.flags.size === 0) return 1;
      const at = epochNow();
      const flags = state.lastHour.total(FLAG, at);
      if (flags === 0) return 1;
      const calls = state.lastHour.total(SUCCESS, at) + state.lastHour.total(FAILURE, at);
      // Five more calls are assumed, so that a first bad reply does not ruin a new offer.
      return Math.max(0, 1 - flags / (Math.max(calls, flags) + 5));
    },
    latencyMs: (offer) => states.find(offer.id)?.latency.percentile(0.5) ?? null,
    tokensPerSecond: (offer) => states.find(offer.id)?.throughput.percentile(0.5) ?? null,
    stats(offer) {
      const state = states.find(offer.id);
      return state ? statsOf(state, epochNow()) : NO_STATS;
    },
    proved(state, isSuccess) {
      const at = epochNow();
      if (isSuccess) [state.workedAt, state.failsSince] = [at, null];
      else state.failsSince ??= at;
    },
    evidence: ({ id }) => states.find(id) ?? NO_EVIDENCE,
    unsaved,
    recall(offer, firstByteMs, tokensPerSecond) {
      const state = states.stateOf(offer);
      for (const ms of firstByteMs) state.latency.add(ms);
      if (tokensPerSecond !== null) state.throughput.add(tokensPerSecond);
    },
    restorePrompts(days) {
      const oldest = dayOf(epochNow()) - PROMPT_DAYS + 1;
      const more = new Map(unsaved.days().map((each) => [`${each.offer}\n${each.day}`, each]));
      for (const { offer, day, prompt, cached, charged } of days) {
        if (day < oldest || prompt === 0) continue;
        const sums = Object.assign(promptsOf(states.stateOf(offer), day), { prompt, cached, charged });
        const unsavedSums = more.get(`${offer}\n${day}`);
        if (unsavedSums !== undefined) addPrompts(sums, unsavedSums);
      }
    },
    restore(figures) {
      const at = epochNow();
      const more = new Map(unsaved.figures().map((figure) => [keyOf(figure), figure.count]));
      for (const figure of figures) {
        if (figure.minute > 0 && figure.minute <= at - MINUTES * MINUTE_MS) continue;
        const count = figure.count + (more.get(keyOf(figure)) ?? 0);
        restoreFigure(states.stateOf(figure.offer), { ...figure, count }, at);
      }
    },
  };
}

const NO_EVIDENCE: OfferEvidence = { workedAt: null, failsSince: null };
const NO_STATS: OfferStats = {
  requests: 0,
  failures: 0,
  flags: {},
  lastHour: { requests: 0, failures: 0, flags: 0 },
  uptime: null,
  latencyMs: null,
  throughput: null,
  prompts: null,
};

const keyOf = ({ offer, kind, minute }: Figure): string => `${offer}\n${kind}\n${minute}`;

function restoreFigure(state: OfferState, { kind, minute, count }: Figure, at: number): void {
  const isFlag = kind.startsWith(FLAG_PREFIX);
  if (minute > 0)
    state.lastHour.set(kind === 'success' ? SUCCESS : kind === 'failure' ? FAILURE : FLAG, minute, count, at);
  else if (isFlag) state.flags.set(kind.slice(FLAG_PREFIX.length), count);
  else if (kind === 'success') state.successes = count;
  else state.failures = count;
}

function statsOf(state: OfferState, at: number): OfferStats {
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
    prompts: recentPrompts(state, dayOf(at)),
  };
}

/** The sums of a day, to which the caller adds. Days before the last two are forgotten. */
function promptsOf(state: OfferState, day: number): PromptSums {
  const { prompts } = state;
  let sums = prompts.get(day);
  if (sums === undefined) {
    for (const each of prompts.keys()) if (each <= day - PROMPT_DAYS) prompts.delete(each);
    prompts.set(day, (sums = { prompt: 0, cached: 0, charged: 0 }));
  }
  return sums;
}

function recentPrompts({ prompts }: OfferState, today: number): PromptSums | null {
  const sums = { prompt: 0, cached: 0, charged: 0 };
  for (const [day, each] of prompts) if (day > today - PROMPT_DAYS) addPrompts(sums, each);
  return sums.prompt === 0 ? null : sums;
}

interface OfferState {
  readonly id: string;
  readonly provider: string;
  successes: number;
  failures: number;
  readonly flags: Map<string, number>;
  /** Counts of SUCCESS, FAILURE and FLAG. */
  readonly lastHour: SlidingCount;
  readonly latency: Samples;
  readonly throughput: Samples;
  readonly prompts: Map<number, PromptSums>;
  /** null until the offer fails for the first time. */
  outages: OfferOutages | null;
  workedAt: number | null;
  failsSince: number | null;
  /** See Health.trials. */
  trials: number;
  /** Since it was made, or was looked at by dropUnused. */
  isUsed: boolean;
}

type FailedState = OfferState & { readonly outages: OfferOutages };

interface OfferStates {
  find(id: string): OfferState | undefined;
  stateOf(id: string): OfferState;
  /** The state of an offer that failed. It moves to the newest end, so that offers without calls are deleted first. */
  ofFailed(id: string): FailedState;
  all(): Iterable<OfferState>;
}

/** Maximum number of offers in memory. One that is called stays, however many are called once. */
export const OFFERS_MAX = 10_000;
const SAMPLES = 128;
const MINUTES = 60;
const MINUTE_MS = 60_000;

const SUCCESS = 0;
const FAILURE = 1;
const FLAG = 2;

export function createOfferStates(rules: OutageRules): OfferStates {
  const states = new Map<string, OfferState>();
  /** The oldest makes way that was not used since it was looked at before. */
  const dropUnused = (): void => {
    for (const [id, state] of states) {
      states.delete(id);
      if (!state.isUsed) return;
      state.isUsed = false;
      states.set(id, state);
    }
  };
  const stateOf = (id: string): OfferState => {
    let state = states.get(id);
    if (state) state.isUsed = true;
    else {
      if (states.size >= OFFERS_MAX) dropUnused();
      states.set(id, (state = newState(id)));
    }
    return state;
  };
  return {
    find: (id) => states.get(id),
    stateOf,
    ofFailed(id) {
      const state = stateOf(id);
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
    prompts: new Map(),
    outages: null,
    workedAt: null,
    failsSince: null,
    trials: 0,
    isUsed: false,
  };
}
