import type { Caller } from '../call.ts';
import { refusesPayment } from './payment-needed.ts';
import type { Payments, PaymentAttempt } from './payments.ts';

/**
 * The caller of a request with a payment, see Payments.callerOf. If the payment is refused, the caller stays unchanged,
 * and the refusal is reported with the terms once the cost of the call is known. Throws GatewayError `invalid_request`,
 * `service_unavailable`.
 */
export async function paidCaller(
  payments: Payments,
  caller: Caller,
  paymentAttempt: PaymentAttempt | null,
): Promise<Caller> {
  if (paymentAttempt === null || !caller.anonymous) return caller;
  try {
    return await payments.callerOf(caller, paymentAttempt);
  } catch (error) {
    if (!refusesPayment(error)) throw error;
    paymentAttempt.fault = error;
    return caller;
  }
}
