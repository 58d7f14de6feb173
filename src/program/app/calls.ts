import {
  type BillingOptions,
  createBilling,
  createClaimDensity,
  createExecute,
  createFree,
  createHeldCalls,
  createIdempotency,
  createPipeline,
  createQuotes,
  createRetryBudget,
  createUnfundedNetwork,
  longestLockMs,
  RunningCalls,
} from '#call/compose';
import { type ApprovalStore, createApprovalStore, createUnfundedAccounts } from '#accounts';
import { createReplyMemory, type HeldCalls, type Idempotency, type Pipeline, type Quotes } from '#call';
import type { Access } from './access.ts';
import { approvalPage } from './addresses.ts';
import type { Foundation } from './foundation.ts';
import type { Money } from './money.ts';
import type { Network } from './network.ts';
import type { Observers } from './observers.ts';

/** Phase 6: the pipeline that every call takes, with the billing middleware. */
export interface Calls {
  readonly pipeline: Pipeline;
  /** Calls whose answers come later, in a batch of their provider. */
  readonly held: HeldCalls;
  readonly runningCalls: RunningCalls;
  readonly quotes: Quotes;
  readonly approvals: ApprovalStore;
  readonly unfunded: ReturnType<typeof createUnfundedAccounts>;
  readonly idempotency: Idempotency;
  /** Milliseconds that a lock lives at most, if it is not kept for a task. */
  readonly longestLockMs: number;
}

export interface Phases {
  readonly foundation: Foundation;
  readonly observers: Observers;
  readonly money: Money;
  readonly access: Access;
  readonly network: Network;
  readonly calls: Calls;
}

export async function openCalls(
  foundation: Foundation,
  observers: Observers,
  money: Money,
  access: Access,
  network: Network,
): Promise<Calls> {
  const { config, database, identity, networks, logger, now, elapsed } = foundation;
  const { ledger, prices, receipts, lockPayments } = money;
  const { observer, metrics, lastRefusals } = observers;
  const { authenticator, drain, states, providerKeys, http } = access;
  const { health, router, arrivals, limiter, policies, graceMs } = network.routing;
  const { catalog } = http;
  const { callTimeoutMs, attemptsMax } = config.upstream;
  const lockMs = longestLockMs(callTimeoutMs, graceMs);
  const idempotency = createIdempotency(database, { ...config.limits, now, runningTtlMs: lockMs });
  if (database.engine === 'sqlite') await idempotency.endRunning();
  const quotes = createQuotes({ database, prices, ledger, validMs: config.quotes.validMs, now });
  const unfunded = createUnfundedAccounts({ database, ledger, now });
  const approvals = createApprovalStore(database, { secret: identity.secrets('approvals'), now });
  const runningCalls = new RunningCalls();
  const execute = createExecute({
    replyMemory: createReplyMemory(config.upstream),
    drain: config.billing,
    upstream: network.upstream,
    health,
    router,
    retryBudget: createRetryBudget({ now: elapsed }),
    repeats: attemptsMax > 1,
    claims: createClaimDensity(),
    observer,
    now: elapsed,
    running: runningCalls,
  });
  const billing: BillingOptions = {
    config: config.billing,
    ledger,
    prices,
    lockPayments,
    receipts,
    observer,
    health,
    limiter,
    policies,
    quotes,
    networks,
    graceMs,
    lockLost: metrics.lockLost,
    logger,
  };
  const pipeline = createPipeline({
    authenticate: drain.authenticate,
    act: authenticator.act,
    states,
    limiter,
    policy: policies.policyOf,
    sharedPolicy: policies.shared,
    countPolicy: policies.counts,
    newKeyPolicy: policies.newKeys,
    unfundedNetwork: createUnfundedNetwork(ledger, unfunded.used),
    onRateLimited(limit, caller, error) {
      metrics.rateLimited(limit);
      lastRefusals.blame(error, caller);
    },
    catalog,
    router,
    health,
    arrivals,
    quotes,
    askFirst: { approvals, pageOf: (id) => approvalPage(config, http.server, id) },
    ownKeys: { keys: providerKeys, bps: config.billing.ownKeyBps },
    catchUp: network.registry.catchUp,
    attemptsMax,
    callTimeoutMs,
    canPay: lockPayments.canPay,
    billed: createBilling(billing)(execute),
    unbilled: createFree(observer)(execute),
    observer,
    now,
    elapsed,
    endUsers: config.billing.endUsers,
  });
  const held = createHeldCalls({ billing, catalog, router, callTimeoutMs, now, elapsed });
  return { pipeline, held, runningCalls, quotes, approvals, unfunded, idempotency, longestLockMs: lockMs };
}
