import { GatewayError } from '#wire';
import { dataOf, derived } from '../answer-schemas.ts';

/** The requested part of a list, newest first. */
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

export const oneOf = dataOf;

interface Entry {
  readonly id: string;
  readonly createdAt: number;
}

/**
 * Reads one page of a list. `find` returns an entry of the same list by its id. Rejects with GatewayError
 * `invalid_request` if `before` is not in the list.
 */
export async function readPage<T extends Entry>(
  { before, limit }: FundPage,
  find: (id: string) => Promise<T | null>,
  list: (before: Entry | null, limit: number) => Promise<readonly T[]>,
): Promise<{ readonly entries: readonly T[]; readonly next: string | null }> {
  const place = before === undefined ? null : await find(before);
  if (before !== undefined && place === null)
    throw new GatewayError('invalid_request', 'before must be the `next` value of another page of this list', {
      param: 'before',
    });
  const entries = await list(place, limit);
  return { entries, next: entries.length === limit ? entries.at(-1)!.id : null };
}
