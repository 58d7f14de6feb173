import { type Tasks, waitsForClient } from '#tasks';
import type { CallView } from './generation-view.ts';

/** Adds to each call whether it waits for its client: it is held, and its task asks for input. */
export async function withWaiting<View extends Pick<CallView, 'id' | 'state'>>(
  calls: readonly View[],
  account: string,
  tasks: Pick<Tasks, 'liveStatesOf'>,
): Promise<readonly (View & { readonly waiting: boolean })[]> {
  const held = calls.filter(({ state }) => state === 'held').map(({ id }) => id);
  const states = await tasks.liveStatesOf(held, account);
  return calls.map((call) => ({ ...call, waiting: waitsForClient(states.get(call.id) ?? '') }));
}
