import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { elementsOf, membersOf, readableMembers } from '../../../src/wire/json/raw-json.ts';
import { RawJsonError } from '../../../src/wire/json/json-scan.ts';
import { entriesOf, object, space, value } from './json-text.ts';

const deep = process.env['TOLLGATE_DEEP'] === '1';
const same = (a: unknown, b: unknown) => expect(isDeepStrictEqual(a, b)).toBe(true);

describe('reading members of a JSON text in place', () => {
  it('finds the keys and values that JSON.parse finds, wherever the object stands', () => {
    fc.assert(
      fc.property(object, value, space, (text, before, gap) => {
        const whole = `[${before},${gap}${text}${gap}]`;
        const members = membersOf(whole, before.length + 2);
        same(
          new Map([...members].map(([name, { start, end }]) => [name, JSON.parse(whole.slice(start, end))])),
          entriesOf(text),
        );
        for (const [name, { keyStart, start, end }] of members) {
          same(
            JSON.parse(`{${whole.slice(keyStart, end)}}`),
            Object.fromEntries([[name, JSON.parse(whole.slice(start, end))]]),
          );
          expect(whole.slice(start, end)).toBe(whole.slice(start, end).trim());
        }
      }),
      { numRuns: deep ? 200_000 : 400 },
    );
  });

  it('keeps the order of the text', () => {
    expect([...membersOf('{"b":1,"1":2,"a":3,"0":4}').keys()]).toEqual(['b', '1', 'a', '0']);
  });

  it('finds the elements that JSON.parse finds', () => {
    fc.assert(
      fc.property(fc.array(value, { maxLength: 6 }), space, (values, gap) => {
        const text = `${gap}[${gap}${values.join(`${gap},${gap}`)}${gap}]`;
        expect(elementsOf(text, 0).map(({ start, end }) => text.slice(start, end))).toEqual(values);
      }),
      { numRuns: deep ? 100_000 : 400 },
    );
  });

  it('reads no more elements than it is asked for', () => {
    expect(elementsOf('[1, 2, 3, ?', 0, 3)).toEqual([
      { start: 1, end: 2 },
      { start: 4, end: 5 },
      { start: 7, end: 8 },
    ]);
  });

  it.each([
    ['the same key', '{"name":"cheap","name":"dear"}'],
    ['the same key in another spelling', '{"name":"cheap","na\\u006de":"dear"}'],
    ['__proto__', '{"__proto__":1,"__proto__":2}'],
    ['the empty key', '{"":1, "":2}'],
  ])('refuses %s twice', (_name, text) => {
    expect(() => membersOf(text)).toThrow(RawJsonError);
    expect(() => membersOf(text)).toThrow(/duplicate key/);
  });

  it('lets the same key stand in other objects', () => {
    expect([...membersOf('{"a":{"a":1,"b":[{"a":1}]},"b":{"a":1}}').keys()]).toEqual(['a', 'b']);
  });

  it.each([
    ['an array', '[1]'],
    ['a word', 'true'],
    ['nothing', ''],
    ['white space', '  \n'],
    ['an object without end', '{'],
    ['a key without quotes', '{a:1}'],
    ['a key without end', '{"a'],
    ['a key without value', '{"a"}'],
    ['a key without value, but with a colon', '{"a":}'],
    ['a value without end', '{"a":{"b":1}'],
    ['a string without end', '{"a":"b\\"}'],
    ['a comma before the end', '{"a":1,}'],
    ['a comma too much', '{"a":1,,"b":2}'],
    ['no comma', '{"a":1 "b":2}'],
    ['a second value', '{"a":1"b"}'],
    ['a key with a bad escape', '{"\\x":1}'],
  ])('refuses %s', (_name, text) => {
    expect(() => membersOf(text)).toThrow(RawJsonError);
  });

  it.each(['{}', '[1,]', '[,1]', '[1', '[1 2]', '["a]'])('refuses to read elements of %s', (text) => {
    expect(() => elementsOf(text, 0)).toThrow(RawJsonError);
  });

  it('reads the members before a fault, and names the one that has it', () => {
    for (const [text, members] of [
      ['{"id":1,"result":{"a":[1', { id: '1', result: '' }],
      ['{"id":1,"result":NaN,"b": "c" }', { id: '1', result: 'NaN', b: '"c"' }],
      ['{"id":1,"id":2,"result":{}}', { id: '2', result: '{}' }],
      ['{"result":{},"id":12', { result: '{}', id: '' }],
      ['{"result":{},"id', { result: '{}' }],
      [' {"a":"b} \\" ,","c":1}', { a: '"b} \\" ,"', c: '1' }],
      ['{}', {}],
      ['{', {}],
      ['[{"id":1}]', {}],
      ['words', {}],
      ['', {}],
    ] as const)
      expect(Object.fromEntries(readableMembers(text)), text).toEqual(members);
  });
});
