import type { Offer } from '#catalog';
import { foldName } from '#wire';
import { listed, paidBy } from '../chat/price/paid-extras.ts';

/**
 * Whether an offer gets a field that is not published. A server might take a text to speak, or a file to transcribe,
 * from any field, but only `input` and `file` are priced. So an offer gets the fields that it lists by name, and the
 * operator's own offer gets all that cost nothing of their own if it says so.
 */
export function takesField(field: string, offer: Offer): boolean {
  const all = offer.model!.forward === 'all' && offer.endpoint.kind === 'direct';
  return listed(offer, field) || (all && paidBy(foldName(field)) === undefined);
}

export const FOR_THE_GATEWAY: ReadonlySet<string> = new Set([
  'model',
  'models',
  'provider',
  'session_id',
  'max_cost',
  'metadata',
  'quote_id',
]);
