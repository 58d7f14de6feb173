/** The schema of an object with all of its members, except the `optional` ones. */
export const objectOf = (properties: Readonly<Record<string, object>>, optional: readonly string[] = []) => ({
  type: 'object',
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
  properties,
});

/** The schema of an answer that is `{"data": …}`. */
export const dataOf = (data: object) => objectOf({ data });

/** The same for a list. */
export const listOf = (items: object) => dataOf({ type: 'array', items });
