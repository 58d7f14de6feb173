import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  membersOf,
  removeMember,
  setMember,
  splice,
  withMembers,
  type Edit,
} from '../../../../src/foundation/wire/json/raw-json.ts';
import { RawJsonError } from '../../../../src/foundation/wire/json/json-scan.ts';
import { entriesOf, key, object, space, value } from './json-text.ts';

const numRuns = process.env['TOLLGATE_DEEP'] === '1' ? 100_000 : 400;
const decoded = key.map((text) => JSON.parse(text) as string);
const BEFORE = '{"first": 1.0,"object":';
const AFTER = ' ,"last":"\\u0041"}\n';

/** Edits an object amid a text, and gives the object's new text once nothing around it has changed. */
function edited(text: string, edit: (whole: string, at: number) => Edit | null): string {
  const whole = BEFORE + text + AFTER;
  const change = edit(whole, BEFORE.length);
  const result = change ? splice(whole, [change]) : whole;
  expect(result.slice(0, BEFORE.length)).toBe(BEFORE);
  expect(result.slice(-AFTER.length)).toBe(AFTER);
  return result.slice(BEFORE.length, -AFTER.length);
}

/** `after` is `before` with the changes, and what they do not name is spelled as it was, in its old order. */
function expectChanged(before: string, after: string, change: ReadonlyMap<string, string | null>): void {
  const wanted = entriesOf(before);
  for (const [name, text] of change) {
    if (text === null) wanted.delete(name);
    else wanted.set(name, JSON.parse(text));
  }
  expect(isDeepStrictEqual(entriesOf(after), wanted)).toBe(true);
  const spelled = (text: string, name: string) => {
    const { keyStart, start, end } = membersOf(text).get(name)!;
    return [text.slice(keyStart, start), text.slice(start, end)];
  };
  const kept = [...membersOf(before).keys()].filter((name) => change.get(name) !== null);
  expect([...membersOf(after).keys()].slice(0, kept.length)).toEqual(kept);
  for (const name of kept) {
    const [head, body] = spelled(before, name);
    expect(spelled(after, name)).toEqual([head, change.get(name) ?? body]);
  }
}

describe('editing JSON text in place', () => {
  it('sets a member and changes nothing else', () => {
    fc.assert(
      fc.property(object, decoded, value, (text, name, to) => {
        expectChanged(
          text,
          edited(text, (whole, at) => setMember(whole, at, name, to)),
          new Map([[name, to]]),
        );
      }),
      { numRuns },
    );
  });

  it('removes a member and changes nothing else', () => {
    fc.assert(
      fc.property(object, decoded, fc.nat(), (text, other, pick) => {
        const names = [...membersOf(text).keys()];
        for (const name of [other, ...(names.length ? [names[pick % names.length]!] : [])]) {
          const edit = (whole: string, at: number) => removeMember(whole, at, name);
          expectChanged(text, edited(text, edit), new Map([[name, null]]));
          expect(removeMember(text, 0, name) === null).toBe(!names.includes(name));
        }
      }),
      { numRuns },
    );
  });

  it('sets and removes several members at once', () => {
    fc.assert(
      fc.property(
        object,
        fc.array(fc.tuple(decoded, fc.option(value))),
        fc.array(fc.boolean()),
        space,
        (text, others, removed, gap) => {
          const names = [...membersOf(text).keys()];
          const change = new Map([
            ...others,
            ...names.flatMap((name, i) => (removed[i] ? [[name, null] as const] : [])),
          ]);
          const after = edited(gap + text, (whole, at) => {
            const end = at + gap.length + text.length;
            return withMembers(whole, { start: at, end }, Object.fromEntries(change));
          });
          expectChanged(text, after, change);
          if ([...change.values()].includes(null)) return;
          const one = (whole: string, [name, to]: [string, string | null]) =>
            splice(whole, [setMember(whole, 0, name, to!)]);
          expect(after).toBe(Object.entries(Object.fromEntries(change)).reduce(one, gap + text));
        },
      ),
      { numRuns },
    );
  });

  it.each([
    ['{}', { a: '1' }, '{"a":1}'],
    ['{ }', { a: '1', b: null }, '{"a":1 }'],
    ['{"a":1}', { a: null }, '{}'],
    ['{ "a":1 }', { a: null, b: '2' }, '{ "b":2 }'],
    ['{"a":1, "b":2, "c":3}', { a: null, b: null }, '{"c":3}'],
    ['{"a":1, "b":2, "c":3}', { b: null, c: null }, '{"a":1}'],
    ['{"a":1, "b":2, "c":3}', { a: null, c: null }, '{"b":2}'],
    ['{"a":1, "b":2}', { b: '3', c: '4' }, '{"a":1, "b":3,"c":4}'],
    ['{"a":1}', { 'q"': '"\\n"' }, '{"a":1,"q\\"":"\\n"}'],
  ])('makes of %s with %j %s', (text, change, wanted) => {
    expect(withMembers(text, { start: 0, end: text.length }, change as Record<string, string | null>).text).toBe(
      wanted,
    );
  });

  it('applies edits in any order', () => {
    const text = '0123456789';
    const edits = [
      { start: 7, end: 9, text: 'x' },
      { start: 0, end: 1, text: '' },
      { start: 7, end: 7, text: 'first' },
      { start: 7, end: 7, text: 'second' },
      { start: 10, end: 10, text: 'end' },
    ];
    expect(splice(text, edits)).toBe('123456firstsecondx9end');
    expect(splice(text, [])).toBe(text);
  });

  it('refuses edits that overlap', () => {
    const edits = [
      { start: 1, end: 4, text: 'a' },
      { start: 3, end: 5, text: 'b' },
    ];
    expect(() => splice('0123456789', edits)).toThrow(RawJsonError);
  });
});
