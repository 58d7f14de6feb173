import type { MicroUsd } from '#billing';

/** What x402 (version 2) calls PaymentRequired: why a call was not made, and how it can be paid for in place. */
export interface PaymentRequired {
  readonly x402Version: 2;
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

/** The one source of payment terms for every protocol. */
export interface PaymentTerms {
  /** `amount` is the least that has to be paid for the call to be made. */
  required(of: { readonly error: string; readonly resource: PaidResource; readonly amount: MicroUsd }): PaymentRequired;
}

/** Terms of a gateway without chains: nothing can be paid in place. */
export const NO_PAYMENTS: PaymentTerms = {
  required: ({ error, resource }) => ({ x402Version: 2, error, resource, accepts: [] }),
};
