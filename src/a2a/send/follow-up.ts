import { pinned, type Catalog } from '#gateway';
import type { Task } from '#tasks';

/**
 * Whether another message to a task is charged. A message to a live task is covered if the first message paid for the
 * whole task, or if a call has no price.
 */
export function followUpOf(
  catalog: Pick<Catalog, 'resolve'>,
  { offerId, live }: Pick<Task, 'offerId' | 'live'>,
): 'covered' | 'charged' {
  const offer = catalog.resolve(pinned(offerId), 'agent').offers[0]!;
  return live && (offer.agent?.chargedPer === 'task' || (offer.price.rates.call ?? 0n) === 0n) ? 'covered' : 'charged';
}
