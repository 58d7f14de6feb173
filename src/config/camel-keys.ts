type Camel<K> = K extends `${infer Head}_${infer Rest}` ? `${Head}${Capitalize<Camel<Rest>>}` : K;

/** A table of the file with keys in camel case: `fee_bps` becomes `feeBps`. */
export type CamelKeys<T> = { readonly [K in keyof T as Camel<K & string>]: T[K] };

export const camelKeys = <T extends object>(table: T): CamelKeys<T> =>
  Object.fromEntries(Object.entries(table).map(([key, value]) => [camelKey(key), value])) as CamelKeys<T>;

/** Converts one key to camel case. */
export const camelKey = (key: string): string =>
  key.replaceAll(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase());
