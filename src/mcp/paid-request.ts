import { paidCaller, paymentOf, type Caller, type Payments, type PaymentSlip, type RequestMessage } from '#gateway';
import { requestDigest } from './request-digest.ts';

/** Members of `_meta` by the x402 transport for MCP. */
export const X402 = { payment: 'x402/payment', response: 'x402/payment-response' } as const;

/** Who makes a request, and the payment that came with it. */
export interface PaidRequest {
  readonly caller: Caller;
  readonly payment: PaymentSlip | null;
}

/**
 * Takes what a request says of a payment. `target`: what of the gateway it asks. Each round of a call is the same request to a payment, since all of them are one call.
 * Throws GatewayError `invalid_request`, `service_unavailable`.
 */
export type ReadPaid = (caller: Caller, target: string, own: { readonly message: RequestMessage; readonly payment: unknown }) => Promise<PaidRequest>;

export function createReadPaid(payments: Payments): ReadPaid {
  return async (caller, target, { message, payment: said }) => {
    if (!payments.open || said === undefined || message.method !== 'tools/call') return { caller, payment: null };
    const payment = paymentOf(said, `params._meta["${X402.payment}"]`, () => requestDigest(target, message, false));
    return { caller: await paidCaller(payments, caller, payment), payment };
  };
}
