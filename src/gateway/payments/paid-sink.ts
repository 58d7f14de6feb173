import type { FastifyReply } from 'fastify';
import type { ReplySink } from '#wire';
import { paymentHeader } from './payment-header.ts';
import type { PaymentSlip } from './payments.ts';

/** A sink that adds the receipt of the payment to the response headers, if the payment was taken by then. */
export function paidSink(sink: ReplySink, slip: PaymentSlip | null): ReplySink {
  return slip === null ? sink : new PaidSink(sink, slip);
}

class PaidSink implements ReplySink {
  readonly #sink: ReplySink;
  readonly #slip: PaymentSlip;

  constructor(sink: ReplySink, slip: PaymentSlip) {
    this.#sink = sink;
    this.#slip = slip;
  }

  get closed(): boolean {
    return this.#sink.closed;
  }

  head(status: number, headers: Readonly<Record<string, string | number>>): void {
    this.#sink.head(status, { ...headers, ...receiptHeaders(this.#slip) });
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
export function tellPayment(reply: FastifyReply, slip: PaymentSlip | null): void {
  reply.headers(receiptHeaders(slip));
}

/** The header `PAYMENT-RESPONSE` for a payment that was taken; otherwise no header. */
export const receiptHeaders = (slip: PaymentSlip | null): Readonly<Record<string, string>> =>
  slip?.receipt ? { 'payment-response': paymentHeader(slip.receipt) } : {};
