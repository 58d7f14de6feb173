import type { Caller } from '../call.ts';
import { refusesPayment } from './payment-needed.ts';
import type { Payments, PaymentSlip } from './payments.ts';

/**
 * Who makes a request that a payment came with: see Payments.callerOf. Where the payment is no good the caller
 * stays as it is, and is told so once it is known what the call costs, with the terms. Throws GatewayError
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
