import type { GatewayError } from '#wire';
import type { MicroUsd } from '#billing';
import type { Caller } from '../call.ts';

/** PaymentRequired of x402 (version 2): why a call was not made, and how it can be paid for in place. */
export interface PaymentRequired {
  readonly x402Version: 2;
  /** Why, and what to do where there are no terms for it. */
  readonly error: string;
  readonly resource: PaidResource;
  /** One entry for each chain and asset that can be paid with; empty where the gateway takes no payments in place. */
  readonly accepts: readonly Readonly<Record<string, unknown>>[];
}

export interface PaidResource {
  readonly url: string;
  readonly description: string;
  readonly mimeType: string;
}

/** SettlementResponse of x402, of a payment that was credited. */
export interface PaymentReceipt {
  readonly success: true;
  /** Id on its chain. */
  readonly transaction: string;
  /** CAIP-2. */
  readonly network: string;
  /** Address of the paying wallet. */
  readonly payer: string;
  /** The amount that arrived and was credited, micro-USD. */
  readonly amount: string;
}

/** A payment that came with a request. One object for one request: what becomes of it is written into it. */
export interface PaymentSlip {
  /** x402's PaymentPayload as it came: JSON, of a bounded size, not looked at further. */
  readonly payload: Readonly<Record<string, unknown>>;
  /**
   * SHA-256 in hex of the request and of its own idempotency key: a payment without
   * another credential is for one request, as whoever reads the chain could send it with another.
   */
  readonly request: string;
  /** null until it was credited. */
  receipt: PaymentReceipt | null;
  /** The id of its deposit, the same however the payment is written. Set by callerOf. */
  id?: string;
  /** The error by which callerOf refused it. */
  fault?: GatewayError;
}

/** The one source of payment terms, and the one taker of payments, for every protocol. */
export interface Payments {
  /**
   * False where no chain is set up for payments: then there is nothing to accept, and nobody is let in without a
   * credential.
   */
  readonly open: boolean;
  /**
   * Terms for a request of `caller` that `amount` is missing for: what has to be paid at least. A chain that cannot
   * be asked is left out.
   */
  required(of: {
    readonly error: string;
    readonly resource: PaidResource;
    readonly amount: MicroUsd;
    readonly caller: Pick<Caller, 'account' | 'anonymous' | 'wallet'>;
  }): Promise<PaymentRequired>;
  /**
   * The caller of a request: with a payment but without a credential the paying wallet, whose account is then the
   * caller's, for this request alone. Any other caller as it is. Nothing is moved. Throws GatewayError
   * `payment_verification_failed`, `payment_expired`, `invalid_request`, `service_unavailable`.
   */
  callerOf(caller: Caller, slip: PaymentSlip): Promise<Caller>;
  /**
   * Takes the payment and credits it to the caller's account; resolves when that is durable. The same payment is
   * taken once, however often it comes. `needed`: the least that it has to be. Throws as callerOf,
   * `insufficient_payment`, and `payment_pending` where it is not known yet whether it was settled: repeating the
   * request asks again.
   */
  take(caller: Caller, slip: PaymentSlip, needed: MicroUsd): Promise<PaymentReceipt>;
}

/** A gateway without chains: nothing can be paid in place. */
export const NO_PAYMENTS: Payments = {
  open: false,
  required: async ({ error, resource }) => ({ x402Version: 2, error, resource, accepts: [] }),
  callerOf: async (caller) => caller,
  take: () => Promise.reject(new Error('no chain is set up for payments')),
};
