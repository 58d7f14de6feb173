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
export const derived = <T extends object>(of: object, ending: string, schema: T): T =>
  'title' in of && typeof of.title === 'string' ? titled(of.title + ending, schema) : schema;
