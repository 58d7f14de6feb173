import { eventText } from '#wire';
import type { Marker, Received } from '#gateway';
import type { McpRequest } from './mcp-request.ts';

/** A message (JSON text) as the bytes of a server-sent event. */
export const eventBytes = (text: string): Uint8Array => Buffer.from(eventText(text));

/** Begins a stream that a client listens on, so that the client gets the response headers before the first event. */
export const LISTENING: Uint8Array = Buffer.from(': listening\n\n');

/** The bytes of a server's event for the client: the server's own bytes, unless the turn changes the message. */
export function toEvent(
  { toClient }: Pick<McpRequest, 'toClient'>,
  { message, raw, eventId }: Received | Marker,
): Uint8Array {
  if (message === null) return Buffer.from(raw);
  const text = toClient(message.text);
  return Buffer.from(raw !== null && text === message.text ? raw : eventText(text, eventId));
}
