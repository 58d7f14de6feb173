import type { Registry } from 'prom-client';
import { completionTokens, promptTokens, type Settlement, type Usage } from '#billing';
import { codeOf, OTHER_ERROR } from '#billing/call-end';
import type { Primitive } from '#config';
import type { Offer } from '#catalog';
import {
  counters,
  histograms,
  counterSeries,
  histogramSeries,
  type CounterSeries,
  type HistogramSeries,
} from './prometheus.ts';

/** Operation names of the GenAI semantic conventions. */
export const OPERATIONS = {
  model: 'chat',
  tool: 'execute_tool',
  agent: 'invoke_agent',
  image: 'generate_content',
  video: 'generate_content',
} as const satisfies Record<Primitive, string>;

export const SERVICE_LABELS = ['gen_ai_operation_name', 'gen_ai_request_model', 'gen_ai_provider_name'] as const;
/** A call may have attempts at several providers, so its own time has no provider. */
export const REQUEST_LABELS = ['gen_ai_operation_name', 'gen_ai_request_model'] as const;
export const ofRequest = ({ gen_ai_provider_name: _provider, ...labels }: Labels): Labels => labels;
const TOOL = 'gen_ai_tool_name';

// The bucket boundaries that the GenAI semantic conventions recommend.
const DURATION_S = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const FIRST_TOKEN_S = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
const TOKENS = Array.from({ length: 14 }, (_, power) => 4 ** power);

/**
 * Maximum number of offers with their own series among providers that are connected by a tunnel. The others share one
 * series, so that no stranger can increase memory and scrapes without limit.
 */
const STRANGERS_MAX = 50;
export const OTHER = 'other';

/** Codes that JSON-RPC and MCP define. Servers may invent others, and each of those would add a series. */
const NAMED_CODES: ReadonlySet<string> = new Set(
  [-32700, -32600, -32601, -32602, -32603, -32000, -32001, -32002, -32020, -32021, -32022, -32042].map(String),
);

/** The error type as a metric label with few possible values. */
export const labelOfError = (type: string): string =>
  codeOf(type) !== null && !NAMED_CODES.has(type) ? OTHER_ERROR : type;

export type Labels = Readonly<Record<string, string>>;
type CountedOffer = Pick<Offer, 'id' | 'primitive' | 'service' | 'provider'>;

export interface MoneySeries {
  readonly charged: CounterSeries;
  readonly fee: CounterSeries;
}

/** The series of one offer. One map lookup finds all of them, so that a call builds no label objects. */
interface OneOffer extends MoneySeries {
  readonly labels: Labels;
  /** Of attempts. */
  readonly duration: HistogramSeries;
  /** Of calls of the service, at any provider. */
  readonly request: HistogramSeries;
  readonly input: HistogramSeries;
  readonly output: HistogramSeries;
  readonly firstToken: HistogramSeries;
}

export interface OfferSeries {
  seriesOf(offer: CountedOffer): OneOffer;
  readonly isOwn: (offerId: string) => boolean;
  moneyOf(labels: Labels): MoneySeries;
  /** Counts the time of a failed call. `errorType`: one of a few values, as below. */
  failed(offer: CountedOffer, errorType: string, seconds: number): void;
  attemptEnded(offer: CountedOffer, errorType: string, seconds: number): void;
  attemptFailed(offer: CountedOffer, blame: string): void;
  flagged(offer: CountedOffer, flags: readonly string[]): void;
  /**
   * Counts the usage and the charge of a call. `money`: the counters for the charge, if they are not those of the
   * offer.
   */
  settled(one: OneOffer, usage: Usage | null | undefined, settlement: Settlement, money?: MoneySeries): void;
}

export function createOfferSeries(registry: Registry, isOwn: (offerId: string) => boolean): OfferSeries {
  const { request } = histograms(registry, REQUEST_LABELS, {
    request: [
      'gen_ai_server_request_duration_seconds',
      'Duration of a call, from its admission to its settlement, with all of its attempts',
      DURATION_S,
      'error_type',
    ],
  });
  const { duration, tokens, firstToken } = histograms(registry, SERVICE_LABELS, {
    duration: [
      'gen_ai_client_operation_duration_seconds',
      'Time of an attempt at a provider, until its reply ended or it failed',
      DURATION_S,
      'error_type',
    ],
    tokens: ['gen_ai_client_token_usage', 'Tokens of a call, by type', TOKENS, 'gen_ai_token_type'],
    firstToken: [
      'gen_ai_server_time_to_first_token_seconds',
      'Time from the beginning of an attempt to the first byte of its reply',
      FIRST_TOKEN_S,
    ],
  });
  const { charged, fees, attempts, flags } = counters(registry, SERVICE_LABELS, {
    charged: ['tollgate_charged_micro_usd_total', 'Money charged to consumers, in micro-USD', TOOL],
    fees: ['tollgate_fees_micro_usd_total', "The operator's part of what was charged, in micro-USD", TOOL],
    attempts: ['tollgate_attempts_failed_total', 'Failed requests to providers, by whose fault it was', 'blame'],
    flags: ['tollgate_provider_flags_total', 'Replies that broke what providers promise', 'flag'],
  });
  const { shortfall } = counters(registry, [], {
    shortfall: ['tollgate_shortfall_micro_usd_total', 'Cost of calls beyond what could be charged, in micro-USD'],
  });

  const moneyOf = (labels: Labels): MoneySeries => ({
    charged: counterSeries(charged, labels),
    fee: counterSeries(fees, labels),
  });
  const seriesOf = (labels: Labels): OneOffer => ({
    labels,
    duration: histogramSeries(duration, labels),
    request: histogramSeries(request, ofRequest(labels)),
    input: histogramSeries(tokens, { ...labels, gen_ai_token_type: 'input' }),
    output: histogramSeries(tokens, { ...labels, gen_ai_token_type: 'output' }),
    firstToken: histogramSeries(firstToken, labels),
    ...moneyOf(labels),
  });

  const series = new Map<string, OneOffer>();
  let strangers = 0;
  const ofOffer = (offer: CountedOffer): OneOffer => {
    const known = series.get(offer.id);
    if (known) return known;
    const own = isOwn(offer.id);
    const full = !own && strangers >= STRANGERS_MAX;
    const key = full ? `${OTHER} ${offer.primitive}` : offer.id;
    let created = series.get(key);
    if (!created) {
      created = seriesOf({
        gen_ai_operation_name: OPERATIONS[offer.primitive],
        gen_ai_request_model: full ? OTHER : offer.service,
        gen_ai_provider_name: full ? OTHER : offer.provider.name,
      });
      series.set(key, created);
      if (!own && !full) strangers += 1;
    }
    return created;
  };

  return {
    seriesOf: ofOffer,
    isOwn,
    moneyOf,
    failed: (offer, type, seconds) =>
      request.observe({ ...ofRequest(ofOffer(offer).labels), error_type: type }, seconds),
    attemptEnded: (offer, type, seconds) => duration.observe({ ...ofOffer(offer).labels, error_type: type }, seconds),
    attemptFailed: (offer, blame) => attempts.inc({ ...ofOffer(offer).labels, blame }),
    flagged(offer, raised) {
      for (const flag of raised) flags.inc({ ...ofOffer(offer).labels, flag });
    },
    settled(one, usage, { charged: cost, fee, shortfall: lost }, money = one) {
      if (usage?.prompt !== undefined) one.input.observe(Number(promptTokens(usage)));
      if (usage?.completion !== undefined) one.output.observe(Number(completionTokens(usage)));
      if (cost > 0n) money.charged.inc(Number(cost));
      if (fee > 0n) money.fee.inc(Number(fee));
      if (lost > 0n) shortfall.inc(Number(lost));
    },
  };
}
