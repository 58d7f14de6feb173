import type { Offer } from '#catalog';

/**
 * Whether an offer gets a field that is not published. A server might take a text to speak, or a file to transcribe,
 * from any field, but only `input` and `file` are priced. So an offer gets the fields that it lists by name, and the
 * operator's own offer gets all if it says so.
 */
export function takesField(field: string, { model, endpoint }: Offer): boolean {
  const { forward } = model!;
  if (forward === 'all') return endpoint.kind === 'direct';
  return forward?.includes(field) === true;
}

/** Fields that are for the gateway, in every request for audio. No provider gets them. */
export const FOR_THE_GATEWAY: ReadonlySet<string> = new Set([
  'model',
  'models',
  'provider',
  'session_id',
  'max_cost',
  'metadata',
  'quote_id',
]);
