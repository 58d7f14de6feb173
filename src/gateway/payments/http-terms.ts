import type { FastifyReply } from 'fastify';
import type { MicroUsd } from '#billing';
import type { Caller } from '../call.ts';
import { GatewayError } from '../errors.ts';
import type { ReplySink } from '../reply/reply-sink.ts';
import { paymentHeader } from './payment-header.ts';
import { PaymentNeeded } from './payment-needed.ts';
import type { PaidResource, Payments, PaymentSlip } from './payments.ts';

/** An error as it answers an HTTP request: one that asks for money says how it can be paid, in the header and in the body. Every other one as it is. */
export async function withTerms(
  payments: Payments,
  error: unknown,
  { caller, resource }: { readonly caller: Caller; readonly resource: (missing: MicroUsd) => PaidResource },
): Promise<unknown> {
  if (!(error instanceof PaymentNeeded)) return error;
  const { code, message, missing, param } = error;
  const required = await payments.required({ error: message, resource: resource(missing), amount: missing, caller });
  const { x402Version, accepts } = required;
  return new GatewayError(code, message, {
    param,
    headers: { 'payment-required': paymentHeader(required) },
    body: { x402Version, accepts, resource: required.resource },
    cause: error,
  });
}

/** A sink whose head tells of the payment that was taken, if it was by then. */
export function paidSink(sink: ReplySink, slip: PaymentSlip | null): ReplySink {
  if (slip === null) return sink;
  return {
    get closed() {
      return sink.closed;
    },
    head: (status, headers) => sink.head(status, { ...headers, ...receiptHeaders(slip) }),
    flush: () => sink.flush(),
    write: (bytes) => sink.write(bytes),
    drained: () => sink.drained(),
    end: (bytes) => sink.end(bytes),
    fail: (bytes) => sink.fail(bytes),
  };
}

/** The same for an answer that is an error. */
export function tellPayment(reply: FastifyReply, slip: PaymentSlip | null): void {
  reply.headers(receiptHeaders(slip));
}

/** `PAYMENT-RESPONSE` of a payment that was taken; none of one that was not. */
export const receiptHeaders = (slip: PaymentSlip | null): Readonly<Record<string, string>> =>
  slip?.receipt ? { 'payment-response': paymentHeader(slip.receipt) } : {};
