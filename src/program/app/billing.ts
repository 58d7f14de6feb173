import { createBill, type BilledHandler } from '#billing/compose';
import { completionTokens, promptTokens } from '#billing';
import { lockOf, ownKeyService, pricesOf, releaseProbes, type Candidate } from '#call/compose';
import { toGatewayError } from '#http';
import { limitedAs, sharedAs, spendTokens, UNLIMITED } from '#limits';
import type { Quotes, Call } from '#call';
import { receiptOfCall } from '#pages';
import type { Routed } from './network.ts';

/** The billing middleware, with the hooks that run when a call is refused or resolved. */
export function openBilling(
  routed: Routed,
  quotes: Pick<Quotes, 'free'>,
): (next: BilledHandler<Call>) => BilledHandler<Call> {
  const { config, ledger, prices, lockPayments, receipts, observer, health, limiter, policies, logger, metrics } =
    routed;
  const { networks, graceMs } = routed;
  const isKept = (candidate: Candidate) => pricesOf(candidate).every(({ id }) => prices.has(id));
  // A failure is harmless: the next use of the quote checks in the ledger whether the call was charged.
  const free = async ({ id, quote }: Call): Promise<void> => {
    if (quote === undefined) return;
    await quotes.free(quote, id).catch((error: unknown) => logger.debug({ err: error }, 'a quote could not be freed'));
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
    feeBps: config.billing.feeBps,
    drainMs: config.billing.drainMs,
    drainBytes: config.billing.drainBytes,
    refuse(call, refusal) {
      const refused = lockPayments.ofCalls.refuse(call, refusal);
      return call.quote === undefined ? refused : freed<Call | Error>(call, refused);
    },
    // Prices are stored before a payment is taken, because a lock needs stored prices and nobody should pay for a call
    // that cannot be locked. A price is stored with its first call, because most prices are never used.
    prepay(call) {
      if (call.candidates.every(isKept)) return lockPayments.ofCalls.prepay(call);
      const versions = call.candidates.flatMap((candidate) => {
        const { provider, service } = candidate.offer;
        const of = candidate.ownKey === undefined ? service : ownKeyService(service);
        return pricesOf(candidate).map((price) => ({ ...price, provider: provider.id, service: of }));
      });
      return prices.remember(versions).then(() => lockPayments.ofCalls.prepay(call) ?? undefined);
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
      metrics.lockLost();
      logger.warn({ generation_id: id }, 'the database has lost the lock of a call; it is locked again with its end');
    },
    onResolved: (call, resolution) => {
      observer.resolved(call, resolution);
      call.adapter.resolved?.(resolution.state);
      const { state, settlement } = resolution;
      if (
        state === 'released' ||
        (state === 'settled' && settlement.charged === 0n && resolution.end?.outcome === 'free')
      )
        void free(call);
      const used = resolution.end?.usage;
      // A caller who pays in place uses no token limit: strangers of one network share a limit, but each pays for its
      // own call. Lines of a batch use none, so that calls whose clients wait have all of it.
      if (used && !call.caller.paying && call.caller.run?.call === undefined) {
        const tokens = Number(promptTokens(used) + completionTokens(used));
        spendTokens(limiter, limitedAs(call.caller), policies.policyOf(call.caller), tokens);
        const shared = policies.shared(call.caller);
        if (shared !== null && shared.tokensPerMinute !== UNLIMITED)
          spendTokens(limiter, sharedAs(call.caller), shared, tokens);
      }
      if (resolution.state === 'unresolved')
        logger.error({ err: resolution.error, generation_id: call.id }, 'a lock could not be resolved; it will expire');
    },
  });
}
