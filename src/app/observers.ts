import { countHeldLocks } from '#billing';
import { countLiveTasks } from '#tasks';
import { createCallLog, createCallObserver, createMetrics, createRefusalLog, createTracer } from '#observe';
import { VERSION } from '../version.ts';
import { hasPayments } from './payments.ts';
import type { Store } from './store.ts';

/** The log of calls, metrics and traces. */
export async function openObservers({
  config,
  logger,
  outages,
  logLinesLost,
  opened,
  database,
  offers,
  late,
  now,
  elapsed,
}: Store) {
  const ownOffers = new Set(offers.map(({ id }) => id));
  const metrics = createMetrics({
    isOwn: (id) => ownOffers.has(id),
    locksHeld: () => countHeldLocks(database),
    tunnels: () => late.tunnels.count(),
    tasksLive: () => countLiveTasks(database),
    mcp: () => late.mcp.counts(),
    funds: hasPayments(config) ? () => late.funds.figures() : undefined,
    bodyBytes: () => late.bodies.heldBytes(),
    bodiesWaiting: () => late.bodies.waitingCount(),
    logLinesLost,
    now,
  });
  const tracer = await createTracer(config, {
    version: VERSION,
    onError: (error) => outages.failed('traces', { err: error }, 'traces could not be sent'),
  });
  opened.defer(() => tracer.close());
  // In development the reader of the log wants to see refused requests. In production anybody could fill the log with
  // them.
  const refusals = createRefusalLog(logger, config.mode === 'development' ? 'info' : 'debug');
  const observer = createCallObserver(
    [createCallLog(logger, tracer.spanOf, outages), refusals.sink, metrics.sink, tracer.sink],
    {
      now: elapsed,
      hasOperation: (offer, tool) => late.mcp.hasTool(offer, tool),
    },
  );
  return { metrics, refusals, observer, ownOffers };
}
