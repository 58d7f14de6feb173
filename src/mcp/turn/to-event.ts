import { eventText } from '#wire';
import type { Marker, Received } from '#gateway';
import type { Turn } from './turn.ts';

/** What arrived as an event for the client: as it came, unless the turn changes it. */
export function toEvent(
  { toClient }: Pick<Turn, 'toClient'>,
  { message, raw, eventId }: Received | Marker,
): Uint8Array {
  if (message === null) return Buffer.from(raw);
  const text = toClient(message.text);
  return Buffer.from(raw !== null && text === message.text ? raw : eventText(text, eventId));
}
