import type { FastifyReply } from 'fastify';
import type { ReplySink } from '#wire';
import { paymentHeader } from './payment-header.ts';
import type { PaymentSlip } from './payments.ts';

/** A sink that adds the receipt of the payment to the response headers, if the payment was taken by then. */
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

/** Adds the same headers to an error response. */
export function tellPayment(reply: FastifyReply, slip: PaymentSlip | null): void {
  reply.headers(receiptHeaders(slip));
}

/** The header `PAYMENT-RESPONSE` for a payment that was taken; otherwise no header. */
export const receiptHeaders = (slip: PaymentSlip | null): Readonly<Record<string, string>> =>
  slip?.receipt ? { 'payment-response': paymentHeader(slip.receipt) } : {};
