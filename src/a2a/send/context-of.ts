import { GatewayError } from '#wire';
import type { Caller } from '#gateway';
import { ownerOf, type Task, type Tasks } from '#tasks';

/**
 * The caller's last task in the context that a message names; null without one. A context belongs to its first user: an
 * agent sees all clients of the gateway as one, so it would tell one client what another said. Throws GatewayError
 * `invalid_request` for the context of another user.
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
 * Claims a context for the caller before a provider gets the message. Throws GatewayError `invalid_request` if the
 * context belongs to another user.
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
  new GatewayError('invalid_request', 'This context does not exist. To begin a new one, omit the contextId', {
    param: 'message.contextId',
  });
