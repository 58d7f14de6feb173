import type { Registry } from 'prom-client';
import { labelOfError } from './answer-error.ts';
import { statusOf } from './call-log.ts';
import type { McpMetrics } from './mcp-metrics.ts';
import { counters, gauges, orSilent } from './metric-table.ts';
import type { CallSink } from './observer.ts';
import type { OfferSeries } from './offer-series.ts';
import { counterSeries } from './prom-series.ts';

interface CallMetricsOptions {
  readonly registry: Registry;
  readonly offers: OfferSeries;
  /** Receives every call, and may count its charge by tool. */
  readonly mcp: McpMetrics;
  /**
   * Number of locks that are held now, by all gateways of the database. Default: the calls in flight in this process.
   */
  readonly locksHeld: (() => number | Promise<number>) | undefined;
}

/**
 * Metrics of billed calls. Free calls count only in MCP's metrics, and their failed attempts and flags also by offer.
 */
export function createCallMetrics({ registry, offers, mcp, locksHeld }: CallMetricsOptions): CallSink {
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
      mcp.attemptFailed(call, offer, failure, time);
    },
    flagged: (_call, offer, flags) => offers.flagged(offer, flags),
    finished(call, outcome) {
      const offer = outcome.offer ?? call.candidates[0]?.offer;
      if (offer) mcp.finished(call, outcome, offer);
      if (call.free !== null) return;
      inFlight -= 1;
      const { resolution } = outcome;
      lockStates[resolution?.state ?? 'none'].inc();
      if (!offer) return;
      const one = offers.of(offer);
      const seconds = outcome.durationMs / 1000;
      const [code] = statusOf(outcome);
      if (code === null) one.duration.observe(seconds);
      else offers.failed(offer, labelOfError(code), seconds);
      if (outcome.firstByteMs !== null) one.firstToken.observe(outcome.firstByteMs / 1000);
      if (!resolution) return;
      const { settlement, end } = resolution;
      const ofTool = settlement.charged > 0n ? mcp.moneyOf(call, outcome, offer) : null;
      offers.settled(one, end?.usage, settlement, ofTool ?? one);
    },
  };
}
