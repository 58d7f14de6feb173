import { isDeepStrictEqual } from 'node:util';
import type { Table } from '../toml.ts';
import type { Option, OptionTable, TableOption, ValueOf, ValuesOf } from '../option.ts';

/** A value as a file or a registration has it. Amounts of money are text. */
export type ConfigValue =
  | string
  | number
  | boolean
  | readonly string[]
  | Readonly<Record<string, string>>
  | Table
  | readonly Table[];

/**
 * The part of an option's row that says which fields its value sets: fields of the service, or of the target where the
 * service runs. A field may be in a group: `{ model: { cap: 'none' } }`. `T` is the value, `F` are the fields.
 */
interface Field<T, F extends object> {
  readonly toFields: (value: T) => F;
  /** The inverse of toFields. */
  readonly toValue: (fields: F) => T;
  /** Converts a value to the form that the file has. null is never written. */
  readonly write: (value: NonNullable<T>) => ConfigValue;
  /** Written even if it has its default. */
  readonly always?: true;
}

/** A field without its types. They are checked where a row is defined. */
interface ErasedField {
  readonly toFields: (value: never) => object;
  readonly toValue: (fields: never) => unknown;
  readonly write: (value: never) => ConfigValue;
  readonly always?: true;
}

type AnyOption = Option<unknown> | TableOption<unknown>;

type At<P extends string, V> = P extends `${infer Group}.${infer Key}`
  ? { readonly [G in Group]: { readonly [K in Key]: V } }
  : { readonly [K in P]: V };

type MaybeAt<P extends string, V> = P extends `${infer Group}.${infer Key}`
  ? { readonly [G in Group]: { readonly [K in Key]?: V } }
  : { readonly [K in P]?: V };

type Intersection<U> = (U extends unknown ? (one: U) => void : never) extends (all: infer All) => void ? All : never;

/** The fields that the rows of a table set. */
export type FieldsOf<O extends OptionTable> = object &
  Intersection<{ [K in keyof O]: O[K] extends { readonly toFields: (value: never) => infer F } ? F : never }[keyof O]>;

/** The keys of the options that set no field by themselves. */
export type KeysWithoutField<O extends OptionTable> = {
  [K in keyof O]: O[K] extends ErasedField ? never : K;
}[keyof O];

/** An option whose value is the field at `path`. `write` is needed for values that a file has in another form. */
export function field<const P extends string, O extends Option<ConfigValue | null> | TableOption<string>>(
  path: P,
  option: O,
): O & Field<ValueOf<O>, At<P, ValueOf<O>>>;
export function field<const P extends string, O extends AnyOption>(
  path: P,
  option: O,
  write: (value: NonNullable<ValueOf<O>>) => ConfigValue,
): O & Field<ValueOf<O>, At<P, ValueOf<O>>>;
export function field<O extends AnyOption>(
  path: string,
  option: O,
  write: (value: never) => ConfigValue = asItIs,
): O & ErasedField {
  const { put, get } = fieldAt(path);
  return { ...option, toFields: put, toValue: get, write };
}

/** The same for an option that a registration has even if it has its default. */
export const alwaysWritten = <const P extends string, O extends Option<ConfigValue | null>>(path: P, option: O) => ({
  ...field(path, option),
  always: true as const,
});

/** An optional option whose field is absent if the value is null. */
export function optionalField<const P extends string, O extends Option<ConfigValue | null>>(
  path: P,
  option: O,
): O & Field<ValueOf<O>, MaybeAt<P, NonNullable<ValueOf<O>>>>;
export function optionalField<O extends Option<unknown>>(path: string, option: O): O & ErasedField {
  const { put, get } = fieldAt(path);
  const toFields = (value: unknown) => put(value ?? undefined);
  return { ...option, toFields, toValue: (fields: object) => get(fields) ?? null, write: asItIs };
}

/**
 * An optional option whose field is `fallback` if the value is null. For a new option take `optionalField`: this field
 * is always there, and registrations that are stored already do not have it.
 */
export function defaultedField<const P extends string, O extends Option<ConfigValue | null>>(
  path: P,
  option: O,
  fallback: NonNullable<ValueOf<O>>,
): O & Field<ValueOf<O>, At<P, NonNullable<ValueOf<O>>>>;
export function defaultedField<O extends Option<unknown>>(path: string, option: O, fallback: unknown): O & ErasedField {
  const { put, get } = fieldAt(path);
  return { ...option, toFields: (value: unknown) => put(value ?? fallback), toValue: get, write: asItIs };
}

/** An option of two values, the default and `value`. The field is true for `value`, and absent for the default. */
export function flagField<const P extends string, T extends string | boolean>(
  path: P,
  option: Option<T>,
  value: NoInfer<T>,
): Option<T> & Field<T, MaybeAt<P, true>>;
export function flagField<T extends ConfigValue>(path: string, option: Option<T>, value: T): Option<T> & ErasedField {
  const { put, get } = fieldAt(path);
  return {
    ...option,
    toFields: (input: unknown) => put(input === value ? true : undefined),
    toValue: (fields: object) => (get(fields) === true ? value : option.fallback),
    write: asItIs,
  };
}

const asItIs = <T>(value: T): T => value;

/** Puts a value to the field at `path`, and gets it again. undefined: the field is absent. */
function fieldAt(path: string) {
  const [group = '', key] = path.split('.');
  return {
    put: (value: unknown): object => {
      if (key === undefined) return value === undefined ? {} : { [group]: value };
      return { [group]: value === undefined ? {} : { [key]: value } };
    },
    get: (fields: object): unknown => {
      const nested: unknown = Reflect.get(fields, group);
      return key === undefined ? nested : Reflect.get(nested as object, key);
    },
  };
}

const hasField = (row: object): row is ErasedField => 'toFields' in row;

/** The fields for the values of a table. */
export function fieldsOf<O extends OptionTable>(options: O, values: ValuesOf<O>): FieldsOf<O> {
  const parts = Object.entries(options).flatMap(([key, row]) =>
    hasField(row) ? [row.toFields(values[key] as never)] : [],
  );
  return mergeFields(parts) as FieldsOf<O>;
}

/** Puts fields together. Those of one group are one group again. */
export function mergeFields(parts: readonly object[]): object {
  const merged: Record<string, unknown> = {};
  for (const part of parts)
    for (const [name, value] of Object.entries(part) as [string, unknown][]) {
      const before = merged[name];
      merged[name] = typeof before === 'object' ? { ...before, ...(value as object) } : value;
    }
  return merged;
}

/** The inverse of fieldsOf: the values in the form of a file, by their keys. Defaults are left out. */
export function writtenOf(options: OptionTable, fields: object): Readonly<Record<string, ConfigValue>> {
  const written: Record<string, ConfigValue> = {};
  for (const [key, row] of Object.entries(options)) {
    if (!hasField(row)) continue;
    const value = row.toValue(fields as never);
    if (value === null || (row.always !== true && isDeepStrictEqual(value, row.fallback))) continue;
    written[key] = row.write(value as never);
  }
  return written;
}
