import type { FastifyInstance } from 'fastify';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Primitive } from '#config';
import type { TaskSink } from '#tasks';
import { statusOf } from './call-log.ts';
import { labelOfError } from './answer-error.ts';
import { createFundMetrics, type FundFigures } from './fund-metrics.ts';
import { createMcpMetrics, type McpCounts, type McpMetrics } from './mcp-metrics.ts';
import { asSnapshot, type MetricSnapshot } from './merged-metrics.ts';
import type { CallSink } from './observer.ts';
import { counterSeries, histogramSeries } from './prom-series.ts';
import { textOf } from './scraped-text.ts';
import { createTaskMetrics, type CountedOffer } from './task-metrics.ts';

/** Operation names of the GenAI semantic conventions. */
export const OPERATIONS = {
  model: 'chat',
  tool: 'execute_tool',
  agent: 'invoke_agent',
  image: 'generate_content',
  video: 'generate_content',
} as const satisfies Record<Primitive, string>;

// The bucket boundaries that the GenAI semantic conventions advise.
const DURATION_S = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const FIRST_TOKEN_S = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
const TOKENS = Array.from({ length: 14 }, (_, power) => 4 ** power);
const COMMIT_S = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];
const BATCH = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/**
 * Offers of providers that dialled in with series of their own. The rest share one, so that no stranger can grow
 * memory and scrapes.
 */
const STRANGERS_MAX = 50;
const OTHER = 'other';

/** Sums of gauges that have each type of theirs. They are gauges too, and so may not end in `_total`. */
const SUMMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

export interface MetricsOptions {
  /**
   * Whether an offer is the operator's own, of the configuration file: each of those has series of its own. Default
   * none is.
   */
  readonly isOwn?: (offerId: string) => boolean;
  /**
   * Locks held now, over all gateways on the database; asked at each scrape. Without it the calls in flight here
   * are shown.
   */
  readonly locksHeld?: () => number | Promise<number>;
  /** Providers' proxies that are connected here and calls that run through them; asked at each scrape. */
  readonly tunnels?: () => { readonly connections: number; readonly streams: number };
  /** What of MCP is open here; asked at each scrape. */
  readonly mcp?: () => McpCounts;
  /** Tasks that go on, over all gateways on the database; asked at each scrape. */
  readonly tasksLive?: () => number | Promise<number>;
  /** How money over chains stands; asked at each scrape. Absent on a gateway without chains. */
  readonly funds?: (() => Promise<FundFigures>) | undefined;
  readonly now?: () => number;
  /** Event loop, memory, garbage collection of this process. */
  readonly processMetrics?: boolean;
}

export interface Metrics {
  /** To be told about calls. About 2 µs a call, 3 for one of a tool. */
  readonly sink: CallSink;
  /** To be told about tasks, and about calls that are settled with them. */
  readonly tasks: TaskSink;
  /** One group that the ledger committed. */
  ledgerBatch(batch: { readonly size: number; readonly durationMs: number }): void;
  /** A request was refused by the rate limit of requests or of tokens. */
  rateLimited(of: 'requests' | 'tokens'): void;
  /** A provider's proxy came, registered, was refused or left. */
  tunnelEvent(event: string): void;
  /** An MCP session of a client ended, see McpMetrics. */
  readonly mcpSessionEnded: McpMetrics['sessionEnded'];
  /** An answer left. `route` is the route's pattern, never the path. */
  answered(method: string, route: string, status: number): void;
  /** All metrics in the Prometheus text format. */
  text(): Promise<string>;
  /** All metrics, to be merged with those of other processes. */
  snapshot(): Promise<readonly MetricSnapshot[]>;
  readonly contentType: string;
}

/** Metric children of one offer: found by one map lookup, so that a call builds no label objects. */
interface OfferSeries {
  readonly labels: Readonly<Record<string, string>>;
  readonly duration: Observe;
  readonly input: Observe;
  readonly output: Observe;
  readonly firstToken: Observe;
  readonly charged: { inc(value?: number): void };
  readonly fee: { inc(value?: number): void };
}
interface Observe {
  observe(value: number): void;
}

/** What the calls of one offer are counted by; those of its tools have one label more. */
const SERVICE_LABELS = ['gen_ai_operation_name', 'gen_ai_request_model', 'gen_ai_provider_name'] as const;

/**
 * All metrics of one gateway process, in a registry of their own. Labels carry catalogue names only, never what a
 * consumer wrote.
 */
export function createMetrics(options: MetricsOptions = {}): Metrics {
  const registry = new Registry();
  const registers = [registry];
  if (options.processMetrics ?? true) {
    collectDefaultMetrics({ register: registry });
    for (const name of SUMMED) registry.removeSingleMetric(name);
  }

  const duration = new Histogram({
    name: 'gen_ai_client_operation_duration_seconds',
    help: 'Duration of a call, from its admission to its settlement',
    labelNames: [...SERVICE_LABELS, 'error_type'],
    buckets: DURATION_S,
    registers,
  });
  const tokens = new Histogram({
    name: 'gen_ai_client_token_usage',
    help: 'Tokens of a call, by type',
    labelNames: [...SERVICE_LABELS, 'gen_ai_token_type'],
    buckets: TOKENS,
    registers,
  });
  const firstToken = new Histogram({
    name: 'gen_ai_server_time_to_first_token_seconds',
    help: 'Time from the admission of a call to the first byte of its reply',
    labelNames: [...SERVICE_LABELS],
    buckets: FIRST_TOKEN_S,
    registers,
  });
  const charged = new Counter({
    name: 'tollgate_charged_micro_usd_total',
    help: 'Money charged to consumers, in micro-USD',
    labelNames: [...SERVICE_LABELS, 'gen_ai_tool_name'],
    registers,
  });
  const fees = new Counter({
    name: 'tollgate_fees_micro_usd_total',
    help: "The operator's part of what was charged, in micro-USD",
    labelNames: [...SERVICE_LABELS, 'gen_ai_tool_name'],
    registers,
  });
  const shortfall = new Counter({
    name: 'tollgate_shortfall_micro_usd_total',
    help: 'Cost of calls beyond what could be charged, in micro-USD',
    registers,
  });
  const resolved = new Counter({
    name: 'tollgate_calls_total',
    help: 'Billed calls by what became of their lock',
    labelNames: ['lock'],
    registers,
  });
  const attempts = new Counter({
    name: 'tollgate_attempts_failed_total',
    help: 'Requests to providers that failed, by whose fault it was',
    labelNames: [...SERVICE_LABELS, 'blame'],
    registers,
  });
  const flags = new Counter({
    name: 'tollgate_provider_flags_total',
    help: 'Replies that broke what providers promise',
    labelNames: [...SERVICE_LABELS, 'flag'],
    registers,
  });
  const limited = new Counter({
    name: 'tollgate_rate_limited_total',
    help: 'Requests refused by a rate limit',
    labelNames: ['of'],
    registers,
  });
  const http = new Counter({
    name: 'tollgate_http_requests_total',
    help: 'Answers by route',
    labelNames: ['method', 'route', 'status'],
    registers,
  });
  const tunnelEvents = new Counter({
    name: 'tollgate_tunnel_events_total',
    help: "What providers' proxies did: rejected, connected, registered, refused, replaced, draining, left, failed",
    labelNames: ['event'],
    registers,
  });
  const batchSize = new Histogram({
    name: 'tollgate_ledger_batch_size',
    help: 'Operations in one commit of the ledger',
    buckets: BATCH,
    registers,
  });
  const batchTime = new Histogram({
    name: 'tollgate_ledger_batch_duration_seconds',
    help: 'Time of one commit of the ledger',
    buckets: COMMIT_S,
    registers,
  });

  const processes = new Gauge({
    name: 'tollgate_processes',
    help: 'Gateway processes that these figures are of',
    registers,
  });
  processes.set(1);

  let inFlight = 0;
  const locksHeld = options.locksHeld ?? (() => inFlight);
  registry.registerMetric(
    new Gauge({
      name: 'tollgate_calls_in_flight',
      help: 'Billed calls that are running',
      registers: [],
      collect() {
        this.set(inFlight);
      },
    }),
  );
  registry.registerMetric(
    new Gauge({
      name: 'tollgate_locks_held',
      help: 'Locks that are neither settled nor released; -1 when the database does not answer',
      registers: [],
      // Every process counts the locks of all.
      aggregator: 'max',
      async collect() {
        this.set(await Promise.resolve(locksHeld()).catch(() => -1));
      },
    }),
  );

  const { tunnels = () => ({ connections: 0, streams: 0 }) } = options;
  for (const [name, help, of] of [
    ['tollgate_tunnels', "Providers' proxies that are connected here", 'connections'],
    ['tollgate_tunnel_streams', "Calls that run through providers' proxies", 'streams'],
  ] as const) {
    registry.registerMetric(
      new Gauge({
        name,
        help,
        registers: [],
        collect() {
          this.set(tunnels()[of]);
        },
      }),
    );
  }

  const { isOwn = () => false } = options;
  const series = new Map<string, OfferSeries>();
  let strangers = 0;
  const seriesOf = (offer: CountedOffer): OfferSeries => {
    const found = series.get(offer.id);
    if (found) return found;
    const own = isOwn(offer.id);
    const full = !own && strangers >= STRANGERS_MAX;
    const key = full ? `${OTHER} ${offer.primitive}` : offer.id;
    let made = series.get(key);
    if (!made) {
      const labels = {
        gen_ai_operation_name: OPERATIONS[offer.primitive],
        gen_ai_request_model: full ? OTHER : offer.service,
        gen_ai_provider_name: full ? OTHER : offer.provider.name,
      };
      made = {
        labels,
        duration: histogramSeries(duration, labels),
        input: histogramSeries(tokens, { ...labels, gen_ai_token_type: 'input' }),
        output: histogramSeries(tokens, { ...labels, gen_ai_token_type: 'output' }),
        firstToken: histogramSeries(firstToken, labels),
        charged: counterSeries(charged, labels),
        fee: counterSeries(fees, labels),
      };
      series.set(key, made);
      if (!own && !full) strangers += 1;
    }
    return made;
  };

  const mcp = createMcpMetrics({
    registry,
    isOwn,
    labelsOf: (offer) => seriesOf(offer).labels,
    moneyOf: (labels) => ({ charged: counterSeries(charged, labels), fee: counterSeries(fees, labels) }),
    counts: options.mcp ?? (() => ({ sessions: 0, heldCalls: 0, listens: 0 })),
  });

  const tasks = createTaskMetrics({
    registry,
    seriesOf,
    shortfall,
    flagged: (offer, flag) => flags.inc({ ...seriesOf(offer).labels, flag }),
    live: options.tasksLive ?? (() => 0),
  });

  const funds = options.funds
    ? createFundMetrics({ registry, figures: options.funds, now: options.now ?? Date.now })
    : null;

  const lockStates = {
    settled: counterSeries(resolved, { lock: 'settled' }),
    released: counterSeries(resolved, { lock: 'released' }),
    pending: counterSeries(resolved, { lock: 'pending' }),
    unresolved: counterSeries(resolved, { lock: 'unresolved' }),
    none: counterSeries(resolved, { lock: 'none' }),
  };
  const answers = new Map<string, { inc(): void }>();

  const [ofSize, ofTime] = [histogramSeries(batchSize, {}), histogramSeries(batchTime, {})];

  return {
    sink: {
      started(call) {
        if (call.free === null) inFlight += 1;
      },
      attemptFailed(call, offer, failure, time) {
        attempts.inc({ ...seriesOf(offer).labels, blame: failure.blame });
        mcp.attemptFailed(call, offer, failure, time);
      },
      flagged(_call, offer, raised) {
        for (const flag of raised) flags.inc({ ...seriesOf(offer).labels, flag });
      },
      finished(call, outcome) {
        const offer = outcome.offer ?? call.candidates[0]?.offer;
        if (offer) mcp.finished(call, outcome, offer);
        if (call.free !== null) return;
        inFlight -= 1;
        const { resolution } = outcome;
        lockStates[resolution?.state ?? 'none'].inc();
        if (!offer) return;
        const of = seriesOf(offer);
        const [code] = statusOf(outcome);
        if (code === null) of.duration.observe(outcome.durationMs / 1000);
        else duration.observe({ ...of.labels, error_type: labelOfError(code) }, outcome.durationMs / 1000);
        if (outcome.firstByteMs !== null) of.firstToken.observe(outcome.firstByteMs / 1000);
        if (!resolution) return;
        const { settlement } = resolution;
        const usage = resolution.end?.usage;
        if (usage?.prompt !== undefined) of.input.observe(Number(usage.prompt));
        if (usage?.completion !== undefined) of.output.observe(Number(usage.completion));
        const money = settlement.charged > 0n ? (mcp.moneyOf(call, outcome, offer) ?? of) : of;
        if (settlement.charged > 0n) money.charged.inc(Number(settlement.charged));
        if (settlement.fee > 0n) money.fee.inc(Number(settlement.fee));
        if (settlement.shortfall > 0n) shortfall.inc(Number(settlement.shortfall));
      },
    },
    tasks,
    ledgerBatch({ size, durationMs }) {
      ofSize.observe(size);
      ofTime.observe(durationMs / 1000);
    },
    rateLimited(of) {
      limited.inc({ of });
    },
    tunnelEvent(event) {
      tunnelEvents.inc({ event });
    },
    mcpSessionEnded: mcp.sessionEnded,
    answered(method, route, status) {
      const key = `${method} ${status} ${route}`;
      let child = answers.get(key);
      if (!child) answers.set(key, (child = counterSeries(http, { method, route, status: String(status) })));
      child.inc();
    },
    text() {
      funds?.scraped();
      return textOf(registry);
    },
    async snapshot() {
      funds?.scraped();
      return asSnapshot(await registry.getMetricsAsJSON());
    },
    contentType: registry.contentType,
  };
}

/** Counts every answer of an instance and its children by route. Call it on the root instance, before the routes. */
export function countAnswers(app: FastifyInstance, metrics: Metrics): void {
  app.addHook('onResponse', (request, reply, done) => {
    metrics.answered(request.method, request.routeOptions.url ?? 'unmatched', reply.statusCode);
    done();
  });
}
