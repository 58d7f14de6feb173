import { GatewayError } from '#errors';

/* Schemas that many routes share: objects, answers, pages of lists. */

/** The schema of an object. All members are required except the `optional` ones. */
export const objectOf = (properties: Readonly<Record<string, object>>, optional: readonly string[] = []) => ({
  type: 'object',
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
  properties,
});

/**
 * The same schema under a name. The reference describes it once, and clients that are made from it have a type of it.
 */
export const titled = <T extends object>(title: string, schema: T): T & { readonly title: string } => ({
  title,
  ...schema,
});

/** The schema of an answer `{"data": …}`. */
export const dataOf = (data: object) => derived(data, 'Reply', objectOf({ data }));

/** The schema of an answer `{"data": […]}`. */
export const listOf = (items: object) => derived(items, 'List', objectOf({ data: { type: 'array', items } }));

/** An answer that is made of a schema with a name has a name too. */
const derived = <T extends object>(source: object, ending: string, schema: T): T =>
  'title' in source && typeof source.title === 'string' ? titled(source.title + ending, schema) : schema;

/** The tag and the credential of the operator's routes, for their schemas. */
export const ADMINISTRATION = { tags: ['Administration'], security: [{ bearer: [] }] } as const;

export interface PageRange {
  readonly offset: number;
  readonly limit: number;
}

export const pageSchema = {
  type: 'object',
  properties: {
    offset: { type: 'integer', minimum: 0, maximum: 1_000_000_000, default: 0, description: 'Entries to pass over.' },
    limit: { type: 'integer', minimum: 1, maximum: 100, default: 50, description: 'Entries at most.' },
  },
} as const;

/** A page of a list of money's movements, newest first. It begins after the entry `before`. */
export interface FundPage {
  readonly before?: string;
  readonly limit: number;
}

export const fundPageSchema = {
  type: 'object',
  properties: {
    before: { type: 'string', minLength: 1, maxLength: 512, description: 'The `next` of the page before this one.' },
    limit: { type: 'integer', minimum: 1, maximum: 100, default: 50, description: 'Entries at most.' },
  },
} as const;

/** The body of a request that has only path parameters. */
export const noBody = { type: ['object', 'null'], additionalProperties: false, properties: {} } as const;

export const pageOf = (items: object) =>
  derived(items, 'Page', {
    type: 'object',
    required: ['data', 'next'],
    properties: {
      data: { type: 'array', items },
      next: { type: ['string', 'null'], description: 'Value of `before` for the next page; null at the end.' },
    },
  } as const);

interface ListEntry {
  readonly id: string;
  readonly createdAt: number;
}

/**
 * Reads one page of a list. `find` returns an entry of the same list by its id. Rejects with GatewayError
 * `invalid_request` if `before` is not in the list.
 */
export async function readPage<T extends ListEntry>(
  { before, limit }: FundPage,
  find: (id: string) => Promise<T | null>,
  list: (before: ListEntry | null, limit: number) => Promise<readonly T[]>,
): Promise<{ readonly entries: readonly T[]; readonly next: string | null }> {
  const place = before === undefined ? null : await find(before);
  if (before !== undefined && place === null)
    throw new GatewayError('invalid_request', 'before must be the `next` value of another page of this list', {
      param: 'before',
    });
  const entries = await list(place, limit);
  return { entries, next: entries.length === limit ? entries.at(-1)!.id : null };
}
