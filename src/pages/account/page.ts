/** A page of a list, from the query string. */
export interface Page {
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
