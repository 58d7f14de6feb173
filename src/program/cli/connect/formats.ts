import * as jsonc from 'jsonc-parser';
import { parse } from 'smol-toml';
import { isMap, isSeq, parseDocument, type Document } from 'yaml';

/** A value that a settings file can hold. */
export type Value = string | number | boolean | null | readonly Value[] | { readonly [name: string]: Value };

/** One value of a settings file. All else in the file is unchanged. */
export interface Setting {
  /** Names from the root of the file to the value. `{ name }` selects the entry of a list that has this `name`. */
  readonly at: readonly (string | { readonly name: string })[];
  /** undefined removes the value. */
  readonly value: Value | undefined;
  /** If the file already has a value there, it stays. */
  readonly keep?: true;
}

/** Reads and changes settings files of one format. */
export interface Format {
  /** The language of a fenced block in Markdown. */
  readonly language: string;
  /** The values of a file; `{}` for an empty text. Throws an Error that says where the text is wrong. */
  parse(text: string): unknown;
  /** The text with the settings. All else is unchanged. */
  change(text: string, settings: readonly Setting[]): string;
}

type Tree = Record<string, unknown>;

const isTree = (value: unknown): value is Tree => value !== null && typeof value === 'object' && !Array.isArray(value);

/** The settings that `values` does not have yet. */
export function missing(values: unknown, settings: readonly Setting[]): readonly Setting[] {
  return settings.filter(({ at, value, keep }) => {
    const current = valueAt(values, at);
    return keep ? current === undefined : JSON.stringify(current) !== JSON.stringify(value);
  });
}

/** The value at a path; undefined if the path leads nowhere. */
export const valueAt = (values: unknown, at: Setting['at']): unknown =>
  at.reduce<unknown>((from, step) => childOf(from, step), values);

/**
 * Whether the table or list at a path has nothing in it. The `name` by which a list's entry is found does not count.
 */
export function isEmptyAt(values: unknown, at: Setting['at']): boolean {
  const value = valueAt(values, at);
  if (Array.isArray(value)) return value.length === 0;
  const isEntry = typeof at.at(-1) === 'object';
  return isTree(value) && Object.keys(value).every((name) => isEntry && name === 'name');
}

function childOf(from: unknown, step: Setting['at'][number]): unknown {
  if (typeof step === 'string') return isTree(from) && Object.hasOwn(from, step) ? from[step] : undefined;
  return Array.isArray(from) ? from.find((entry) => isTree(entry) && entry['name'] === step.name) : undefined;
}

/**
 * A copy of `values` with the settings, to compare with a changed file. Throws an Error if the path of a setting leads
 * through a value that is not a table or list.
 */
export function withSettings(values: unknown, settings: readonly Setting[]): unknown {
  const copy = structuredClone(values);
  for (const { at, value } of settings) {
    let place = copy;
    for (const [index, step] of at.slice(0, -1).entries()) {
      const next = childOf(place, step) ?? addChild(place, step, typeof at[index + 1] === 'object' ? [] : {}, at);
      place = next;
    }
    const last = at.at(-1)!;
    if (value !== undefined) addChild(place, last, value, at);
    else if (isTree(place) && typeof last === 'string') delete place[last];
    else if (Array.isArray(place)) place.splice(place.indexOf(childOf(place, last)), 1);
  }
  return copy;
}

function addChild(place: unknown, step: Setting['at'][number], child: unknown, at: Setting['at']): unknown {
  if (typeof step === 'string' && isTree(place)) return (place[step] = child);
  if (typeof step === 'object' && Array.isArray(place)) {
    const entry = { name: step.name, ...(isTree(child) ? child : {}) };
    place.push(entry);
    return entry;
  }
  throw new Error(`${at.map((one) => (typeof one === 'string' ? one : one.name)).join('.')} cannot be set in it`);
}

const TABS = /^\t/m;

/** JSON with comments and trailing commas, which editors and agents allow. */
export const JSON_FORMAT: Format = {
  language: 'json',
  parse(text) {
    if (text.trim() === '') return {};
    const errors: jsonc.ParseError[] = [];
    const value: unknown = jsonc.parse(text, errors, { allowTrailingComma: true });
    const [error] = errors;
    if (error)
      throw new Error(
        `line ${text.slice(0, error.offset).split('\n').length}: ${jsonc.printParseErrorCode(error.error)}`,
      );
    return value;
  },
  change(text, settings) {
    const formattingOptions = {
      insertSpaces: !TABS.test(text),
      tabSize: 2,
      eol: text.includes('\r\n') ? '\r\n' : '\n',
    };
    let changed = text.trim() === '' ? '{}\n' : text;
    for (const { at, value } of settings)
      changed = jsonc.applyEdits(changed, jsonc.modify(changed, at as string[], value, { formattingOptions }));
    return changed;
  },
};

/**
 * TOML is changed line by line, because its parser drops comments. The caller checks that the new text has the wanted
 * values. So it refuses a file in a form that this code does not handle, such as an inline table.
 */
export const TOML_FORMAT: Format = {
  language: 'toml',
  parse: (text) => parse(text),
  change(text, settings) {
    const lines = text === '' ? [] : text.replace(/\r?\n$/, '').split('\n');
    for (const { at, value } of settings) setLine(lines, at.map(String), value);
    return `${lines.join('\n')}\n`;
  },
};

const HEADER = /^\s*\[/;
const BARE = /^[\w-]+$/;

function setLine(lines: string[], at: readonly string[], value: Value | undefined): void {
  const table = at.slice(0, -1);
  const name = at.at(-1)!;
  const line = value === undefined ? null : `${keyOf(name)} = ${tomlOf(value)}`;
  let start = 0;
  if (table.length > 0) {
    if (value === undefined) removeEmptyTable(lines, at);
    start = lines.findIndex((one) => tableOf(one) === table.join('\n')) + 1;
    if (start === 0) {
      if (line === null) return;
      if (lines.length > 0) lines.push('');
      lines.push(`[${table.map(keyOf).join('.')}]`, line);
      return;
    }
  }
  let end = lines.findIndex((one, index) => index >= start && HEADER.test(one));
  if (end < 0) end = lines.length;
  const index = lines.findIndex((one, index) => index >= start && index < end && assigns(one, name));
  if (index >= 0) {
    lines.splice(index, 1, ...(line === null ? [] : [line]));
    return;
  }
  if (line === null) return;
  while (end > start && lines[end - 1]!.trim() === '') end--;
  // A name outside of tables must come before the first table. An empty line separates them.
  lines.splice(end, 0, ...(table.length === 0 && end === 0 && lines.length > 0 ? [line, ''] : [line]));
}

/** Removes the header of a table that has no lines. */
function removeEmptyTable(lines: string[], at: readonly string[]): void {
  const header = lines.findIndex((one) => tableOf(one) === at.join('\n'));
  if (header < 0) return;
  let end = header + 1;
  while (end < lines.length && lines[end]!.trim() === '') end++;
  if (end < lines.length && !HEADER.test(lines[end]!)) return;
  let start = header;
  // The empty line before it goes too, and those after it stay in front of the next table.
  if (end === lines.length || start === 0) while (start > 0 && lines[start - 1]!.trim() === '') start--;
  lines.splice(start, end - start);
}

function assigns(line: string, name: string): boolean {
  const [, bare, double, single] = /^\s*(?:([\w-]+)|"([^"]*)"|'([^']*)')\s*=/.exec(line) ?? [];
  return (bare ?? double ?? single) === name;
}

/** The names in a table's header, joined with line feeds; null for other lines. */
function tableOf(line: string): string | null {
  const [, inside] = /^\s*\[([^[\]]+)\]\s*(?:#.*)?$/.exec(line) ?? [];
  if (inside === undefined) return null;
  const names = [...inside.matchAll(/\s*(?:([\w-]+)|"([^"]*)"|'([^']*)')\s*(?:\.|$)/g)];
  return names.map(([, bare, double, single]) => bare ?? double ?? single).join('\n');
}

const keyOf = (name: string): string => (BARE.test(name) ? name : JSON.stringify(name));

function tomlOf(value: Value): string {
  if (value === null) throw new Error('TOML has no null');
  if (Array.isArray(value)) return `[${value.map((one: Value) => tomlOf(one)).join(', ')}]`;
  if (typeof value === 'object') {
    const members = Object.entries(value).map(([name, one]) => `${keyOf(name)} = ${tomlOf(one)}`);
    return `{ ${members.join(', ')} }`;
  }
  return JSON.stringify(value);
}

/** YAML. Comments and the order of the file stay. The indentation may become two spaces. */
export const YAML_FORMAT: Format = {
  language: 'yaml',
  parse: (text) => (read(text).toJS() as unknown) ?? {},
  change(text, settings) {
    const document = read(text);
    for (const { at, value } of settings) {
      const path = pathOf(document, at);
      if (value === undefined) document.deleteIn(path);
      else document.setIn(path, document.createNode(value));
    }
    return document.toString({ lineWidth: 0 });
  },
};

function read(text: string): Document {
  const document = parseDocument(text);
  const [error] = document.errors;
  if (error) throw new Error(error.message.split('\n')[0]);
  return document;
}

/** Creates missing lists and entries on the path. Returns the path with list positions instead of names. */
function pathOf(document: Document, at: Setting['at']): readonly (string | number)[] {
  const path: (string | number)[] = [];
  for (const step of at) {
    if (typeof step === 'string') {
      path.push(step);
      continue;
    }
    if (!document.hasIn(path)) document.setIn(path, document.createNode([]));
    const list = document.getIn(path);
    if (!isSeq(list)) throw new Error(`${path.join('.')} is not a list`);
    const index = list.items.findIndex((entry) => isMap(entry) && entry.get('name') === step.name);
    if (index < 0) list.add(document.createNode({ name: step.name }));
    path.push(index < 0 ? list.items.length - 1 : index);
  }
  return path;
}

const LINE = /^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*(.*?)[ \t]*$/;

/** Lines of `NAME=value`, such as a `.env`. */
export const DOTENV_FORMAT: Format = {
  language: 'sh',
  parse(text) {
    const values: Record<string, string> = {};
    for (const line of text.split(/\r?\n/)) {
      const [, name, value] = LINE.exec(line) ?? [];
      if (name !== undefined) values[name] = unquoted(value!);
    }
    return values;
  },
  change(text, settings) {
    const lines = text === '' ? [] : text.replace(/\r?\n$/, '').split('\n');
    for (const { at, value } of settings) {
      const name = String(at[0]);
      const line = `${name}=${String(value)}`;
      const index = lines.findLastIndex((one) => LINE.exec(one.replace(/\r$/, ''))?.[1] === name);
      if (value === undefined) lines.splice(Math.max(0, index), index < 0 ? 0 : 1);
      else if (index < 0) lines.push(line);
      else lines[index] = `${/^[ \t]*export[ \t]+/.exec(lines[index]!)?.[0] ?? ''}${line}`;
    }
    return `${lines.join('\n')}\n`;
  },
};

const unquoted = (value: string): string => /^(["'])(.*)\1$/.exec(value)?.[2] ?? value;
