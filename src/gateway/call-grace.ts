import type { Config } from '#config';

/**
 * The longest time in milliseconds that a call goes on after its timeout. The gateway may read the provider's reply
 * further for its usage, and a client that stalls delays the end of the call and its settlement.
 */
export const callGraceMs = ({ billing, limits }: Pick<Config, 'billing' | 'limits'>): number =>
  Math.max(billing.drainMs, limits.clientStallMs);
