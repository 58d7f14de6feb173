// Messages that the gateway itself writes, among them those of `subscriptions/listen`.

import { parseMessage, type RequestId, type RequestMessage, resultText } from '#json-rpc';
import { isObject, type JsonObject } from '#wire';
import { META } from './revisions.ts';

export const requestText = (id: RequestId, method: string, params: unknown): string =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params });

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

export const KINDS = ['tools', 'resources', 'prompts'] as const;
export type ListKind = (typeof KINDS)[number];

export const listChanged = (kind: ListKind): string => `notifications/${kind}/list_changed`;

/** The changes that a stream of `subscriptions/listen` reports. */
interface Subscribed {
  readonly kinds: readonly ListKind[];
  readonly uris: readonly string[];
}

/** Most resources of one request. A longer list is cut, and the acknowledgement shows the list that is left. */
const RESOURCES_MAX = 1_000;

export function readSubscribed(params: JsonObject | undefined): Subscribed {
  const filter = isObject(params?.['notifications']) ? params['notifications'] : {};
  const { resourceSubscriptions } = filter;
  const uris: readonly unknown[] = Array.isArray(resourceSubscriptions) ? resourceSubscriptions : [];
  return {
    kinds: KINDS.filter((kind) => filter[`${kind}ListChanged`] === true),
    uris: [...new Set(uris.filter((uri) => typeof uri === 'string'))].slice(0, RESOURCES_MAX),
  };
}

export const toNotifications = ({ kinds, uris }: Subscribed): JsonObject => ({
  ...Object.fromEntries(kinds.map((kind) => [`${kind}ListChanged`, true])),
  ...(uris.length > 0 ? { resourceSubscriptions: uris } : {}),
});

export const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';

/** The first notification of a stream, as JSON text. */
export const acknowledgement = (agreed: Subscribed): string =>
  notificationText(ACKNOWLEDGED, { notifications: toNotifications(agreed) });

/** The response that ends a stream, as JSON text. */
export const listenEnd = (idText: string): string =>
  resultText(idText, `{"resultType":"complete","_meta":{"${META.subscriptionId}":${idText}}}`);
