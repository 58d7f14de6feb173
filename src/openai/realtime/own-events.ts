import { randomUUID } from 'node:crypto';
import { type GatewayError, GatewayStopping } from '#errors';
import { isObject } from '#wire';
import { toHttpError } from '#http';

/* Events and ids of the gateway's own in a session. */

const IDS_MAX = 256;

/** Adds an id to those that are known, and forgets the oldest. */
export function remember(ids: Set<string>, id: string): void {
  ids.add(id);
  if (ids.size > IDS_MAX) ids.delete(ids.values().next().value!);
}

export const cancelOf = (id: string): string => JSON.stringify({ type: 'response.cancel', response_id: id });

export const ownEventId = (): string => `event_${randomUUID().replaceAll('-', '')}`;

export const idIn = (response: unknown): string | null =>
  isObject(response) && typeof response['id'] === 'string' && response['id'].length <= 256 ? response['id'] : null;

/** An `error` event. `id`: of the client's event that it answers. */
export function errorEvent(error: GatewayError, id: string | null): string {
  const errorBody = toHttpError(error, 'openai').body;
  return JSON.stringify({ type: 'error', event_id: ownEventId(), error: { ...errorBody.error, event_id: id } });
}

/** Close codes of RFC 6455 section 7.4.1 and of its registry: of a gateway that stops, of a fault, and of a refusal. */
export function closeCodeOf(error: GatewayError): number {
  if (error instanceof GatewayStopping) return 1001;
  const { status } = toHttpError(error);
  if (error.code === 'request_timeout' || error.code === 'expired') return 1000;
  return status >= 500 ? 1011 : 1008;
}
