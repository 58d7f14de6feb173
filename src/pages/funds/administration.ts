/** The part that all routes of the operator's about money have in their descriptions. */
export const ADMINISTRATION = { tags: ['Administration'], security: [{ bearer: [] }] } as const;
