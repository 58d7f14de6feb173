import { GatewayError, type ErrorCode, type GatewayErrorOptions } from '#wire';
import type { MicroUsd } from '#billing';

/** A call was refused for want of money. The money can be paid in place. */
export class PaymentNeeded extends GatewayError {
  /** The least amount that has to be paid, micro-USD. */
  readonly missing: MicroUsd;
  constructor(code: ErrorCode, message: string, missing: MicroUsd, options: GatewayErrorOptions = {}) {
    super(code, message, options);
    this.missing = missing;
  }
}

/** Codes of a call that was refused for want of money. */
const UNPAID: ReadonlySet<ErrorCode> = new Set([
  'insufficient_balance',
  'escrow_not_setup',
  'payment_verification_failed',
  'payment_expired',
  'insufficient_payment',
]);

/** Whether an error says that the caller has to pay before the call is made. */
export const asksForMoney = (error: unknown): error is GatewayError =>
  error instanceof GatewayError && UNPAID.has(error.code);

/** Codes of a payment that was refused: another one may be accepted. */
const REFUSED: ReadonlySet<ErrorCode> = new Set([
  'payment_verification_failed',
  'payment_expired',
  'insufficient_payment',
]);

/** Whether an error says that a payment was no good, and not that it could not be looked at. */
export const refusesPayment = (error: unknown): error is GatewayError =>
  error instanceof GatewayError && REFUSED.has(error.code);
