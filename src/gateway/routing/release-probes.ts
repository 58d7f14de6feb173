import type { Call } from '../call.ts';
import type { Health } from './router.ts';

/**
 * To be called for a prepared call that will not be sent. Other calls may then probe its offers that have cooled down.
 */
export function releaseProbes(health: Pick<Health, 'notProbed'>, { candidates, caller }: Call): void {
  for (const { offer } of candidates) health.notProbed(offer, caller.account);
}
