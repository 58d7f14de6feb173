import { GatewayError, type ErrorCode, type GatewayErrorOptions } from '#wire';
import type { MicroUsd } from '#billing';

/** The error of a call that was refused because money is missing, where a payment with the request would help. */
export class PaymentNeeded extends GatewayError {
  /** The least amount to pay, in micro-USD. */
  readonly missing: MicroUsd;
  constructor(code: ErrorCode, message: string, missing: MicroUsd, options: GatewayErrorOptions = {}) {
    super(code, message, options);
    this.missing = missing;
  }
}

/** The refusal of a call whose account was never funded. It says what to do, because a smaller call would not help. */
export const neverFunded = (): GatewayError =>
  new GatewayError(
    'escrow_not_setup',
    'Escrow account not set up: this account was never funded. Ask the operator for credit, or fund it, then retry',
  );

/** Error codes of a call that was refused because money is missing. */
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

/** Error codes of a refused payment. Another payment may be accepted. */
const REFUSED: ReadonlySet<ErrorCode> = new Set([
  'payment_verification_failed',
  'payment_expired',
  'insufficient_payment',
]);

/** Whether an error means that a payment is invalid. False if the payment could not be checked. */
export const refusesPayment = (error: unknown): error is GatewayError =>
  error instanceof GatewayError && REFUSED.has(error.code);
