import type { FastifyReply } from 'fastify';
import type { ReplySink } from '#wire';
import { paymentHeader } from './payment-header.ts';
import type { PaymentSlip } from './payments.ts';

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
