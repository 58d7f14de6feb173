import { parse } from 'smol-toml';
import type { Format, Value } from './settings.ts';

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
  const found = lines.findIndex((one, index) => index >= start && index < end && assigns(one, name));
  if (found >= 0) {
    lines.splice(found, 1, ...(line === null ? [] : [line]));
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
