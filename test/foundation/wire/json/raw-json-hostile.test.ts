import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  elementsOf,
  membersOf,
  removeMember,
  setMember,
  splice,
  withMembers,
} from '../../../../src/foundation/wire/json/raw-json.ts';
import { RawJsonError } from '../../../../src/foundation/wire/json/json-scan.ts';
import { entriesOf, LONE_BACKSLASH, object } from './json-text.ts';

const deep = process.env['TOLLGATE_DEEP'] === '1';
const numRuns = deep ? 1_000_000 : 200;
/** An eighth of a long text. */
const PART = (deep ? 1 : 0.25) * 1024 * 1024;

const piece = fc.constantFrom(
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '"',
  '\\',
  '"a"',
  '"\\u0061"',
  '1',
  'true',
  ' ',
  '\n',
  '\u0001',
  '🌍',
  '"a":',
  '{}',
  '[]',
);
const noise = fc.array(piece, { maxLength: 30 }).map((pieces) => pieces.join(''));
/** An object with a piece of noise in it, or with a piece missing. */
const broken = fc.tuple(object, fc.nat(), fc.nat(4), piece).map(([text, at, gone, put]) => {
  const place = at % (text.length + 1);
  return text.slice(0, place) + put + text.slice(place + gone);
});

function outcome<T>(run: () => T): T | RawJsonError {
  try {
    return run();
  } catch (error) {
    if (error instanceof RawJsonError) return error;
    throw error;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

describe('JSON text from a stranger', () => {
  it('is read as JSON.parse reads it, or refused', { timeout: 3_600_000 }, () => {
    fc.assert(
      fc.property(fc.oneof(noise, broken), (text) => {
        fc.pre(!text.includes(LONE_BACKSLASH));
        const members = outcome(() => membersOf(text));
        outcome(() => elementsOf(text, 0));
        outcome(() => setMember(text, 0, 'a', '1'));
        outcome(() => removeMember(text, 0, 'a'));
        const changed = outcome(() =>
          splice(text, [withMembers(text, { start: 0, end: text.length }, { a: null, b: '1' })]),
        );
        const value = parsed(text);
        if (members instanceof RawJsonError) {
          // It is not JSON, not an object, or has a duplicate key.
          if (value !== undefined && !Array.isArray(value) && typeof value === 'object' && value !== null)
            expect(members.message).toMatch(/duplicate key/);
          return;
        }
        for (const { keyStart, start, end } of members.values())
          expect(0 < keyStart && keyStart < start && start < end && end < text.length).toBe(true);
        if (value === undefined) return;
        const found = new Map(
          [...members].map(([name, { start, end }]) => [name, JSON.parse(text.slice(start, end)) as unknown]),
        );
        expect(isDeepStrictEqual(found, entriesOf(text))).toBe(true);
        expect(typeof changed).toBe('string');
      }),
      { numRuns },
    );
  });

  it.each<readonly [string, string]>([
    ['nested arrays', `{"a":${'['.repeat(4 * PART)}${']'.repeat(4 * PART)}}`],
    ['nested objects', `{"a":${'{"a":'.repeat(PART)}1${'}'.repeat(PART)}}`],
    ['nesting without end', `{"a":${'['.repeat(8 * PART)}`],
    ['backslashes', `{"a":"${'\\'.repeat(8 * PART)}"}`],
    ['escaped quotes', `{"a":"${'\\"'.repeat(4 * PART)}"}`],
    ['escaped quotes without end', `{"a":"${'\\"'.repeat(4 * PART)}`],
    ['escaped quotes in a nested value', `{"a":["${'\\"'.repeat(4 * PART)}"]}`],
    ['empty strings', `{"a":[${'"",'.repeat(2 * PART)}1]}`],
    ['a key of escapes', `{"${'\\u0061'.repeat(PART)}":1}`],
    ['a long string', `{"a":"${'x'.repeat(8 * PART)}"}`],
    ['characters whose bytes look like quotes', `{"a":"${'\u2222'.repeat(4 * PART)}"}`],
    ['white space', `{${' '.repeat(8 * PART)}"a"${'\n'.repeat(8)}:1}`],
    ['a number without end', `{"a":${'1'.repeat(8 * PART)}}`],
    ['many members', `{${Array.from({ length: PART / 5 }, (_, i) => `"${i}":${i}`).join(',')}}`],
  ])('takes time linear in its length: %s', (_name, text) => {
    const before = process.threadCpuUsage();
    outcome(() => membersOf(text));
    outcome(() => withMembers(text, { start: 0, end: text.length }, { a: null, b: '1' }));
    const { user, system } = process.threadCpuUsage(before);
    // 8 MiB take well below half a second; a quadratic scan of 2 MiB takes minutes.
    expect((user + system) / 1000).toBeLessThan(4_000);
  });
});
