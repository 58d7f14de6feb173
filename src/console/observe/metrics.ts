import type { FastifyInstance } from 'fastify';
import type * as prom from 'prom-client';
import type { RequestBodies } from '#http';
import type { TaskSink, Task } from '#tasks';
import { getOrInsert } from '#wire';
import { addReconciliationMetrics, type ReconciliationFigure } from './reconciliation-metrics.ts';
import { createFundMetrics, type FundFigures, type FundMetrics } from './fund-metrics.ts';
import { createMcpMetrics, type McpCounts, type McpMetrics } from './mcp-metrics.ts';
import { asSnapshot, type MetricSnapshot, textOf } from './scrape.ts';
import {
  counters,
  gauges,
  histograms,
  counterSeries,
  histogramSeries,
  type CounterSeries,
  addProcessMetrics,
  Registry,
  orSilent,
} from './prometheus.ts';
import { type CallOutcome, type CallSink, labelOfFailure, statusOf } from './observer.ts';
import type { Offer } from '#catalog';
import {
  createOfferSeries,
  labelOfError,
  type Labels,
  type OfferSeries,
  OTHER,
  SERVICE_LABELS,
} from './offer-series.ts';
import type { OfferAttempts, RunningAttempts } from './running-attempts.ts';

const COMMIT_S = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];
const BATCH = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/**
 * Sums of gauges by prom-client. They are removed, because the same gauges exist by type, and the name of a gauge must
 * not end in `_total`.
 */
const SUMMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

/** The functions for gauges are called at each scrape. */
interface MetricsOptions {
  /**
   * Whether an offer is the operator's own, from the configuration file. Each of those has its own series. Default: no
   * offer is.
   */
  readonly isOwn?: (offerId: string) => boolean;
  /**
   * Number of locks that are held now, by all gateways of the database. Default: the calls in flight in this process.
   */
  readonly locksHeld?: () => number | Promise<number>;
  /** Milliseconds by which this machine's clock is ahead of the database's. */
  readonly clockAheadMs?: () => number;
  /** Number of running tasks, over all gateways of the database. */
  readonly tasksLive?: () => number | Promise<number>;
  readonly logLinesLost?: () => number;
  /** The attempts that run, and the time on their clock. Absent: they are not shown. */
  readonly running?: Pick<RunningAttempts, 'places'>;
  readonly elapsed?: () => number;
  readonly now?: () => number;
  readonly processMetrics?: boolean;
}

/** The figures of parts that are made after the metrics, because they report to them. Read at each scrape. */
interface ShownFigures {
  /** Number of providers' proxies that are connected to this process, and of calls that run through them. */
  readonly tunnels: () => { readonly connections: number; readonly streams: number };
  readonly mcp: () => McpCounts;
  /** Whether the database and the ledger take what calls need, as `/health/ready` shows it. */
  readonly databaseWorks: () => Promise<boolean>;
  /** The bodies of requests: the bytes of memory that are counted for them, and how many wait for memory. */
  readonly bodies: Pick<RequestBodies, 'heldBytes' | 'waitingCount'>;
}

const NOTHING_SHOWN: ShownFigures = {
  tunnels: () => ({ connections: 0, streams: 0 }),
  mcp: () => ({ sessions: 0, heldCalls: 0, listens: 0 }),
  databaseWorks: async () => true,
  bodies: { heldBytes: () => 0, waitingCount: () => 0 },
};

export interface Metrics {
  /** Shows the figures of parts. Until then, they are those of a gateway that does nothing. */
  show(figures: Partial<ShownFigures>): void;
  /** Shows money over chains. A gateway without chains has no such figures. */
  showFunds(figures: () => Promise<FundFigures>): void;
  /** Called once: the last comparisons with vendors, read at each scrape. */
  showReconciliations(figures: () => Promise<readonly ReconciliationFigure[]>): void;
  /** Counts calls. It takes about 2 µs for a call, 3 µs for a tool call. */
  readonly sink: CallSink;
  /** Counts tasks, and calls that are settled with them. */
  readonly tasks: TaskSink;
  ledgerBatch(batch: { readonly size: number; readonly durationMs: number }): void;
  lockLost(): void;
  rateLimited(limit: 'requests' | 'tokens'): void;
  bodyRefused(why: 'account' | 'network' | 'gateway' | 'slow'): void;
  /** A provider's proxy connected, registered, was refused or left. */
  tunnelEvent(event: string): void;
  readonly mcpSessionEnded: McpMetrics['sessionEnded'];
  reloaded(outcome: 'applied' | 'refused'): void;
  /** An answer was sent. `route`: the pattern of the route, never the path. */
  answered(method: string, route: string, status: number): void;
  /** All metrics in the Prometheus text format. */
  text(): Promise<string>;
  /** All metrics, for merging with those of other processes. */
  snapshot(): Promise<readonly MetricSnapshot[]>;
  readonly contentType: string;
}

/** All metrics of one gateway process, in a separate registry. Labels never contain text that a consumer wrote. */
export function createMetrics(options: MetricsOptions = {}): Metrics {
  const registry = new Registry();
  if (options.processMetrics ?? true) {
    addProcessMetrics(registry);
    for (const name of SUMMED) registry.removeSingleMetric(name);
  }
  const offers = createOfferSeries(registry, options.isOwn ?? (() => false));
  showRunning(registry, offers, options);
  const shownFigures = { ...NOTHING_SHOWN };
  const mcp = createMcpMetrics(registry, offers, () => shownFigures.mcp());
  const { now = Date.now } = options;
  let funds: FundMetrics | null = null;
  return {
    show: (figures) => void Object.assign(shownFigures, figures),
    showFunds(figures) {
      funds = createFundMetrics({ registry, figures, now });
    },
    showReconciliations: (figures) => addReconciliationMetrics({ registry, figures, now }),
    sink: createCallMetrics(registry, offers, mcp, options.locksHeld),
    tasks: createTaskMetrics(registry, offers, options.tasksLive ?? (() => 0)),
    mcpSessionEnded: mcp.sessionEnded,
    ...ofProcess(registry, shownFigures, options),
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

/** Gauges of the attempts that run. Offers without a series of their own are added up. */
function showRunning(
  registry: prom.Registry,
  offers: OfferSeries,
  { running, elapsed = () => performance.now() }: MetricsOptions,
): void {
  const read = (one: (place: OfferAttempts, at: number) => number, join: (a: number, b: number) => number) => () => {
    const at = elapsed();
    const samples = new Map<Labels, number>();
    for (const place of running?.places() ?? []) {
      const { labels } = offers.seriesOf(place.offer);
      samples.set(labels, join(samples.get(labels) ?? 0, one(place, at)));
    }
    return [...samples];
  };
  const add = (a: number, b: number) => a + b;
  const oldest = ({ oldest: first }: OfferAttempts, at: number) =>
    first === null ? 0 : (at - first.waitsSince) / 1_000;
  const [inFlight, waiting] = ['Attempts of billed calls that are running', 'Of these, those without a first byte'];
  gauges(registry, SERVICE_LABELS, [
    ['tollgate_attempts_in_flight', inFlight, read((place) => place.running, add)],
    ['tollgate_attempts_waiting', waiting, read((place) => place.waiting, add)],
  ]);
  const age = 'Time that the oldest attempt has waited for its first byte; 0 if none waits';
  gauges(registry, SERVICE_LABELS, [['tollgate_attempts_oldest_wait_seconds', age, read(oldest, Math.max)]], 'max');
}

function ofProcess(
  registry: prom.Registry,
  shownFigures: ShownFigures,
  { logLinesLost = () => 0, clockAheadMs = () => 0 }: MetricsOptions,
): Pick<Metrics, 'ledgerBatch' | 'lockLost' | 'rateLimited' | 'bodyRefused' | 'tunnelEvent' | 'reloaded' | 'answered'> {
  const { limited, bodies, http, events, reloads, lost } = counters(registry, [], {
    limited: ['tollgate_rate_limited_total', 'Requests refused by a rate limit', 'of'],
    bodies: [
      'tollgate_bodies_refused_total',
      'Bodies of requests that were refused: no room for the account, its network or the gateway, or too slow',
      'why',
    ],
    http: ['tollgate_http_requests_total', 'Answers by route', 'method', 'route', 'status'],
    events: [
      'tollgate_tunnel_events_total',
      "What providers' proxies did: rejected, connected, registered, refused, replaced, draining, left, failed",
      'event',
    ],
    reloads: [
      'tollgate_reloads_total',
      'Reloads of the configuration: applied, or refused as it has problems',
      'outcome',
    ],
    lost: [
      'tollgate_ledger_locks_lost_total',
      'Locks of running calls that a crash of the database lost; each was made again with the end of its call',
    ],
  });
  const { batchSize, batchTime } = histograms(registry, [], {
    batchSize: ['tollgate_ledger_batch_size', 'Operations in one commit of the ledger', BATCH],
    batchTime: ['tollgate_ledger_batch_duration_seconds', 'Time of one commit of the ledger', COMMIT_S],
  });
  gauges(
    registry,
    [],
    [
      ['tollgate_processes', 'Gateway processes that these figures cover', () => 1],
      [...LINES_LOST, logLinesLost],
      [
        'tollgate_bodies_bytes',
        'Memory for the bodies of requests above 8 KiB, as it is counted',
        () => shownFigures.bodies.heldBytes(),
      ],
      ['tollgate_bodies_waiting', 'Bodies of requests that wait for memory', () => shownFigures.bodies.waitingCount()],
      ['tollgate_tunnels', "Providers' proxies that are connected here", () => shownFigures.tunnels().connections],
      ['tollgate_tunnel_streams', "Calls that run through providers' proxies", () => shownFigures.tunnels().streams],
    ],
  );
  const works = 'Whether calls can be billed: 1, or 0 while the database or the ledger in it refuses what they need';
  gauges(
    registry,
    [],
    [['tollgate_database_works', works, async () => ((await shownFigures.databaseWorks()) ? 1 : 0)]],
    'min',
  );
  const offset = "Seconds by which this machine's clock is ahead of the database's; negative: behind";
  gauges(registry, [], [['tollgate_clock_offset_seconds', offset, () => clockAheadMs() / 1000]], 'max');
  /** By route, then method, then status, so that a lookup builds no new string. */
  const answers = new Map<string, Map<string, Map<number, CounterSeries>>>();
  const [size, time] = [histogramSeries(batchSize, {}), histogramSeries(batchTime, {})];
  return {
    ledgerBatch(batch) {
      size.observe(batch.size);
      time.observe(batch.durationMs / 1000);
    },
    lockLost: () => lost.inc(),
    rateLimited: (limit) => limited.inc({ of: limit }),
    bodyRefused: (why) => bodies.inc({ why }),
    tunnelEvent: (event) => events.inc({ event }),
    reloaded: (outcome) => reloads.inc({ outcome }),
    answered(method, route, status) {
      const ofRoute = getOrInsert(answers, route, () => new Map<string, Map<number, CounterSeries>>());
      const ofMethod = getOrInsert(ofRoute, method, () => new Map<number, CounterSeries>());
      getOrInsert(ofMethod, status, () => counterSeries(http, { method, route, status: String(status) })).inc();
    },
  };
}

const LINES_LOST = [
  'tollgate_log_lines_lost',
  'Lines of the log that the collector did not get, since the start',
] as const;

/**
 * The metrics of a process with a log and without calls: the supervisor of workers. They are added to the workers'
 * metrics.
 */
export async function linesLostSnapshot(logLinesLost: () => number): Promise<readonly MetricSnapshot[]> {
  const registry = new Registry();
  gauges(registry, [], [[...LINES_LOST, logLinesLost]]);
  return asSnapshot(await registry.getMetricsAsJSON());
}

/** Counts every answer of an instance and its children by route. Call it on the root instance, before the routes. */
export function countAnswers(app: FastifyInstance, metrics: Metrics): void {
  app.addHook('onResponse', (request, reply, done) => {
    metrics.answered(request.method, request.routeOptions.url ?? 'unmatched', reply.statusCode);
    done();
  });
}

/**
 * Metrics of billed calls. Free calls count only in MCP's metrics, and their failed attempts and flags also by offer.
 * `mcp` gets every call, and may count its charge by tool.
 */
function createCallMetrics(
  registry: prom.Registry,
  offers: OfferSeries,
  mcp: McpMetrics,
  locksHeld: MetricsOptions['locksHeld'],
): CallSink {
  let inFlight = 0;
  const calls = () => inFlight;
  gauges(registry, [], [['tollgate_calls_in_flight', 'Billed calls that are running', calls]]);
  const held = 'Locks that are neither settled nor released; -1 when the database does not answer';
  gauges(registry, [], [['tollgate_locks_held', held, orSilent(locksHeld ?? calls)]], 'max');
  const { resolved } = counters(registry, ['lock'], {
    resolved: ['tollgate_calls_total', 'Billed calls by the outcome of their lock'],
  });
  const ofLock = (lock: string) => counterSeries(resolved, { lock });
  const lockStates = {
    settled: ofLock('settled'),
    released: ofLock('released'),
    pending: ofLock('pending'),
    unresolved: ofLock('unresolved'),
    none: ofLock('none'),
  };

  return {
    started(call) {
      if (call.free === null) inFlight += 1;
    },
    attemptFailed(call, offer, failure, time) {
      offers.attemptFailed(offer, failure.attributedTo);
      if (call.free === null) offers.attemptEnded(offer, labelOfFailure(failure), time.durationMs / 1000);
      mcp.attemptFailed(call, offer, failure, time);
    },
    flagged: (_call, offer, { flags }) => offers.flagged(offer, flags),
    finished(call, outcome) {
      const offer = outcome.offer ?? call.candidates[0]?.offer;
      if (offer) mcp.finished(call, outcome, offer);
      if (call.free !== null) return;
      inFlight -= 1;
      const { resolution } = outcome;
      lockStates[resolution?.state ?? 'none'].inc();
      if (!offer) return;
      const one = offers.seriesOf(offer);
      countTimes(offers, call.candidates[0]?.offer ?? offer, offer, outcome);
      if (!resolution) return;
      const { settlement, end } = resolution;
      const ofTool = settlement.charged > 0n ? mcp.moneyOf(call, outcome, offer) : null;
      offers.settled(one, end?.usage, settlement, ofTool ?? one);
    },
  };
}

function countTimes(offers: OfferSeries, requested: Offer, offer: Offer, outcome: CallOutcome): void {
  const [code] = statusOf(outcome);
  const seconds = outcome.durationMs / 1000;
  if (code === null) offers.seriesOf(requested).request.observe(seconds);
  else offers.failed(requested, labelOfError(code), seconds);
  const { lastAttempt, firstByteMs } = outcome;
  if (lastAttempt === null) return;
  const { errorType, beganMs, durationMs } = lastAttempt;
  const { duration, firstToken } = offers.seriesOf(offer);
  if (errorType === null) duration.observe(durationMs / 1000);
  else offers.attemptEnded(offer, labelOfError(errorType), durationMs / 1000);
  if (firstByteMs !== null) firstToken.observe(Math.max(0, firstByteMs - beganMs) / 1000);
}

/**
 * Maximum number of states of ended tasks with their own series. Agents choose the names of states. The others share
 * one series.
 */
const STATES_MAX = 32;
const GAVE_UP = 'gave_up';

/**
 * Metrics of tasks. A call that ended as pending was counted then, without money. Its charge is added to the money
 * metrics when its task has ended.
 */
function createTaskMetrics(
  registry: prom.Registry,
  offers: OfferSeries,
  live: () => number | Promise<number>,
): TaskSink {
  const { begun, ended } = counters(registry, ['primitive'], {
    begun: ['tollgate_tasks_begun_total', 'Tasks that continued after the call that began them'],
    ended: [
      'tollgate_tasks_ended_total',
      'Tasks that ended, by the state in which they did; gave_up: nobody saw their end in time',
      'state',
    ],
  });
  const help = 'Tasks that are running; -1 when the database does not answer';
  gauges(registry, [], [['tollgate_tasks_live', help, orSilent(live)]], 'max');
  const states = new Set<string>();
  const labelOf = ({ state }: Task): string => {
    if (states.size < STATES_MAX) states.add(state);
    return states.has(state) ? state : OTHER;
  };
  return {
    begun: ({ primitive }) => begun.inc({ primitive }),
    ended: (task, gaveUp) => ended.inc({ primitive: task.primitive, state: gaveUp ? GAVE_UP : labelOf(task) }),
    concluded({ task, providerName, usage, settlement, flags }) {
      const { offerId: id, primitive, service, provider } = task;
      const offer = { id, primitive, service, provider: { id: provider, name: providerName } };
      offers.settled(offers.seriesOf(offer), usage, settlement);
      offers.flagged(offer, flags);
    },
  };
}
