import { countHeldLocks } from '#billing/compose';
import { countLiveTasks } from '#tasks';
import {
  createCallLog,
  createCallObserver,
  createLastFailures,
  createLastRefusals,
  createMetrics,
  createRefusalLog,
  createRunningAttempts,
  createTracer,
  type GatewayObserver,
  type LastFailures,
  type LastRefusals,
  type RunningAttempts,
  type Metrics,
  type RefusalLog,
  watchLateAttempts,
} from '#observe';
import { VERSION } from '../../foundation/version.ts';
import type { Foundation } from './foundation.ts';

/** Phase 2: what later phases report to. */
export interface Observers {
  /** Each later part with figures of its own adds them with `show`. */
  readonly metrics: Metrics;
  readonly refusals: RefusalLog;
  readonly observer: GatewayObserver;
  readonly lastFailures: LastFailures;
  readonly lastRefusals: LastRefusals;
  readonly running: RunningAttempts;
  /** Ids of the offers of the configuration, which have series of their own. A reload replaces them. */
  readonly ownOffers: Set<string>;
}

export async function openObservers(foundation: Foundation): Promise<Observers> {
  const { config, logger, outages, logLinesLost, resources, database, offers, clock, now, elapsed } = foundation;
  const ownOffers = new Set(offers.map(({ id }) => id));
  const running = createRunningAttempts();
  const watch = watchLateAttempts({ running, logger, headTimeoutMs: config.upstream.headTimeoutMs, now: elapsed });
  resources.defer(async () => watch.close());
  const metrics = createMetrics({
    running,
    elapsed,
    isOwn: ownOffers.has.bind(ownOffers),
    locksHeld: () => countHeldLocks(database),
    tasksLive: () => countLiveTasks(database),
    clockAheadMs: clock.aheadMs,
    logLinesLost,
    now,
  });
  const tracer = await createTracer(config, {
    version: VERSION,
    onError: (error) => outages.failed('traces', { err: error }, 'traces could not be sent'),
  });
  resources.defer(() => tracer.close());
  const lastRefusals = createLastRefusals(now);
  // In development the reader of the log wants to see refused requests. In production anybody could fill the log with
  // them.
  const refusals = createRefusalLog(logger, config.mode === 'development' ? 'info' : 'debug', lastRefusals);
  const lastFailures = createLastFailures(now);
  const observer = createCallObserver(
    [
      createCallLog(logger, tracer.spanOf, outages),
      refusals.sink,
      lastRefusals.sink,
      lastFailures.sink,
      metrics.sink,
      tracer.sink,
    ],
    { now: elapsed, running },
  );
  return { metrics, refusals, observer, ownOffers, lastFailures, lastRefusals, running };
}
