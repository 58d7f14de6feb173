import type { Ledger, PriceBook, Receipt, ReceiptSigner } from '#billing';
import { completionTokens, type EndFrame, promptTokens, type Settlement, usageToText } from '#billing/amounts';
import { type BilledHandler, createBill } from '#billing/compose';
import { callerCaip10 } from '#accounts';
import type { Health } from '#catalog';
import type { Config } from '#config';
import { toGatewayError } from '#http';
import { limitedAs, type RateLimiter, type RatePolicies, sharedAs, spendTokens, UNLIMITED } from '#limits';
import { type Call, type CallObserver, type Candidate, drainMsOf } from './call.ts';
import { type LockPayments, mostOf } from './lock-payments.ts';
import { ownKeyService } from './own-keys.ts';
import { lockOf, pricesOf } from './pipeline.ts';
import type { Quotes } from './quotes.ts';
import { releaseProbes } from './routing/router.ts';

/** The parts that a call meets when its lock is refused, made or ended. */
export interface BillingOptions {
  readonly config: Config['billing'];
  readonly ledger: Ledger;
  readonly prices: PriceBook;
  readonly lockPayments: LockPayments;
  readonly receipts: ReceiptSigner;
  readonly observer: CallObserver;
  readonly health: Health;
  readonly limiter: RateLimiter;
  readonly policies: RatePolicies;
  readonly quotes: Quotes;
  /** CAIP-2 ids of the gateway's own chains, for receipts. The list may grow. */
  readonly networks: readonly string[];
  /** See callGraceMs. */
  readonly graceMs: number;
  /** The database has lost the lock of a call. */
  readonly lockLost: () => void;
  readonly logger: BillingLog;
}

interface BillingLog {
  debug(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

/** The billing middleware for calls: what is done for a call when its lock is refused, made or ended. */
export function createBilling(options: BillingOptions): (next: BilledHandler<Call>) => BilledHandler<Call> {
  const { config, ledger, prices, lockPayments, receipts, observer, health, networks, graceMs, logger } = options;
  const isKept = (candidate: Candidate) => pricesOf(candidate).every(({ id }) => prices.has(id));
  /**
   * A price is stored with its first call, because most prices are never used, and because a registration, a quote and
   * a refused call cost nothing.
   */
  const atNewPrices = async (call: Call, paid: Promise<Call> | null): Promise<Call> => {
    await paid;
    const payable = await lockPayments.payable(call);
    const versions = payable.candidates.flatMap((candidate) => {
      const { provider, service } = candidate.offer;
      const billedService = candidate.ownKey === undefined ? service : ownKeyService(service);
      return pricesOf(candidate).map((price) => ({ ...price, provider: provider.id, service: billedService }));
    });
    await prices.remember(versions);
    return payable;
  };
  // A failure is harmless: the next use of the quote checks in the ledger whether the call was charged.
  const free = async ({ id, quote }: Call): Promise<void> => {
    if (quote === undefined) return;
    await options.quotes
      .free(quote, id)
      .catch((error: unknown) => logger.debug({ err: error }, 'a quote could not be freed'));
  };
  /**
   * Frees the quote of a call that got no lock. This happens before the caller gets the error, because the caller may
   * use the quote again at once.
   */
  const freed = async <R>(call: Call, locking: R | Promise<R>): Promise<R> => {
    try {
      const result = await locking;
      if (result instanceof Error) await free(call);
      return result;
    } catch (error) {
      await free(call);
      throw error;
    }
  };
  return createBill<Call>({
    ledger,
    lockOf: (call) => lockOf(call, graceMs),
    mayBeLate,
    feeBps: config.feeBps,
    drainMs: config.drainMs,
    drainMsOf: (call) => drainMsOf(call, config.drainMs),
    drainBytes: config.drainBytes,
    refuse(call, refusal) {
      const refused = lockPayments.ofCalls.refuse(call, refusal);
      return call.quote === undefined ? refused : freed<Call | Error>(call, refused);
    },
    // A lock needs stored prices.
    prepay(call) {
      const paid = lockPayments.ofCalls.prepay(call);
      return call.candidates.every(isKept) ? paid : atNewPrices(call, paid);
    },
    receipt: (call, end, settlement, settledAt) =>
      call.wantsReceipt ? receipts.sign(receiptOfCall(call, end, settlement, settledAt, networks)) : null,
    describeError(error) {
      const { code, message } = toGatewayError(error);
      return { code, message };
    },
    onStarted: observer.started,
    onRefused: (call, error) => {
      void free(call);
      observer.failed(call, error);
      releaseProbes(health, call);
    },
    onLockLost: ({ id }) => {
      options.lockLost();
      logger.warn({ generation_id: id }, 'the database has lost the lock of a call; it is locked again with its end');
    },
    onResolved: (call, resolution) => {
      observer.resolved(call, resolution);
      call.adapter.resolved?.(resolution.state);
      const { state, settlement, end } = resolution;
      if (state === 'released' || (state === 'settled' && settlement.charged === 0n && end?.outcome === 'free'))
        void free(call);
      countTokens(options, call, end);
      if (state === 'unresolved')
        logger.error({ err: resolution.error, generation_id: call.id }, 'a lock could not be resolved; it will expire');
    },
  });
}

/**
 * Whether a crash may undo the end of a call, so that it is as if released. Not if something else tells of the end: a
 * task, a call under or above it, a receipt, a payment, a quote, an approval, a reply that is kept, a batch.
 */
export const mayBeLate = (call: Call): boolean =>
  call.adapter.endsWithCall === true &&
  call.lendable === 0n &&
  call.parent === null &&
  call.continues === null &&
  !call.wantsReceipt &&
  call.quote === undefined &&
  call.approval === undefined &&
  !call.payment &&
  call.caller.paying === undefined &&
  call.caller.run === undefined &&
  call.outlivesClient !== true &&
  call.isRepeatable !== true;

/**
 * Counts the tokens that a call has used. A caller who pays in place uses no token limit: strangers of one network
 * share a limit, but each pays for its own call. Lines of a batch use none, so that calls whose clients wait have all
 * of it.
 */
function countTokens({ limiter, policies }: BillingOptions, { caller }: Call, end: EndFrame | null): void {
  const used = end?.usage;
  if (!used || caller.paying || caller.run?.call !== undefined) return;
  const tokens = Number(promptTokens(used) + completionTokens(used));
  spendTokens(limiter, limitedAs(caller), policies.policyOf(caller), tokens);
  const shared = policies.shared(caller);
  if (shared !== null && shared.tokensPerMinute !== UNLIMITED) spendTokens(limiter, sharedAs(caller), shared, tokens);
}

/**
 * The receipt of a call that has just been settled. `time` is in epoch milliseconds, `networks` are the CAIP-2 ids of
 * the gateway's own chains.
 */
export function receiptOfCall(
  call: Call,
  { provider, price, usage }: EndFrame,
  { charged, fee }: Settlement,
  time: number,
  networks: readonly string[],
): Receipt {
  return {
    id: call.id,
    account: callerCaip10(call.caller, networks),
    provider,
    primitive: call.primitive,
    ...(call.parent === null ? {} : { parent: call.parent }),
    tags: call.tags,
    price,
    lock: mostOf(call),
    usage: usageToText(usage ?? {}),
    charged,
    fee,
    time,
  };
}
