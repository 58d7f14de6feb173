import { GatewayError, type ErrorCode, type GatewayErrorOptions } from '#wire';
import type { MicroUsd } from '#billing';

/** A call was not made for want of money, which can be paid in place. */
export class PaymentNeeded extends GatewayError {
  /** What has to be paid at least. */
  readonly missing: MicroUsd;
  constructor(code: ErrorCode, message: string, missing: MicroUsd, options: GatewayErrorOptions = {}) {
    super(code, message, options);
    this.missing = missing;
  }
}

/** Codes of a payment that was no good: another one may be. */
const REFUSED: ReadonlySet<ErrorCode> = new Set([
  'payment_verification_failed',
  'payment_expired',
  'insufficient_payment',
]);

/** Whether an error says that a payment was no good, and not that it could not be looked at. */
export const refusesPayment = (error: unknown): error is GatewayError =>
  error instanceof GatewayError && REFUSED.has(error.code);
