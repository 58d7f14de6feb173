import { hash } from 'node:crypto';
import { isStorable } from '#tasks';

/**
 * The id of a task for the client: the server's own id, then a mark of the offer. Two servers may choose the same id.
 * With the mark, an id names one task of one provider, both at the address of the service and at that of all services.
 * Null for an id that is not a string, or is empty or too long.
 */
export function clientTaskId(offerId: string, serverTaskId: unknown): string | null {
  if (typeof serverTaskId !== 'string' || serverTaskId === '') return null;
  const id = `${serverTaskId}.${hash('sha256', offerId, 'base64url').slice(0, MARK_CHARS)}`;
  return isStorable(id) ? id : null;
}

/** The server's own id in an id that clientTaskId made. */
export const serverTaskId = (clientId: string): string => clientId.slice(0, -MARK_CHARS - 1);

const MARK_CHARS = 8;
