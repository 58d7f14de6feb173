import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { StatementSync } from 'node:sqlite';
import type { Statement, Row, Value } from './database.ts';

const SOURCE = new URL('../../', import.meta.url).href;

/** PostgreSQL cuts the names of prepared statements at this length, in bytes. */
const NAME_MAX = 63;

/**
 * Reads named statements of an SQL file once, when the calling module is imported, for example
 * `const SQL = loadStatements(import.meta.url, './sql/tasks.sql', ['findTask', 'endTask'])`, then `SQL.findTask`. Each
 * statement of the file stands below a line `-- name: findTask`. Throws if the file lacks one of `names`. A statement's
 * name in the engines' caches of prepared statements is the path of its file below `src` and its own name.
 */
export function loadStatements<const Name extends string>(
  moduleUrl: string,
  path: string,
  names: readonly Name[],
): Readonly<Record<Name, Statement>> {
  const url = new URL(path, moduleUrl);
  const [head, ...parts] = readFileSync(fileURLToPath(url), 'utf8').split(/^-- name: (\w+)\n/m);
  if (head!.trim() !== '') throw new Error(`${url.pathname}: text stands before the first line "-- name: …"`);
  const texts = new Map<string, string>();
  for (let index = 0; index < parts.length; index += 2) texts.set(parts[index]!, parts[index + 1]!.trim());
  const file = (url.href.startsWith(SOURCE) ? url.href.slice(SOURCE.length) : path)
    .replace(/\.sql$/, '')
    .replace('/sql/', '/');
  const statements = names.map((name): [Name, Statement] => {
    const text = texts.get(name);
    if (text === undefined) throw new Error(`${url.pathname} has no statement "-- name: ${name}"`);
    const prepared = `${file}.${name}`;
    if (prepared.length > NAME_MAX) throw new Error(`The name ${prepared} is longer than ${NAME_MAX} characters`);
    return [name, { name: prepared, text }];
  });
  return Object.fromEntries(statements) as Record<Name, Statement>;
}

/** Types of columns that need no conversion. */
type Plain = string | bigint | Uint8Array | null;

/** A conversion for each property of T whose type is not plain. */
type Conversions<T> = {
  readonly [Key in keyof T as T[Key] extends Plain ? never : Key]: (value: Value) => T[Key];
};

/**
 * Rows as one parameter, in a form that both engines read: a JSON object whose members are arrays. A statement takes it
 * apart with `SELECT value ->> 0, value ->> 1 FROM json_each($1)`.
 */
export function rowsParam(rows: Iterable<readonly (string | number)[]>): string {
  let text = '';
  for (const row of rows) text += `${text === '' ? '{' : ','}"${text.length}":${JSON.stringify(row)}`;
  return text === '' ? '{}' : `${text.includes('\\u') ? text.replace(ESCAPES, readable) : text}}`;
}

/**
 * The escapes of JSON, with the four digits of U+0000 and of half a surrogate pair: PostgreSQL refuses the whole text
 * because of one of these.
 */
const ESCAPES = /\\(?:u(?:0000|d[89a-f][0-9a-f]{2})|[^])/g;
const readable = (escape: string): string => (escape.length === 2 ? escape : '\\ufffd');

/** A list of texts as one parameter, see rowsParam. */
export const listParam = (texts: readonly string[]): string => rowsParam(texts.map((text) => [text]));

export const numberOrNull = (value: Value): number | null => (value === null ? null : Number(value));
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

export type Prepare = (statement: Statement) => StatementSync;
