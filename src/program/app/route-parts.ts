import { TargetTable } from '#bridge';
import type { CallRequest, QuoteView, Runs } from '#call';
import { createRuns, quoteCall } from '#call/compose';
import { createStreamShares, type StreamShares } from '#limits';
import type { Phases } from './calls.ts';
import type { LargeFiles } from './files.ts';
import type { Work } from './work.ts';

/** The parts that the routes of several protocols share. */
export interface RouteParts {
  readonly work: Work;
  readonly files: LargeFiles;
  readonly runs: Runs;
  /** Counts the streams that each account listens to, over all protocols. */
  readonly listeners: StreamShares;
  /** Each protocol adds its target adapters, and looks those of the others up at each request. */
  readonly targets: TargetTable;
  readonly quote: (request: CallRequest) => Promise<QuoteView>;
  readonly keepAlive: { readonly keepAliveMs?: number };
}

export function shareParts(
  { foundation, access, money, network, calls }: Phases,
  work: Work,
  files: LargeFiles,
): RouteParts {
  const { options, now } = foundation;
  const { pipeline, quotes, runningCalls } = calls;
  const { graceMs, health } = network.routing;
  return {
    work,
    files,
    runs: createRuns({
      ledger: money.ledger,
      now,
      graceMs,
      payments: money.lockPayments,
      running: runningCalls,
      states: access.states,
      endUsers: foundation.config.billing.endUsers,
    }),
    listeners: createStreamShares(foundation.config.limits.listensMax),
    targets: new TargetTable(),
    quote: (request) => quoteCall({ pipeline, quotes, health }, request),
    keepAlive: options.keepAliveMs ? { keepAliveMs: options.keepAliveMs } : {},
  };
}
