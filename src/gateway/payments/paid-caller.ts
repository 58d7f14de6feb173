import type { Caller } from '../call.ts';
import { refusesPayment } from './payment-needed.ts';
import type { Payments, PaymentSlip } from './payments.ts';

/**
 * The caller of a request that a payment came with: see Payments.callerOf. Where the payment is refused, the caller
 * stays as it is. The refusal is told with the terms once the cost of the call is known. Throws GatewayError
 * `invalid_request`, `service_unavailable`.
 */
export async function paidCaller(payments: Payments, caller: Caller, slip: PaymentSlip | null): Promise<Caller> {
  if (slip === null || !caller.anonymous) return caller;
  try {
    return await payments.callerOf(caller, slip);
  } catch (error) {
    if (!refusesPayment(error)) throw error;
    slip.fault = error;
    return caller;
  }
}
