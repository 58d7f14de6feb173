import { GatewayError } from '#errors';
import { ownTurn } from '#wire';

/* Lists of OpenAI's API whose pages follow the id `after`. */

const LIMIT = 20;
/** Clients may ask for more, as in OpenAI's API, and get the rest with the next page. */
const PAGE_MAX = 1_000;

export interface PageQuery {
  readonly after?: string;
  readonly limit?: number;
}

export const pageProperties = (limitMax: number) => ({
  after: { type: 'string', maxLength: 128, description: 'The `last_id` of the page before.' },
  limit: {
    type: 'integer',
    minimum: 1,
    maximum: limitMax,
    default: LIMIT,
    description: `Entries on one page, which has ${PAGE_MAX} at most.`,
  },
});

export const pageOf = ({ after = null, limit = LIMIT }: { after?: string | null; limit?: number }) => ({
  after,
  limit: Math.min(limit, PAGE_MAX),
});

/**
 * A page, made in a turn of the event loop of its own. `listed`: null if `after` names no entry of the list. Rejects
 * with GatewayError `invalid_request`.
 */
export async function listAnswer<T extends { readonly id: string }>(
  listed: { readonly entries: readonly T[]; readonly hasMore: boolean } | null,
  show: (entry: T) => object,
): Promise<object> {
  if (listed === null)
    throw new GatewayError('invalid_request', 'after must be the id of an entry of this list', { param: 'after' });
  const { entries, hasMore } = listed;
  await ownTurn();
  return {
    object: 'list',
    data: entries.map(show),
    first_id: entries[0]?.id ?? null,
    last_id: entries.at(-1)?.id ?? null,
    has_more: hasMore,
  };
}

export const listSchema = (items: { readonly title: string }) => ({
  title: `${items.title}List`,
  type: 'object',
  required: ['object', 'data', 'has_more'],
  properties: {
    object: { type: 'string', const: 'list' },
    data: { type: 'array', items },
    first_id: { type: ['string', 'null'], description: 'Id of the first entry of the page; null without one.' },
    last_id: { type: ['string', 'null'], description: 'Value of `after` for the next page; null without an entry.' },
    has_more: { type: 'boolean' },
  },
});
