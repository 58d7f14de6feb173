import type { RequestMessage } from '#json-rpc';
import type { Seals } from '#security';
import { ownPartOf, type Caller } from '#accounts';
import { priceOfTool } from './ending.ts';
import type { Continued, ServerPlace, McpRequest } from './mcp-request.ts';

/**
 * The `requestState` for the client, as JSON text. It leads the next round to the same offer and to this call's lock.
 */
export function sealState(
  seals: Seals,
  { caller, callId, message }: McpRequest,
  { offer, askedAt }: ServerPlace,
  state: Pick<Continued, 'state' | 'held'>,
): string {
  const continued: Continued = {
    callId,
    offerId: offer.id,
    price: priceOfTool(offer, message.params?.['name']).id,
    ...state,
    ...(askedAt === undefined ? {} : { askedAt }),
  };
  return JSON.stringify(seals.seal(stateOwner(caller), continued));
}

/**
 * The state with which a request continues an earlier one; null for a first request. `unknown`: the state has expired,
 * or this gateway did not give it to this caller.
 */
export function openState(seals: Seals, caller: Caller, { params }: RequestMessage): Continued | 'unknown' | null {
  const state = params?.['requestState'];
  if (state === undefined) return null;
  const text = typeof state === 'string' ? seals.open(stateOwner(caller), state) : null;
  return text === null ? 'unknown' : (text as Continued);
}

/**
 * The name that a caller's `requestState` is sealed for. Only the part of the account that began a call continues it.
 */
function stateOwner(caller: Caller): string {
  const part = ownPartOf(caller);
  return part === null ? caller.account : JSON.stringify([caller.account, part]);
}
