/** The schema of an answer that is `{"data": …}`. */
export const dataSchema = (data: object) => ({ type: 'object', required: ['data'], properties: { data } }) as const;

/** The same for a list. */
export const listSchema = (items: object) => dataSchema({ type: 'array', items });
