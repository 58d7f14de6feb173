type Camel<K> = K extends `${infer Head}_${infer Rest}` ? `${Head}${Capitalize<Camel<Rest>>}` : K;

/** A table of the file by the names that the code has for its keys: `fee_bps` is `feeBps`. */
export type CamelKeys<T> = { readonly [K in keyof T as Camel<K & string>]: T[K] };

export const camelKeys = <T extends object>(table: T): CamelKeys<T> =>
  Object.fromEntries(Object.entries(table).map(([key, value]) => [camelKey(key), value])) as CamelKeys<T>;

/** One of them. */
export const camelKey = (key: string): string =>
  key.replaceAll(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase());
