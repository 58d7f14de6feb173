import { Gauge, Histogram, type Registry } from 'prom-client';
import type { UpstreamFailure } from '#wire';
import { OWN_ACCOUNT, type Call, type Offer } from '#gateway';
import { codeOf, labelOfError, labelOfFailure } from './answer-error.ts';
import { statusOf } from './call-log.ts';
import { mcpMethodOf } from './mcp-method.ts';
import type { AttemptTime, CallOutcome } from './observer.ts';
import { histogramSeries } from './prom-series.ts';

/** What of MCP is open in this process. */
export interface McpCounts {
  /** Sessions of clients of the revisions that have them. */
  readonly sessions: number;
  /** Calls that wait at a server for the input of a client. */
  readonly heldCalls: number;
  /** Streams that clients listen on for what belongs to no request. */
  readonly listens: number;
}

export interface McpMetricsOptions {
  readonly registry: Registry;
  /** See MetricsOptions. */
  readonly isOwn: (offerId: string) => boolean;
  /** Labels of an offer in all metrics: operation, service and provider. */
  readonly labelsOf: (offer: Offer) => Labels;
  /** Counters of money for labels that no other target has. */
  readonly moneyOf: (labels: Labels) => ToolMoney;
  /** Asked at each scrape. */
  readonly counts: () => McpCounts;
}

type Labels = Readonly<Record<string, string>>;

/** Counters of one tool of one offer. */
export interface ToolMoney {
  readonly charged: { inc(value?: number): void };
  readonly fee: { inc(value?: number): void };
}

/**
 * Metrics of MCP, by the names and with the buckets of its semantic conventions. Calls of other primitives are
 * passed over.
 */
export interface McpMetrics {
  attemptFailed(call: Call, offer: Offer, failure: UpstreamFailure, time: AttemptTime): void;
  /** `offer` is the one that the call is counted under. */
  finished(call: Call, outcome: CallOutcome, offer: Offer): void;
  /** Where the money of this call is counted; null for one that is no call of a tool. */
  moneyOf(call: Call, outcome: CallOutcome, offer: Offer): ToolMoney | null;
  /**
   * A client's session ended. `revision` is one that the gateway knows; `error` why it ended out of order, of few
   * words; null in order.
   */
  sessionEnded(session: {
    readonly durationMs: number;
    readonly revision: string;
    readonly error: string | null;
  }): void;
}

/** Boundaries that the conventions advise for all four durations. */
const DURATION_S = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];

/**
 * Tools and methods with series of their own: of the operator's offers, and of all others. The rest of a method
 * share one, so that no provider can grow memory and scrapes without bound.
 */
const OWN_TARGETS_MAX = 2000;
const STRANGE_TARGETS_MAX = 100;
const OTHER = 'other';

interface Target {
  readonly labels: Labels;
  readonly duration: { observe(value: number): void };
  money: ToolMoney | null;
}

const TARGET_LABELS = ['mcp_method_name', 'gen_ai_operation_name', 'gen_ai_request_model', 'gen_ai_provider_name'];

export function createMcpMetrics({ registry, isOwn, labelsOf, moneyOf, counts }: McpMetricsOptions): McpMetrics {
  const registers = [registry];
  const ofServer = new Histogram({
    name: 'mcp_server_operation_duration_seconds',
    help: 'Time from the admission of an MCP request to its answer, with its settlement',
    labelNames: [...TARGET_LABELS, 'gen_ai_tool_name', 'error_type', 'rpc_response_status_code'],
    buckets: DURATION_S,
    registers,
  });
  const ofProvider = new Histogram({
    name: 'mcp_client_operation_duration_seconds',
    help: 'Time that a provider took for an MCP request, or until it failed',
    labelNames: [...TARGET_LABELS, 'error_type'],
    buckets: DURATION_S,
    registers,
  });
  const ofSession = new Histogram({
    name: 'mcp_server_session_duration_seconds',
    help: 'Time from the initialize request of a session to its end',
    labelNames: ['mcp_protocol_version', 'error_type'],
    buckets: DURATION_S,
    registers,
  });
  for (const [name, help, of] of [
    ['tollgate_mcp_sessions', 'MCP sessions of clients that are open', 'sessions'],
    ['tollgate_mcp_held_calls', "MCP calls that wait for their client's input", 'heldCalls'],
    ['tollgate_mcp_listens', 'Streams on which MCP clients listen for changes', 'listens'],
  ] as const) {
    registry.registerMetric(
      new Gauge({
        name,
        help,
        registers: [],
        collect() {
          this.set(counts()[of]);
        },
      }),
    );
  }

  const targets = new Map<string, Target>();
  const counted = { own: 0, strange: 0 };
  const labelsOfMethod = (method: string, offer: Offer): Labels => {
    const { gen_ai_operation_name: operation, ...service } = labelsOf(offer);
    // The conventions have the operation's name on calls of tools alone.
    return {
      mcp_method_name: method,
      ...(method === 'tools/call' ? { gen_ai_operation_name: operation! } : {}),
      ...service,
    };
  };
  /** `tool` is null for a method that calls none. */
  const targetOf = (method: string, tool: string | null, offer: Offer): Target => {
    const key = `${offer.id} ${method} ${tool}`;
    const found = targets.get(key);
    if (found) return found;
    const own = isOwn(offer.id);
    const full = own ? counted.own >= OWN_TARGETS_MAX : counted.strange >= STRANGE_TARGETS_MAX;
    const shared = own ? `${OTHER} ${offer.id} ${method}` : `${OTHER} ${method}`;
    const made = full ? targets.get(shared) : undefined;
    if (made) return made;
    const common = labelsOfMethod(method, offer);
    const labels = {
      ...common,
      ...(full && !own ? { gen_ai_request_model: OTHER, gen_ai_provider_name: OTHER } : {}),
      ...(tool === null ? {} : { gen_ai_tool_name: full ? OTHER : tool }),
    };
    const target = { labels, duration: histogramSeries(ofServer, labels), money: null };
    targets.set(full ? shared : key, target);
    if (!full) counted[own ? 'own' : 'strange'] += 1;
    return target;
  };
  /** By the labels of an offer, which are one object for each series, then by method: where the answer is no error. */
  const providers = new Map<Labels, Map<string, { observe(value: number): void }>>();
  const ofProviderWell = (method: string, offer: Offer) => {
    const labels = labelsOf(offer);
    let methods = providers.get(labels);
    if (!methods) providers.set(labels, (methods = new Map<string, { observe(value: number): void }>()));
    let series = methods.get(method);
    if (!series) methods.set(method, (series = histogramSeries(ofProvider, labelsOfMethod(method, offer))));
    return series;
  };
  const targetOfCall = (call: Call, method: string, { operation }: CallOutcome, offer: Offer): Target =>
    targetOf(method, call.operation === null ? null : (operation ?? OTHER), offer);
  const ofClient = ({ labels, duration }: Target, outcome: CallOutcome) => {
    const seconds = outcome.durationMs / 1000;
    const error = statusOf(outcome)[0];
    if (error === null) duration.observe(seconds);
    else ofServer.observe({ ...labels, ...errorLabels(error, outcome.answerError) }, seconds);
  };

  return {
    attemptFailed(call, offer, failure, { durationMs }) {
      const method = mcpMethodOf(call);
      if (method !== null)
        ofProvider.observe(
          { ...labelsOfMethod(method, offer), error_type: labelOfFailure(failure) },
          durationMs / 1000,
        );
    },
    finished(call, outcome, offer) {
      const method = mcpMethodOf(call);
      if (method === null) return;
      if (call.caller.account !== OWN_ACCOUNT) ofClient(targetOfCall(call, method, outcome, offer), outcome);
      const { served, answerError } = outcome;
      if (!served) return;
      const seconds = served.durationMs / 1000;
      if (answerError === null) ofProviderWell(method, offer).observe(seconds);
      else ofProvider.observe({ ...labelsOfMethod(method, offer), error_type: labelOfError(answerError) }, seconds);
    },
    moneyOf(call, outcome, offer) {
      const method = mcpMethodOf(call);
      if (method === null || call.operation === null) return null;
      const target = targetOfCall(call, method, outcome, offer);
      if (target.money === null) {
        const { mcp_method_name: _method, ...labels } = target.labels;
        target.money = moneyOf(labels);
      }
      return target.money;
    },
    sessionEnded({ durationMs, revision, error }) {
      ofSession.observe(
        { mcp_protocol_version: revision, ...(error === null ? {} : { error_type: error }) },
        durationMs / 1000,
      );
    },
  };
}

function errorLabels(error: string, answerError: string | null): Labels {
  const type = labelOfError(error);
  const code = answerError === null ? null : codeOf(type);
  return code === null ? { error_type: type } : { error_type: type, rpc_response_status_code: code };
}
