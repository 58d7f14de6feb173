import { createBill, type BilledHandler, type Ledger, type PriceBook, type ReceiptSigner } from '#billing';
import type { Config } from '#config';
import {
  limitedAs,
  spendTokens,
  toBillable,
  type Call,
  type Candidate,
  type CallObserver,
  type createRatePolicies,
  type Health,
  type LockPayments,
  type RateLimiter,
} from '#gateway';
import type { Logger } from '#observe';
import { receiptOfCall } from '#pages';

export interface BillingOptions {
  readonly config: Config;
  readonly ledger: Ledger;
  readonly prices: PriceBook;
  readonly payments: LockPayments;
  readonly receipts: ReceiptSigner;
  readonly observer: CallObserver;
  readonly health: Health;
  readonly limiter: RateLimiter;
  readonly policies: ReturnType<typeof createRatePolicies>;
  readonly logger: Logger;
  /** The longest that a call can go on after its clock has ended it. */
  readonly graceMs: number;
  readonly now: () => number;
}

/** The billing middleware, with what hears of the ends of calls. */
export function openBilling(options: BillingOptions): (next: BilledHandler<Call>) => BilledHandler<Call> {
  const { config, ledger, prices, payments, receipts, observer, health, limiter, policies, logger, graceMs, now } =
    options;
  const networks = config.chains.map(({ network }) => network);
  const isKept = ({ price }: Candidate) => prices.has(price.id);
  return createBill<Call>({
    ledger,
    billable: (call) => toBillable(call, graceMs),
    feeBps: config.billing.feeBps,
    drainMs: config.billing.drainMs,
    drainBytes: config.billing.drainBytes,
    ...payments.ofCalls,
    // Before anything is paid: what cannot be locked is not paid for. A price is kept with the first call at it, as
    // most prices are never called at.
    prepay(call) {
      if (call.candidates.every(isKept)) return payments.ofCalls.prepay(call);
      const versions = call.candidates.map(({ offer, price }) => ({
        ...price,
        provider: offer.provider.id,
        service: offer.service,
      }));
      return prices.remember(versions).then(() => payments.ofCalls.prepay(call) ?? undefined);
    },
    receipt: (call, end, settlement) =>
      call.wantsReceipt ? receipts.sign(receiptOfCall(call, end, settlement, now(), networks)) : null,
    onStarted: observer.started,
    onRefused: (call, error) => {
      observer.failed(call, error);
      for (const { offer } of call.candidates) health.notProbed(offer, call.caller.account);
    },
    onResolved: (call, resolution) => {
      observer.resolved(call, resolution);
      call.exchange.resolved?.(resolution.state);
      const used = resolution.end?.usage;
      // What strangers of one network use is paid for by each of them.
      if (used && !call.caller.paying)
        void spendTokens(
          limiter,
          limitedAs(call.caller),
          policies.of(call.caller),
          Number((used.prompt ?? 0n) + (used.completion ?? 0n)),
        );
      if (resolution.state === 'unresolved')
        logger.error({ err: resolution.error, generation_id: call.id }, 'a lock could not be resolved; it will expire');
    },
  });
}
