import {
  createExecute,
  createFree,
  createQuotes,
  createIdempotency,
  createPipeline,
  createClaimDensity,
  createRetryBudget,
  longestLockMs,
  RunningCalls,
} from '#call/compose';
import { createReplyMemory, type Quotes } from '#call';
import type { CallToEnd } from '#network';
import { ownUrlOf } from './own-url.ts';
import { type ApprovalStore, createApprovalStore, refuseStopped } from '#accounts';
import { openAccess, openServer } from './server.ts';
import type { PhaseParts } from './foundation.ts';
import { openBilling } from './billing.ts';
import { endCallHere } from './end-call.ts';
import type { Money } from './money.ts';
import { openNetwork, type Routed, openRouting } from './network.ts';
import { createReload } from './reload.ts';

export type Middle = PhaseParts<typeof openMiddle>;

/** Phase 3: the server, authentication, the way to providers, and the pipeline that every call takes. */
export async function openMiddle(money: Money) {
  const access = await openAccess(await openServer(money));
  const routed = await openRouting(await openNetwork(access));
  const { config, database, graceMs, now } = routed;
  const idempotency = createIdempotency(database, {
    ...config.limits,
    now,
    runningTtlMs: longestLockMs(config.upstream.callTimeoutMs, graceMs),
  });
  if (database.engine === 'sqlite') await idempotency.endRunning();
  const { prices, ledger } = routed;
  const quotes = createQuotes({ database, prices, ledger, validMs: config.quotes.validMs, now });
  const approvals = createApprovalStore(database, { secret: routed.identity.secret('approvals'), now });
  const reload = createReload(routed);
  return { ...routed, reload, quotes, approvals, ...openPipeline(routed, quotes, approvals), idempotency };
}

/** The page of the dashboard on which a person decides about a call. */
const APPROVALS_PAGE = 'approvals';

function openPipeline(routed: Routed, quotes: Quotes, approvals: ApprovalStore) {
  const { config, drain, authenticator, limiter, policies, metrics, catalog, router, health, observer, now, elapsed } =
    routed;
  const runningCalls = new RunningCalls();
  const execute = createExecute({
    replyMemory: createReplyMemory(config.upstream),
    drain: config.billing,
    upstream: routed.upstream,
    health,
    router,
    retryBudget: createRetryBudget({ now: elapsed }),
    claims: createClaimDensity(),
    observer,
    now: elapsed,
    running: runningCalls,
  });
  const pipeline = createPipeline({
    authenticate: drain.authenticate,
    act: authenticator.act,
    stopped: (account) => refuseStopped(routed.states, account),
    limiter,
    policy: policies.of,
    sharedPolicy: policies.shared,
    countPolicy: policies.counts,
    newKeyPolicy: policies.newKeys,
    onRateLimited: metrics.rateLimited,
    catalog,
    router,
    health,
    arrivals: routed.arrivals,
    quotes,
    askFirst: {
      approvals,
      pageOf(id) {
        const own = ownUrlOf(routed);
        const dashboard = config.dashboardUrl ?? (own === null ? null : `${own}/dashboard`);
        return dashboard === null ? null : `${dashboard}/${APPROVALS_PAGE}?id=${id}`;
      },
    },
    ownKeys: { keys: routed.providerKeys, bps: config.billing.ownKeyBps },
    catchUp: routed.registry.catchUp,
    attemptsMax: config.upstream.attemptsMax,
    callTimeoutMs: config.upstream.callTimeoutMs,
    canPay: routed.lockPayments.canPay,
    billed: openBilling(routed, quotes)(execute),
    unbilled: createFree(observer)(execute),
    observer,
    now,
    elapsed,
  });
  const { logger, late } = routed;
  const batches = { wasEnded: (id: string, why: string) => late.batchWasEnded(id, why) };
  const endHere = (call: CallToEnd) => endCallHere({ running: runningCalls, batches, logger }, call);
  late.endCall = endHere;
  return { pipeline, runningCalls };
}
