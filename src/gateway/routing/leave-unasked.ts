import type { Call } from '../call.ts';
import type { Health } from './router.ts';

/** A prepared call asks nobody: another may try the offers that have cooled down. */
export function leaveUnasked(health: Pick<Health, 'notProbed'>, { candidates, caller }: Call): void {
  for (const { offer } of candidates) health.notProbed(offer, caller.account);
}
