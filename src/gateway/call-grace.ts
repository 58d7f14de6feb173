import type { Config } from '#config';

/**
 * The longest that a call goes on after its clock has ended it: its provider is read on for its usage, and a client
 * that stalls holds the end up for as long as it may, and the settlement with it. Milliseconds.
 */
export const callGraceMs = ({ billing, limits }: Pick<Config, 'billing' | 'limits'>): number =>
  Math.max(billing.drainMs, limits.clientStallMs);
