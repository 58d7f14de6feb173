import type { RequestMessage } from '#wire';
import { keyedRequest, paidCaller, paymentOf, type Caller, type Payments, type PaymentAttempt } from '#gateway';
import { requestDigest } from '../wire/request-digest.ts';

/** Members of `_meta` that the x402 transport for MCP defines. */
export const X402 = { payment: 'x402/payment', response: 'x402/payment-response' } as const;

/** The caller of a request, and the payment that came with it. */
export interface PaidRequest {
  readonly caller: Caller;
  readonly payment: PaymentAttempt | null;
}

/** A request, with its members about payment and repeats. */
interface PaidMeta {
  readonly message: RequestMessage;
  readonly payment: unknown;
  readonly idempotencyKey: string | null;
}

/**
 * Reads the payment of a request. `target`: the called service, as the request names it. All rounds of a call count as
 * the same request for a payment, because they are one call. Throws GatewayError `invalid_request`,
 * `service_unavailable`.
 */
export type ReadPaid = (caller: Caller, target: string, own: PaidMeta) => PaidRequest | Promise<PaidRequest>;

export function createReadPaid(payments: Payments): ReadPaid {
  return (caller, target, { message, payment: said, idempotencyKey }) => {
    if (!payments.open || said === undefined || message.method !== 'tools/call') return { caller, payment: null };
    const payment = paymentOf(said, `params._meta["${X402.payment}"]`, () =>
      keyedRequest(requestDigest(target, message, false), idempotencyKey),
    );
    return paidCaller(payments, caller, payment).then((paying) => ({ caller: paying, payment }));
  };
}
