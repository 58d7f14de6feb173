import { parseMessage, type RequestId, type RequestMessage } from '#wire';

/** A request that the gateway itself writes, as JSON text. */
export const requestText = (id: RequestId, method: string, params: unknown): string =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params });

/** A notification that the gateway itself writes, as JSON text. */
export const notificationText = (method: string, params?: unknown): string =>
  JSON.stringify({ jsonrpc: '2.0', method, params });

/**
 * Reads a request that the gateway wrote or changed. Throws if it is not a request, since that is a bug of the gateway.
 */
export function readOwnRequest(text: string): RequestMessage {
  const message = parseMessage(text);
  if (message?.kind !== 'request') throw new Error('the gateway wrote a request that cannot be read');
  return message;
}
