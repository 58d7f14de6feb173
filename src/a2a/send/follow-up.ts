import { pinned, type Catalog } from '#gateway';
import type { Task } from '#tasks';

/** Whether another message to a task costs anything: not where its first has paid for all of it. */
export function followUpOf(
  catalog: Pick<Catalog, 'resolve'>,
  { offerId, live }: Pick<Task, 'offerId' | 'live'>,
): 'covered' | 'charged' {
  const offer = catalog.resolve(pinned(offerId), 'agent').offers[0]!;
  return live && (offer.agent?.chargedPer === 'task' || (offer.price.rates.call ?? 0n) === 0n) ? 'covered' : 'charged';
}
