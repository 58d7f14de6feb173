import type { Registry } from 'prom-client';
import { getOrInsert, type UpstreamFailure } from '#wire';
import { OWN_ACCOUNT } from '#accounts';
import type { Call } from '#call';
import type { Offer } from '#catalog';
import { codeOf } from '#billing/call-end';
import { labelOfFailure, type AttemptTime, type CallOutcome, statusOf } from './observer.ts';
import { mcpMethodOf } from './mcp-span.ts';
import { gauges, histograms, histogramSeries, type HistogramSeries } from './prometheus.ts';
import {
  labelOfError,
  OTHER,
  ofRequest,
  REQUEST_LABELS,
  SERVICE_LABELS,
  type Labels,
  type MoneySeries,
  type OfferSeries,
} from './offer-series.ts';

export interface McpCounts {
  /** Open sessions of clients, for revisions with sessions. */
  readonly sessions: number;
  /** Calls that are held while they wait for the client's input. */
  readonly heldCalls: number;
  /** Streams on which clients listen for messages that belong to no request. */
  readonly listens: number;
}

/** Metrics of MCP, with the names and buckets of its semantic conventions. Calls of other primitives are ignored. */
export interface McpMetrics {
  attemptFailed(call: Call, offer: Offer, failure: UpstreamFailure, time: AttemptTime): void;
  /** `offer`: the one that served the call, or was asked last. */
  finished(call: Call, outcome: CallOutcome, offer: Offer): void;
  /** The money counters of the call's tool; null for a call without a tool. */
  moneyOf(call: Call, outcome: CallOutcome, offer: Offer): MoneySeries | null;
  /**
   * A client's session ended. `revision`: a revision that the gateway knows. `error`: a short reason why the session
   * ended; null if the client ended it.
   */
  sessionEnded(session: {
    readonly durationMs: number;
    readonly revision: string;
    readonly error: string | null;
  }): void;
}

/** Bucket boundaries that the conventions recommend for all four durations. */
const DURATION_S = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];

/**
 * Maximum number of tools and methods with their own series: for the operator's offers, and for all other offers. The
 * remaining tools of a method share one series, so that no provider can increase memory and scrapes without limit.
 */
const OWN_TARGETS_MAX = 2000;
const STRANGE_TARGETS_MAX = 100;

export function createMcpMetrics(registry: Registry, offers: OfferSeries, counts: () => McpCounts): McpMetrics {
  const { ofServer } = histograms(registry, ['mcp_method_name', ...REQUEST_LABELS, 'error_type'], {
    ofServer: [
      'mcp_server_operation_duration_seconds',
      'Time from the admission of an MCP request to its answer, with all of its attempts and its settlement',
      DURATION_S,
      'gen_ai_tool_name',
      'rpc_response_status_code',
    ],
  });
  const { ofProvider } = histograms(registry, ['mcp_method_name', ...SERVICE_LABELS, 'error_type'], {
    ofProvider: [
      'mcp_client_operation_duration_seconds',
      'Time of an attempt at a provider for an MCP request, until its reply ended or it failed',
      DURATION_S,
    ],
  });
  const { ofSession } = histograms(registry, ['mcp_protocol_version', 'error_type'], {
    ofSession: [
      'mcp_server_session_duration_seconds',
      'Time from the initialize request of a session to its end',
      DURATION_S,
    ],
  });
  gauges(
    registry,
    [],
    [
      ['tollgate_mcp_sessions', 'MCP sessions of clients that are open', () => counts().sessions],
      ['tollgate_mcp_held_calls', "MCP calls that wait for their client's input", () => counts().heldCalls],
      ['tollgate_mcp_listens', 'Streams on which MCP clients listen for changes', () => counts().listens],
    ],
  );
  const targetOf = createTargets(offers, (labels) => histogramSeries(ofServer, labels));
  // Series of answers without an error, by the labels of an offer and then by method. The labels are one object for
  // each series of an offer.
  const providers = new Map<Labels, Map<string, HistogramSeries>>();
  const ofProviderWell = (method: string, offer: Offer): HistogramSeries => {
    const { labels } = offers.seriesOf(offer);
    let methods = providers.get(labels);
    if (!methods) providers.set(labels, (methods = new Map<string, HistogramSeries>()));
    let series = methods.get(method);
    if (!series) methods.set(method, (series = histogramSeries(ofProvider, labelsOfMethod(method, labels))));
    return series;
  };
  const ofProviderFailed = (method: string, offer: Offer, errorType: string, durationMs: number) =>
    ofProvider.observe(
      { ...labelsOfMethod(method, offers.seriesOf(offer).labels), error_type: errorType },
      durationMs / 1000,
    );

  return {
    attemptFailed(call, offer, failure, { durationMs }) {
      const method = mcpMethodOf(call);
      if (method !== null) ofProviderFailed(method, offer, labelOfFailure(failure), durationMs);
    },
    finished(call, outcome, offer) {
      const method = mcpMethodOf(call);
      if (method === null) return;
      const { durationMs, served, answerError } = outcome;
      if (call.caller.account !== OWN_ACCOUNT) {
        // A request may have attempts at several providers, so its own time has none.
        const { requestLabels, duration } = targetOf(method, call, outcome, call.candidates[0]?.offer ?? offer);
        const [error] = statusOf(outcome);
        if (error === null) duration.observe(durationMs / 1000);
        else ofServer.observe({ ...requestLabels, ...errorLabels(error, answerError) }, durationMs / 1000);
      }
      if (!served) return;
      if (answerError === null) ofProviderWell(method, offer).observe(served.durationMs / 1000);
      else ofProviderFailed(method, offer, labelOfError(answerError), served.durationMs);
    },
    moneyOf(call, outcome, offer) {
      const method = mcpMethodOf(call);
      if (method === null || call.operation === null) return null;
      const target = targetOf(method, call, outcome, offer);
      if (target.money === null) {
        const { mcp_method_name: _method, ...labels } = target.labels;
        target.money = offers.moneyOf(labels);
      }
      return target.money;
    },
    sessionEnded: ({ durationMs, revision, error }) =>
      ofSession.observe(
        { mcp_protocol_version: revision, ...(error === null ? {} : { error_type: error }) },
        durationMs / 1000,
      ),
  };
}

interface MethodSeries {
  readonly labels: Labels;
  /** The same without the provider, for the time of the whole request. */
  readonly requestLabels: Labels;
  readonly duration: HistogramSeries;
  money: MoneySeries | null;
}

type FindTarget = (method: string, call: Call, outcome: CallOutcome, offer: Offer) => MethodSeries;

function createTargets(offers: OfferSeries, durationOf: (labels: Labels) => HistogramSeries): FindTarget {
  /** By offer, then method, then tool, so that a lookup builds no new string. */
  const targets = new Map<string, Map<string, Map<string | null, MethodSeries>>>();
  /** The shared series for the remaining tools. */
  const rests = new Map<string, MethodSeries>();
  const counted = { own: 0, strange: 0 };
  return (method, call, { operation }, offer) => {
    const tool = call.operation === null ? null : (operation ?? OTHER);
    const series = targets.get(offer.id)?.get(method)?.get(tool);
    if (series) return series;
    const own = offers.isOwn(offer.id);
    const full = own ? counted.own >= OWN_TARGETS_MAX : counted.strange >= STRANGE_TARGETS_MAX;
    const shared = own ? `${OTHER} ${offer.id} ${method}` : `${OTHER} ${method}`;
    const rest = full ? rests.get(shared) : undefined;
    if (rest) return rest;
    const labels = {
      ...labelsOfMethod(method, offers.seriesOf(offer).labels),
      ...(full && !own ? { gen_ai_request_model: OTHER, gen_ai_provider_name: OTHER } : {}),
      ...(tool === null ? {} : { gen_ai_tool_name: full ? OTHER : tool }),
    };
    const requestLabels = ofRequest(labels);
    const target = { labels, requestLabels, duration: durationOf(requestLabels), money: null };
    if (full) rests.set(shared, target);
    else {
      const ofOffer = getOrInsert(targets, offer.id, () => new Map<string, Map<string | null, MethodSeries>>());
      getOrInsert(ofOffer, method, () => new Map<string | null, MethodSeries>()).set(tool, target);
      counted[own ? 'own' : 'strange'] += 1;
    }
    return target;
  };
}

/** The labels of a method. By the conventions only tool calls have the operation's name. */
function labelsOfMethod(method: string, { gen_ai_operation_name: operation, ...service }: Labels): Labels {
  return {
    mcp_method_name: method,
    ...(method === 'tools/call' ? { gen_ai_operation_name: operation! } : {}),
    ...service,
  };
}

function errorLabels(error: string, answerError: string | null): Labels {
  const type = labelOfError(error);
  const code = answerError === null ? null : codeOf(type);
  return code === null ? { error_type: type } : { error_type: type, rpc_response_status_code: code };
}
