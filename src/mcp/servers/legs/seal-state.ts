import type { Seals } from '#wire';
import { priceOfTool } from '../../turn/tool-price.ts';
import type { Continued, Place, Turn } from '../../turn/turn.ts';

/**
 * The `requestState` for the client, as JSON text. It leads the next round to the same offer and to this call's lock.
 */
export function sealState(
  seals: Seals,
  { caller, callId, message }: Turn,
  { offer, askedAt }: Place,
  kept: Pick<Continued, 'state' | 'held'>,
): string {
  const continued: Continued = {
    callId,
    offerId: offer.id,
    price: priceOfTool(offer, message.params?.['name']).id,
    ...kept,
    ...(askedAt === undefined ? {} : { askedAt }),
  };
  return JSON.stringify(seals.seal(caller.account, continued));
}
