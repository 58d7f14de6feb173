/** The schema of an object. All members are required except the `optional` ones. */
export const objectOf = (properties: Readonly<Record<string, object>>, optional: readonly string[] = []) => ({
  type: 'object',
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
  properties,
});

/** The schema of an answer `{"data": …}`. */
export const dataOf = (data: object) => objectOf({ data });

/** The schema of an answer `{"data": […]}`. */
export const listOf = (items: object) => dataOf({ type: 'array', items });
