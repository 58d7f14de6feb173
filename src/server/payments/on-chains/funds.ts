import type { FastifyInstance, preValidationHookHandler } from 'fastify';
import { GatewayError } from '#errors';
import type { MicroUsd } from '#billing';
import type { Chains } from '#chains';

/** The part of the chains that these routes use. */
export interface Funds {
  readonly chains: Chains;
  /** In the order of the configuration. */
  readonly terms: readonly ChainTerms[];
  /** Whether the last request to a chain's nodes succeeded. */
  readonly answers: (network: string) => boolean;
  /** Milliseconds for which a wallet must be bound before withdrawals to it. */
  readonly cooldownMs: number;
}

export interface ChainTerms {
  /** CAIP-2 id. */
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
    throw new GatewayError('not_found', 'This gateway has no payments over chains. Its operator credits accounts');
  return funds;
}

/**
 * A preValidation hook that calls requireFunds. It runs before the body is validated, so that a gateway without chains
 * doesn't complain about fields of the body.
 */
export const withFunds =
  (funds: Funds | null): preValidationHookHandler =>
  (_request, _reply, done) => {
    requireFunds(funds);
    done();
  };

/** Without chains, the routes that are added to `app` from now on are not in the reference. */
export function hideWithoutFunds(app: FastifyInstance, funds: Funds | null): void {
  if (funds !== null) return;
  app.addHook('onRoute', (route) => {
    route.schema = { ...route.schema, hide: true };
  });
}

/** Finds the terms of a chain by its network. Throws GatewayError `invalid_request`. */
export function termsOf({ terms }: Funds, network: string): ChainTerms {
  const chainTerms = terms.find((one) => one.network === network);
  if (chainTerms) return chainTerms;
  throw new GatewayError('invalid_request', `network must be one of ${terms.map((one) => one.network).join(', ')}`, {
    param: 'network',
  });
}
