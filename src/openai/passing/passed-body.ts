import { foldName } from '#wire';
import type { Offer } from '#catalog';
import type { ChatBody } from '../chat/chat-schema.ts';
import { PUBLISHED as OF_CHAT, forwardedBody } from '../chat/forwarded-body.ts';

/* Requests that pass to a provider in the form in which they came: embeddings, reranking and moderations. */

/** Folded names of chat fields, because some servers fold names. */
const OF_CHAT_FOLDED: ReadonlySet<string> = new Set([...OF_CHAT].map((name) => foldName(name)));
const OPTION_CHARS_MAX = 256;

/**
 * Whether a field may be forwarded. A server might read a long text or a list, but only the published fields are
 * priced. A model that lists such a field gets it.
 */
function isGiven(field: string, value: unknown, { model }: Offer): boolean {
  if (listsField(model!, field)) return true;
  // These requests have no prices by service tier, also if the model has them for chat.
  if (foldName(field) === 'servicetier') return false;
  return typeof value === 'string' ? value.length <= OPTION_CHARS_MAX : typeof value !== 'object' || value === null;
}

/** Whether a model lists a field by its name in `params.forward`. */
export const listsField = ({ forward }: NonNullable<Offer['model']>, field: string): boolean =>
  Array.isArray(forward) && (forward as readonly string[]).includes(field);

/**
 * The body for `offer`. It gets the fields of `sent`. Unpublished fields go to providers that list them, as in a chat
 * request. Fields that only chat has are dropped, because a server that reads `messages` would read text that is not
 * priced.
 */
export function passedBody(
  body: Readonly<Record<string, unknown>>,
  offer: Offer,
  sent: ReadonlySet<string>,
): ReturnType<typeof forwardedBody> {
  const others: Record<string, unknown> = {};
  const lost: string[] = [];
  for (const field of Object.keys(body)) {
    if (sent.has(field)) continue;
    if (field === 'model' || (!OF_CHAT_FOLDED.has(foldName(field)) && isGiven(field, body[field], offer)))
      others[field] = body[field];
    else lost.push(field);
  }
  const { body: forwarded, dropped } = forwardedBody(others as ChatBody, offer, { tokens: Infinity, field: null });
  for (const field of sent) {
    const value = body[field];
    if (value !== undefined && value !== null) forwarded[field] = value;
  }
  return { body: forwarded, dropped: [...lost, ...dropped] };
}
