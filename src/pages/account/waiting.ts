import type { Tasks } from '#tasks';
import type { CallView } from './generation-view.ts';

/** Words of the protocols for a task whose client has to answer before it goes on. */
const WAITS = /(?:input|auth)[-_]required$/i;

/** A call with whether it waits for its client: it is held, and its task asks for input. */
export async function withWaiting<View extends Pick<CallView, 'id' | 'state'>>(
  call: View,
  account: string,
  tasks: Pick<Tasks, 'ofCall'>,
): Promise<View & { readonly waiting: boolean }> {
  if (call.state !== 'held') return { ...call, waiting: false };
  const task = await tasks.ofCall(call.id, { account, run: null });
  return { ...call, waiting: task !== null && task.live && WAITS.test(task.state) };
}
