import { printable } from '#wire';
import type { OptionTable, TableOption, ValuesOf } from './option.ts';
import { show } from './problem.ts';
import { complain, isTable, readValue, unknownKey, type Reading, type Table } from './reading.ts';

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
  reading: Reading,
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
  reading: Reading,
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
  reading: Reading,
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
    const shown = printable(`${path}.${key}`, 200);
    if (fault !== null) complain(reading, shown, `cannot be a key: it ${fault}`, option.takes, `${path}.${key}`);
    else read.push([key, readValue(option.entries.value, content, shown, reading)]);
  }
  return Object.fromEntries(read);
}
