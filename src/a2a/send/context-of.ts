import { GatewayError } from '#wire';
import type { Caller } from '#gateway';
import { ownerOf, type Task, type Tasks } from '#tasks';

/**
 * The caller's last task in the context that a message names; null without one. To an agent all clients of
 * the gateway are one, and it would tell any of them what was said in a context: so a context is its first user's
 * alone. Throws GatewayError `invalid_request` for another's.
 */
export async function lastInContext(
  tasks: Pick<Tasks, 'lastIn'>,
  caller: Caller,
  service: string,
  contextId: string | null,
): Promise<Task | null> {
  if (contextId === null) return null;
  const last = await tasks.lastIn(ownerOf(caller), { primitive: 'agent', service, contextId });
  if (last === 'foreign') throw foreign();
  return last;
}

/**
 * Takes a context for the caller before a provider hears of it. Throws GatewayError `invalid_request` where it is
 * somebody else's.
 */
export async function claimContext(
  tasks: Pick<Tasks, 'claim'>,
  caller: Caller,
  service: string,
  contextId: string | null,
): Promise<void> {
  if (contextId === null) return;
  if (!(await tasks.claim(ownerOf(caller), { primitive: 'agent', service, contextId }))) throw foreign();
}

const foreign = () =>
  new GatewayError('invalid_request', 'There is no such context: leave it out to begin one', {
    param: 'message.contextId',
  });
