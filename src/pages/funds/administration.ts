/** The part of the schema that all operator routes for money have in common. */
export const ADMINISTRATION = { tags: ['Administration'], security: [{ bearer: [] }] } as const;
