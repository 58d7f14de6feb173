import type { Row, Value } from './database.ts';

/** Types of columns that need no conversion. */
type Plain = string | bigint | Uint8Array | null;

/** A conversion for each property of T whose type is not plain. */
type Conversions<T> = {
  readonly [Key in keyof T as T[Key] extends Plain ? never : Key]: (value: Value) => T[Key];
};

/**
 * A list of texts as one parameter, in a form that both engines read: a JSON object whose members are arrays with one
 * text each. A statement takes it apart with `SELECT value ->> 0 FROM json_each($1)`.
 */
export const listParam = (texts: readonly string[]): string =>
  JSON.stringify(Object.fromEntries(texts.map((text, index) => [index, [text]])));

export const numberOrNull = (value: Value): number | null => (value === null ? null : Number(value));
/** Reads a column that is 0 or 1. */
export const isOne = (value: Value): boolean => value === 1n;

/**
 * Makes a function that turns a row into a record. Each column becomes a property in camel case: `created_at` becomes
 * `createdAt`. `names` maps columns to properties with different names.
 */
export function rowReader<T>(
  conversions: Conversions<T>,
  names: Readonly<Record<string, keyof T & string>> = {},
): (row: Row) => T {
  const convert = conversions as Readonly<Record<string, (value: Value) => unknown>>;
  const properties = new Map<string, string>();
  const propertyOf = (column: string) => {
    let property = properties.get(column);
    if (property === undefined) {
      property = names[column] ?? column.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
      properties.set(column, property);
    }
    return property;
  };
  return (row) => {
    const record: Record<string, unknown> = {};
    for (const column of Object.keys(row)) {
      const property = propertyOf(column);
      const value = row[column]!;
      record[property] = convert[property] ? convert[property](value) : value;
    }
    return record as T;
  };
}
