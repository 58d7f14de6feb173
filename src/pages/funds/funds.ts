import type { preValidationHookHandler } from 'fastify';
import { GatewayError } from '#wire';
import type { MicroUsd } from '#billing';
import type { Chains } from '#chains';

/** Money over chains as the routes of this room know it. */
export interface Funds {
  readonly chains: Chains;
  /** In the order of the configuration. */
  readonly terms: readonly ChainTerms[];
  /** Whether a chain answered when it was asked last. */
  readonly answers: (network: string) => boolean;
  /** How long a wallet has to be bound before it is paid to. */
  readonly cooldownMs: number;
}

/** The terms of one chain. */
export interface ChainTerms {
  /** CAIP-2. */
  readonly network: string;
  readonly asset: string;
  readonly minTopup: MicroUsd;
  readonly topupMax: MicroUsd;
  readonly confirmations: number;
  readonly withdrawalMin: MicroUsd;
  readonly withdrawalFee: MicroUsd;
  readonly tokenAccountFee: MicroUsd;
  readonly withdrawalDailyMax: MicroUsd;
}

/** Throws GatewayError `not_found` on a gateway without chains. */
export function requireFunds(funds: Funds | null): Funds {
  if (funds === null)
    throw new GatewayError(
      'not_found',
      'This gateway takes and pays no money over chains: its operator credits accounts',
    );
  return funds;
}

/** Says requireFunds before the fields of a body are asked for: a hook of routes for its preValidation. */
export const withFunds =
  (funds: Funds | null): preValidationHookHandler =>
  (_request, _reply, done) => {
    requireFunds(funds);
    done();
  };

/** A chain of this gateway that answers to `network`. Throws GatewayError `invalid_request`. */
export function termsOf({ terms }: Funds, network: string): ChainTerms {
  const found = terms.find((one) => one.network === network);
  if (found) return found;
  throw new GatewayError('invalid_request', `network must be one of ${terms.map((one) => one.network).join(', ')}`, {
    param: 'network',
  });
}
