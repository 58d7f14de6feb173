import type { FastifyReply } from 'fastify';
import type { ReplySink } from '#wire';
import { paymentHeader } from './payment-header.ts';
import type { PaymentAttempt } from './payments.ts';

/** A sink that adds the receipt of the payment to the response headers, if the payment was taken by then. */
export function receiptSink(sink: ReplySink, paymentAttempt: PaymentAttempt | null): ReplySink {
  return paymentAttempt === null ? sink : new ReceiptSink(sink, paymentAttempt);
}

class ReceiptSink implements ReplySink {
  readonly #sink: ReplySink;
  readonly #paymentAttempt: PaymentAttempt;

  constructor(sink: ReplySink, paymentAttempt: PaymentAttempt) {
    this.#sink = sink;
    this.#paymentAttempt = paymentAttempt;
  }

  get closed(): boolean {
    return this.#sink.closed;
  }

  head(status: number, headers: Readonly<Record<string, string | number>>): void {
    this.#sink.head(status, { ...headers, ...receiptHeaders(this.#paymentAttempt) });
  }

  flush(): void {
    this.#sink.flush();
  }

  write(bytes: Uint8Array): boolean {
    return this.#sink.write(bytes);
  }

  drained(): Promise<void> {
    return this.#sink.drained();
  }

  end(bytes: Uint8Array | string): void {
    this.#sink.end(bytes);
  }

  fail(bytes: Uint8Array): void {
    this.#sink.fail(bytes);
  }
}

/** Adds the same headers to an error response. */
export function tellPayment(reply: FastifyReply, paymentAttempt: PaymentAttempt | null): void {
  reply.headers(receiptHeaders(paymentAttempt));
}

/** The header `PAYMENT-RESPONSE` for a payment that was taken; otherwise no header. */
export const receiptHeaders = (paymentAttempt: PaymentAttempt | null): Readonly<Record<string, string>> =>
  paymentAttempt?.receipt ? { 'payment-response': paymentHeader(paymentAttempt.receipt) } : {};
