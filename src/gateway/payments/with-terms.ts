import { GatewayError } from '#wire';
import type { MicroUsd } from '#billing';
import type { Caller } from '../call.ts';
import { paymentHeader } from './payment-header.ts';
import { PaymentNeeded } from './payment-needed.ts';
import type { PaidResource, PaymentRequired, Payments } from './payments.ts';

/** Adds payment terms to an error of an HTTP request, in the header and in the body. */
export function errorWithTerms(error: GatewayError, required: PaymentRequired): GatewayError {
  const { x402Version, accepts, resource } = required;
  return new GatewayError(error.code, required.error, {
    param: error.param,
    headers: { 'payment-required': paymentHeader(required) },
    body: { x402Version, accepts, resource },
    cause: error,
  });
}

/**
 * The error of a request that is not a call. A PaymentNeeded gets payment terms. Any other error is returned unchanged.
 */
export async function withTerms(
  payments: Payments,
  error: unknown,
  { caller, resource }: { readonly caller: Caller; readonly resource: (missing: MicroUsd) => PaidResource },
): Promise<unknown> {
  if (!(error instanceof PaymentNeeded)) return error;
  const { message, missing } = error;
  return errorWithTerms(
    error,
    await payments.required({ error: message, resource: resource(missing), amount: missing, caller }),
  );
}
