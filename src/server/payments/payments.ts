import { GatewayError, type ErrorCode, type GatewayErrorOptions, paymentOf } from '#errors';
import type { MicroUsd } from '#billing/amounts';
import type { Caller } from '#accounts';

/** PaymentRequired of x402 (version 2): why a call was refused, and how to pay for it with the request. */
export interface PaymentRequired {
  readonly x402Version: 2;
  /** The reason. If there are no terms, it says what to do instead. */
  readonly error: string;
  readonly resource: PaidResource;
  /** One entry for each chain and asset that the gateway accepts; empty if the gateway takes no such payments. */
  readonly accepts: readonly Readonly<Record<string, unknown>>[];
}

export interface PaidResource {
  readonly url: string;
  readonly description: string;
  readonly mimeType: string;
}

/** SettlementResponse of x402 for a credited payment. */
export interface PaymentReceipt {
  readonly success: true;
  /** Id of the transaction on its chain. */
  readonly transaction: string;
  /** CAIP-2. */
  readonly network: string;
  /** Address of the paying wallet. */
  readonly payer: string;
  /** The credited amount, in micro-USD. */
  readonly amount: string;
}

/** Encodes the value of `PAYMENT-REQUIRED` or `PAYMENT-RESPONSE` as base64 of JSON. */
export const paymentHeader = (value: PaymentRequired | PaymentReceipt): string =>
  Buffer.from(JSON.stringify(value)).toString('base64');

/**
 * A payment that came with a request. There is one object for each request, and the result of the payment is written
 * into it.
 */
export interface PaymentAttempt {
  /** x402's PaymentPayload as received: JSON of a bounded size. Only its outer form was checked. */
  readonly payload: Readonly<Record<string, unknown>>;
  /**
   * SHA-256 in hex of the request and its idempotency key. It binds a payment without another credential to one
   * request. Otherwise somebody who reads the payment on the chain could send it with another request.
   */
  readonly request: string;
  /** null until the payment is credited. */
  receipt: PaymentReceipt | null;
  /** The id of its deposit, which does not depend on how the payment is written. Set by callerOf. */
  id?: string;
  /** The error with which callerOf refused it. */
  fault?: GatewayError;
}

/** Gives payment terms and takes payments, for all protocols. */
export interface Payments {
  /** False if no chain is set up for payments. Then no payment is accepted, and every call needs a credential. */
  readonly open: boolean;
  /** Terms for a request of `caller`. `amount`: the least amount to pay. Chains that do not respond are left out. */
  required(terms: {
    readonly error: string;
    readonly resource: PaidResource;
    readonly amount: MicroUsd;
    readonly caller: Pick<Caller, 'account' | 'anonymous' | 'wallet'>;
  }): Promise<PaymentRequired>;
  /**
   * The caller of a request. With a payment and no credential, it is the account of the paying wallet, for this request
   * alone. Any other caller is returned unchanged. Moves no money. Throws GatewayError `payment_verification_failed`,
   * `payment_expired`, `invalid_request`, `service_unavailable`.
   */
  callerOf(caller: Caller, paymentAttempt: PaymentAttempt): Promise<Caller>;
  /**
   * Takes the payment and credits it to the caller's account. Resolves when that is durable. The same payment is taken
   * only once, however often it is sent. `needed`: the least amount. Throws the errors of callerOf,
   * `insufficient_payment`, and `payment_pending` while it is unknown whether the payment was settled: a repeat of the
   * request checks again.
   */
  take(caller: Caller, paymentAttempt: PaymentAttempt, needed: MicroUsd): Promise<PaymentReceipt>;
}

/** For a gateway without chains: no request can be paid by its own payment. */
export const NO_PAYMENTS: Payments = {
  open: false,
  required: async ({ error, resource }) => ({ x402Version: 2, error, resource, accepts: [] }),
  callerOf: async (caller) => caller,
  take: () => Promise.reject(new Error('no chain is set up for payments')),
};

/** The error of a call that was refused because money is missing, where a payment with the request would help. */
export class PaymentNeeded extends GatewayError {
  /** The least amount to pay, in micro-USD. */
  readonly missing: MicroUsd;
  constructor(code: ErrorCode, message: string, missing: MicroUsd, options: GatewayErrorOptions = {}) {
    super(code, message, options);
    this.missing = missing;
  }
}

/** Whether an error says that the caller has to pay before the call is made. */
export const asksForMoney = (error: unknown): error is GatewayError =>
  error instanceof GatewayError && paymentOf(error.code) !== undefined;

/** Whether an error means that a payment is invalid: another may be accepted. False if it could not be checked. */
export const refusesPayment = (error: unknown): error is GatewayError =>
  error instanceof GatewayError && paymentOf(error.code) === 'refused';

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

/**
 * The caller of a request with a payment, see Payments.callerOf. If the payment is refused, the caller stays unchanged,
 * and the refusal is reported with the terms once the cost of the call is known. Throws GatewayError `invalid_request`,
 * `service_unavailable`.
 */
export async function paidCaller(
  payments: Payments,
  caller: Caller,
  paymentAttempt: PaymentAttempt | null,
): Promise<Caller> {
  if (paymentAttempt === null || !caller.anonymous) return caller;
  try {
    return await payments.callerOf(caller, paymentAttempt);
  } catch (error) {
    if (!refusesPayment(error)) throw error;
    paymentAttempt.fault = error;
    return caller;
  }
}
