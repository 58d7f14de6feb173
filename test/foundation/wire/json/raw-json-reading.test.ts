import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { elementsOf, membersOf, readableMembers } from '../../../../src/foundation/wire/json/raw-json.ts';
import { uniqueMembersOf, RawJsonError } from '../../../../src/foundation/wire/json/json-scan.ts';
import { entriesOf, key, object, space, value } from './json-text.ts';

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
    expect(() => uniqueMembersOf(text)).toThrow(/duplicate key/);
    expect(() => membersOf(text)).toThrow(RawJsonError);
    expect(() => membersOf(text)).toThrow(/duplicate key/);
  });

  it('finds the same members where no object at any level has a key twice', () => {
    fc.assert(
      fc.property(object, value, space, (text, before, gap) => {
        const whole = `[${before},${gap}${text}${gap}]`;
        same(uniqueMembersOf(whole, before.length + 2), membersOf(whole, before.length + 2));
      }),
      { numRuns: deep ? 200_000 : 400 },
    );
  });

  it('finds a key twice at any level, and only there', () => {
    fc.assert(
      fc.property(object, value, key, space, (text, before, name, gap) => {
        const inside = `{"a":${before},${gap}${name}:${text}${gap},"b":[${before}]}`;
        const twice = `${inside.slice(0, -1)},${gap}${name}${gap}:1}`;
        const at = (one: string) => () => uniqueMembersOf(`{"c":[${text},{"d":${one}}],"e":${text}}`);
        const decoded = JSON.parse(name) as string;
        if (decoded !== 'a' && decoded !== 'b') expect(at(inside)).not.toThrow();
        expect(at(twice)).toThrow(`duplicate key ${JSON.stringify(decoded === 'a' ? 'a' : decoded)}`);
      }),
      { numRuns: deep ? 100_000 : 400 },
    );
  });

  it('finds a key twice among many, as it is spelt', () => {
    const many = Array.from({ length: 40 }, (_, n) => `"k${n}":"\\"k1\\":{"`).join(',');
    expect(uniqueMembersOf(`{${many}}`).size).toBe(40);
    for (const n of [0, 11, 12, 39])
      expect(() => uniqueMembersOf(`{"a":[{${many},"\\u006b${n}":1}]}`)).toThrow(`duplicate key "k${n}"`);
    expect(() => uniqueMembersOf('{"a":1,"b":{"a":2,"a":3}}')).toThrow(
      'duplicate key "a" in an object (at position 18)',
    );
  });

  it('lets the same key stand in other objects', () => {
    expect([...uniqueMembersOf('{"a":{"a":1,"b":[{"a":1}]},"b":{"a":1}}').keys()]).toEqual(['a', 'b']);
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
