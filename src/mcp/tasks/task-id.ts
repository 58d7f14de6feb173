import { hash } from 'node:crypto';
import { isStorable } from '#tasks';

/**
 * The id that a client knows a task by: its server's own, then a mark of the offer. Servers choose their ids
 * without knowing of each other, and with the mark one id names one task of one provider, at the address of the
 * service as at that of all services. null for an id that is not a string, or too long.
 */
export function clientTaskId(offerId: string, serverTaskId: unknown): string | null {
  if (typeof serverTaskId !== 'string' || serverTaskId === '') return null;
  const id = `${serverTaskId}.${hash('sha256', offerId, 'base64url').slice(0, MARK_CHARS)}`;
  return isStorable(id) ? id : null;
}

/** The server's own id in one that clientTaskId made. */
export const serverTaskId = (clientId: string): string => clientId.slice(0, -MARK_CHARS - 1);

const MARK_CHARS = 8;
