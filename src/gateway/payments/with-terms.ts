import { GatewayError } from '#wire';
import type { MicroUsd } from '#billing';
import type { Caller } from '../call.ts';
import { paymentHeader } from './payment-header.ts';
import { PaymentNeeded } from './payment-needed.ts';
import type { PaidResource, Payments } from './payments.ts';

/**
 * An error as it answers an HTTP request: one that asks for money says how it can be paid, in the header and in the
 * body. Every other one as it is.
 */
export async function withTerms(
  payments: Payments,
  error: unknown,
  { caller, resource }: { readonly caller: Caller; readonly resource: (missing: MicroUsd) => PaidResource },
): Promise<unknown> {
  if (!(error instanceof PaymentNeeded)) return error;
  const { code, message, missing, param } = error;
  const required = await payments.required({ error: message, resource: resource(missing), amount: missing, caller });
  const { x402Version, accepts } = required;
  return new GatewayError(code, required.error, {
    param,
    headers: { 'payment-required': paymentHeader(required) },
    body: { x402Version, accepts, resource: required.resource },
    cause: error,
  });
}
