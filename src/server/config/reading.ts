import { readFileSync } from 'node:fs';
import { printable } from '#security';
import { isExactNumber } from '#wire';
import type { LineOf, Table } from './toml.ts';
import type { Option, OptionTable, TableOption, ValuesOf } from './option.ts';
import { ConfigError, nearest, show, WrongValue, type ConfigProblem } from './problem.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

const PROBLEMS_MAX = 1_000;

/** The prefix of a reference to an environment variable that contains a secret. */
export const REFERENCE = 'std::env::';
const REFERENCE_RIGHT = '"std::env::NAME", such as "std::env::OPENAI_API_KEY"';
/** References in the syntax of other languages. Without this check they would be sent as a key. */
const ALMOST_REFERENCE = /^(?:std::?env|env:|\$\{?\w+\}?$|%\w+%$)/i;

/** The state of reading a file, with the problems found so far. */
export interface ConfigReading {
  readonly file: string | null;
  readonly lineOf: LineOf;
  readonly env: Environment;
  readonly problems: ConfigProblem[];
  /** See LoadOptions. Default false. */
  readonly placeOnly?: boolean;
  /** Reading stops after so many problems. Default 1,000. */
  readonly problemsMax?: number;
}

/** A value reads an environment variable that is not set. */
class MissingVariable extends WrongValue {}

/** Secrets without which a command cannot find the gateway, its data or its identity. */
const OF_THE_PLACE: ReadonlySet<string> = new Set([
  'database.url',
  'server.identity_seed',
  'server.second_identity_seed',
]);

/**
 * Reads a value of the file. undefined if it is invalid, which adds a problem. null for a secret that is not needed and
 * not there.
 */
function readValue(option: Option<unknown>, value: unknown, path: string, reading: ConfigReading): unknown {
  try {
    return option.read(dereference(option, value, reading.env));
  } catch (error) {
    if (!(error instanceof WrongValue)) throw error;
    if (reading.placeOnly && error instanceof MissingVariable && !OF_THE_PLACE.has(path)) return null;
    complain(reading, path, error.message, error.right);
    return undefined;
  }
}

/**
 * Reads a value of an environment variable or a flag. `from` names the variable or flag. undefined if it is invalid,
 * which adds a problem.
 */
export function readOutside(
  option: Option<unknown>,
  value: string | number,
  from: string,
  reading: ConfigReading,
): unknown {
  try {
    return option.read(typeof value === 'string' ? option.fromText(value) : value);
  } catch (error) {
    if (!(error instanceof WrongValue)) throw error;
    reading.problems.push({ file: null, line: null, key: from, wrong: error.message, right: error.right });
    return undefined;
  }
}

/**
 * Resolves `std::env::NAME` in secrets. Other options refuse it, so that the value of a variable cannot appear in a
 * message or a listing. Throws WrongValue.
 */
function dereference(option: Option<unknown>, value: unknown, env: Environment): unknown {
  if (typeof value !== 'string') return value;
  if (!value.startsWith(REFERENCE)) {
    if (option.onlyReference) throw new WrongValue('is written in the file', REFERENCE_RIGHT);
    if (option.secret && ALMOST_REFERENCE.test(value))
      throw new WrongValue('looks like the name of an environment variable', REFERENCE_RIGHT);
    return value;
  }
  if (!option.secret) throw new WrongValue(`is ${show(value)}`, 'the value itself; std::env:: is for secrets only');
  const name = value.slice(REFERENCE.length);
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(name))
    throw new WrongValue('names no environment variable', REFERENCE_RIGHT);
  const envValue = lookupSecret(env, name);
  if (envValue === undefined)
    throw new MissingVariable(
      `reads the environment variable ${name}, which is not set`,
      `set ${name}, or ${name}${FILE_SUFFIX} to the file that has it, or name another variable`,
    );
  return envValue;
}

/** The value of an environment variable. An empty value counts as absent. */
export function lookup(env: Environment, name: string): string | undefined {
  const value = Object.hasOwn(env, name) ? env[name] : undefined;
  return value === '' ? undefined : value;
}

const FILE_SUFFIX = '_FILE';
const SECRET_BYTES_MAX = 64 * 1024;

/**
 * The value of an environment variable with a secret. If only the variable `NAME_FILE` is set, it is the text of this
 * file, without the line end at its end. Throws WrongValue if the file cannot be read, or if both variables are set.
 */
export function lookupSecret(env: Environment, name: string): string | undefined {
  const [value, file] = [lookup(env, name), lookup(env, name + FILE_SUFFIX)];
  if (file === undefined) return value;
  const variable = `${name}${FILE_SUFFIX}`;
  if (value !== undefined) throw new WrongValue(`is set, and ${variable} too`, `one of ${name} and ${variable}`);
  try {
    const bytes = readFileSync(file);
    if (bytes.byteLength > SECRET_BYTES_MAX)
      throw new WrongValue(`has too much in the file of ${variable}`, `at most ${SECRET_BYTES_MAX} bytes`);
    const text = bytes.toString('utf8').replace(/\r?\n$/, '');
    return text === '' ? undefined : text;
  } catch (error) {
    if (error instanceof WrongValue) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw new WrongValue(
      `cannot be read from the file of ${variable} (${code})`,
      `the path of a file that the gateway may read`,
    );
  }
}

/**
 * Adds a problem. `path`: the key path that gives the line, if it is not `key`. Throws ConfigError if there are too
 * many problems.
 */
export function complain(reading: ConfigReading, key: string, wrong: string, right: string, path = key): void {
  if (reading.problems.length >= (reading.problemsMax ?? PROBLEMS_MAX)) throw new ConfigError(reading.problems);
  reading.problems.push({ file: reading.file, line: reading.lineOf(path), key, wrong, right });
}

export function isTable(value: unknown): value is Table {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Date) &&
    !isExactNumber(value)
  );
}

/**
 * Adds the problem of an unknown key, with the nearest known key as a suggestion. If no known key is near, it suggests
 * a key with this name in another table.
 */
export function unknownKey(
  path: string,
  key: string,
  known: readonly string[],
  reading: ConfigReading,
  elsewhere: readonly string[] = [],
): void {
  const guess = nearest(key, known) ?? elsewhere.find((one) => one === key || one.endsWith(`.${key}`));
  complain(
    reading,
    printable(path, 160),
    'is not an option',
    guess ? `did you mean "${guess}"?` : `one of ${known.join(', ')}`,
    path,
  );
}

/** Known keys that do not belong in this table, each with its problem. */
export type ForeignKeys = Readonly<Record<string, { readonly wrong: string; readonly right: string }>>;

/** The valid values of a table, with the defaults of absent keys, and the keys with problems. */
interface ReadTable {
  readonly values: Readonly<Record<string, unknown>>;
  readonly faulty: ReadonlySet<string>;
}

/**
 * Reads a table of the file with its options, whose dotted keys mean nested tables. `path` is its place in the file,
 * such as `models[0]`. Problems are added to `reading`, and their keys to `faulty`.
 */
export function readTable(
  table: Table,
  path: string,
  options: OptionTable,
  reading: ConfigReading,
  foreign: ForeignKeys = {},
): ReadTable {
  const written = flatten(table, path, Object.keys(options), reading, foreign);
  const values: Record<string, unknown> = {};
  const faulty = new Set<string>();
  for (const [key, option] of Object.entries(options)) {
    const before = reading.problems.length;
    if (!written.has(key)) {
      if (option.defaultText !== null && option.fallback !== undefined) values[key] = option.fallback;
      else {
        // If the default is derived from other keys and one of them has a problem, only that problem is reported.
        if (option.defaultText === null || faulty.size === 0)
          complain(reading, `${path}.${key}`, 'is missing', option.takes);
        faulty.add(key);
      }
    } else if ('entries' in option) values[key] = readEntries(option, written.get(key), `${path}.${key}`, reading);
    else values[key] = readValue(option, written.get(key), `${path}.${key}`, reading);
    if (reading.problems.length > before) faulty.add(key);
  }
  return { values, faulty };
}

/** The typed values of these options. null if one of them has a problem. */
export function valuesOf<O extends OptionTable>({ values, faulty }: ReadTable, options: O): ValuesOf<O> | null {
  return Object.keys(options).some((key) => faulty.has(key)) ? null : (values as ValuesOf<O>);
}

/** The values of the known keys in the table. Adds a problem for each unknown key. */
function flatten(
  table: Table,
  path: string,
  keys: readonly string[],
  reading: ConfigReading,
  foreign: ForeignKeys,
): Map<string, unknown> {
  const top = [...new Set(keys.map((key) => key.split('.')[0]!))];
  const written = new Map<string, unknown>();
  const unknown = (key: string, name: string, siblings: readonly string[]) => {
    const known = Object.hasOwn(foreign, key) ? foreign[key] : undefined;
    if (known) complain(reading, `${path}.${key}`, known.wrong, known.right);
    else unknownKey(`${path}.${key}`, name, siblings, reading, keys);
  };
  for (const [key, value] of Object.entries(table)) {
    const inner = keys.filter((known) => known.startsWith(`${key}.`)).map((known) => known.slice(key.length + 1));
    if (inner.length === 0) {
      if (top.includes(key)) written.set(key, value);
      else unknown(key, key, top);
    } else if (!isTable(value))
      complain(reading, `${path}.${key}`, `is ${show(value)}`, `a table: [${path.replaceAll(/\[\d+\]/g, '')}.${key}]`);
    else {
      for (const [nested, content] of Object.entries(value)) {
        if (inner.includes(nested)) written.set(`${key}.${nested}`, content);
        else unknown(`${key}.${nested}`, nested, inner);
      }
    }
  }
  return written;
}

function readEntries(
  option: TableOption<unknown>,
  value: unknown,
  path: string,
  reading: ConfigReading,
): Readonly<Record<string, unknown>> {
  const read: [string, unknown][] = [];
  if (!isTable(value)) {
    complain(reading, path, option.secret ? 'is not a table' : `is ${show(value)}`, option.takes);
    return {};
  }
  const written = Object.entries(value);
  if (written.length > option.entries.max) {
    complain(reading, path, `has ${written.length} entries`, `at most ${option.entries.max}`);
    return {};
  }
  for (const [key, content] of written) {
    const fault = option.entries.fault(key);
    const label = printable(`${path}.${key}`, 200);
    if (fault !== null) complain(reading, label, `cannot be a key: it ${fault}`, option.takes, `${path}.${key}`);
    else read.push([key, readValue(option.entries.value, content, label, reading)]);
  }
  return Object.fromEntries(read);
}
