import { createPriceBook, createReceiptSigner, countHeldLocks } from '#billing/compose';
import { createLockPayments } from '#call/compose';
import { pricesOf } from '#network';
import { createPastReceipts } from '#pages';
import { countLiveTasks } from '#tasks';
import {
  createCallLog,
  createCallObserver,
  createLastFailures,
  createMetrics,
  createRefusalLog,
  createRunningAttempts,
  createTracer,
  watchLateAttempts,
} from '#observe';
import type { PhaseParts, Store } from './foundation.ts';
import { auditWithJournal, openLedger } from './journal.ts';
import { openPayments, hasPayments } from './payments.ts';
import { VERSION } from '../../foundation/version.ts';

export type Money = PhaseParts<typeof openMoney>;

/** Phase 2: ledger, prices, receipts and payments over chains, and the observers that count them. */
export async function openMoney(store: Store) {
  const { config, options, database, identity, offers, opened, late, networks, now } = store;
  const observers = await openObservers(store);
  const ledger = await openLedger(store, (batch) => observers.metrics.ledgerBatch(batch));
  const receipts = createReceiptSigner(identity.receiptKey.privateKey);
  const prices = createPriceBook(database, now);
  await prices.remember(pricesOf(offers));
  const chains = await openPayments({ ...store, ledger });
  opened.defer(chains.close);
  late.funds = chains;
  const payments = options.payments ?? chains.payments;
  return {
    ...store,
    ...observers,
    ledger,
    receipts,
    pastReceipts: createPastReceipts(receipts, ledger, networks),
    prices,
    funds: chains.funds,
    prepareChains: chains.prepare,
    payments,
    lockPayments: createLockPayments(payments, ledger),
    audit: (archives: readonly string[] = []) => auditWithJournal(config, database, { now, archives }),
  };
}

/** The log of calls, metrics and traces. */
async function openObservers({
  config,
  logger,
  outages,
  logLinesLost,
  opened,
  database,
  offers,
  late,
  clock,
  now,
  elapsed,
}: Store) {
  const ownOffers = new Set(offers.map(({ id }) => id));
  const running = createRunningAttempts();
  const watch = watchLateAttempts({ running, logger, headTimeoutMs: config.upstream.headTimeoutMs, now: elapsed });
  opened.defer(async () => watch.close());
  const metrics = createMetrics({
    running,
    elapsed,
    isOwn: (id) => ownOffers.has(id),
    locksHeld: () => countHeldLocks(database),
    tunnels: () => late.tunnels.count(),
    tasksLive: () => countLiveTasks(database),
    mcp: () => late.mcp.counts(),
    funds: hasPayments(config) ? () => late.funds.figures() : undefined,
    databaseWorks: () => late.databaseWorks(),
    clockAheadMs: clock.aheadMs,
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
  const lastFailures = createLastFailures(now);
  const observer = createCallObserver(
    [createCallLog(logger, tracer.spanOf, outages), refusals.sink, lastFailures.sink, metrics.sink, tracer.sink],
    {
      now: elapsed,
      running,
      hasOperation: (offer, tool) => late.mcp.hasTool(offer, tool),
    },
  );
  return { metrics, refusals, observer, ownOffers, lastFailures };
}
