import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, expect } from 'vitest';

export type Json = Record<string, unknown>;

/** Whether this run writes the goldens anew, instead of comparing them. */
const WRITES = process.env['TOLLGATE_GOLDENS'] === 'write';

/** Lists of which each part is a line, however long: what is streamed, event by event. */
const STREAMED = ['deltas', 'events', 'stream'];

/** A value in lines that are as long as they are read well: a diff then shows what changed. */
function toLines(value: unknown, indent = ''): string {
  const line = JSON.stringify(value);
  if (line.length + indent.length <= 220 || typeof value !== 'object' || value === null) return line;
  const inner = `${indent}  `;
  const isList = Array.isArray(value);
  const parts = isList
    ? value.map((one) => inner + toLines(one, inner))
    : Object.entries(value).map(([key, one]) => {
        const lines = STREAMED.includes(key) && Array.isArray(one) ? listed(one, inner) : toLines(one, inner);
        return `${inner}${JSON.stringify(key)}: ${lines}`;
      });
  return `${isList ? '[' : '{'}\n${parts.join(',\n')}\n${indent}${isList ? ']' : '}'}`;
}

const listed = (list: readonly unknown[], indent: string) =>
  `[\n${list.map((one) => `${indent}  ${JSON.stringify(one)}`).join(',\n')}\n${indent}]`;

/** The entries of the files of this name, for each wire that has one. A run that writes stores them at its end. */
export function readEntries<T extends { readonly name: string }>(file: string) {
  const wires = readdirSync(import.meta.dirname, { withFileTypes: true }).filter((one) => one.isDirectory());
  const entries = wires.flatMap(({ name: wire }) => {
    const path = join(import.meta.dirname, wire, file);
    let text: string;
    try {
      text = readFileSync(path, 'utf8');
    } catch {
      return [];
    }
    const list = JSON.parse(text) as T[];
    if (WRITES) afterAll(() => writeFileSync(path, `${toLines(list)}\n`));
    return list.map((entry) => ({ wire, name: entry.name, entry }));
  });
  return entries;
}

/** Compares a value with the golden of an entry. undefined: it has none. */
export function expectGolden(golden: Json, key: string, value: unknown): void {
  if (!WRITES) expect(value, key).toEqual(golden[key]);
  else if (value === undefined) delete golden[key];
  else golden[key] = value;
}

/** The members that differ from those of another, and the names that are not there. */
export function beside(now: Json, base: Json): Json {
  const without = Object.keys(base).filter((key) => !Object.hasOwn(now, key));
  const more = Object.entries(now).filter(([key, value]) => !isDeepStrictEqual(value, base[key]));
  return { ...Object.fromEntries(more), ...(without.length > 0 ? { without } : {}) };
}

/** What differs from run to run, by a name in its place. */
const VARIES: readonly (readonly [RegExp, string])[] = [
  [/\b(gen|cmpl|req)-[\w-]{8,}/g, '$1-'],
  [/\b(call)_[0-9a-f]{24}/g, '$1_'],
  [/\b(msg|resp|rs|fc|ctc)_[A-Za-z0-9]{12,}(?=[_"])/g, '$1_'],
  [/("responseId":")[\w-]{12,}/g, '$1'],
  [/\b(tg[1-3][._])[\w-]{16,}/g, '$1'],
  [/\bdGc[x-z][\w+/=-]{16,}/g, 'sealed-'],
  [/("(?:created|created_at|completed_at)":)\d{9,}/g, '$10'],
];

/** A text of a reply without what differs from run to run. What is the same in it twice has the same number. */
export function steady(text: string): string {
  return VARIES.reduce((now, [what, name]) => {
    const seen = new Map<string, number>();
    return now.replaceAll(what, (one, ...groups) => {
      if (!seen.has(one)) seen.set(one, seen.size + 1);
      return name.replace('$1', String(groups[0])) + (name.endsWith('0') ? '' : String(seen.get(one)));
    });
  }, text);
}
