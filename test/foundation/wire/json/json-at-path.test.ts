import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { removeAt, replaceAt, spanAt, membersOf } from '../../../../src/foundation/wire/json/raw-json.ts';
import { atThisLoad } from '../../../support/at-this-load.ts';
import { anyCharacter } from '../../../support/any-character.ts';

/** JSON text with white space and escapes that JSON.stringify would not write. */
const key = fc.oneof(
  fc.constantFrom('id', 'params', '_meta', '__proto__', '', '1', 'a"b', 'a\\'),
  fc.string({ unit: anyCharacter, maxLength: 6 }),
);
const { value } = fc.letrec<{ value: unknown; object: object }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.boolean(),
      fc.constant(null),
    ),
    fc.array(tie('value'), { maxLength: 4 }),
    tie('object'),
  ),
  object: fc.dictionary(key, tie('value'), { maxKeys: 5, noNullPrototype: true }),
}));
const spaced = (text: string, space: string) =>
  text.replaceAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]/g, (token) =>
    token.startsWith('"') ? token : `${space}${token}${space}`,
  );
const written = fc
  .tuple(fc.dictionary(key, value, { maxKeys: 6, noNullPrototype: true }), fc.constantFrom('', ' ', '\t\r\n '))
  .map(([object, space]) => spaced(JSON.stringify(object), space));

describe('values of JSON text at a path', () => {
  it('are replaced and removed, and nothing else changes', () => {
    fc.assert(
      fc.property(written, fc.nat(), (text, which) => {
        const object = JSON.parse(text) as Record<string, unknown>;
        const names = [...membersOf(text).keys()];
        const name = names[which % (names.length || 1)] ?? 'absent';
        const { start, end } = membersOf(text).get(name) ?? { start: 0, end: 0 };
        const without = Object.entries(object).filter(([each]) => each !== name);
        expect(replaceAt(text, [name], '77')).toBe(
          names.length === 0 ? text : `${text.slice(0, start)}77${text.slice(end)}`,
        );
        expect(JSON.parse(removeAt(text, [name]))).toEqual(Object.fromEntries(without));
        expect(removeAt(text, ['no such key at all'])).toBe(text);
      }),
    );
  });

  it('are found along a path, by keys however they are written', () => {
    const text = String.raw`{"a":[{"b":1}],"par\u0061ms":{"x\"":"}","_meta" : {"\u0062":[1,{"b":2}] }}}`;
    const { start, end } = spanAt(text, ['params', '_meta', 'b'])!;
    expect(text.slice(start, end)).toBe('[1,{"b":2}]');
    expect([
      spanAt(text, ['a', 'b']),
      spanAt(text, ['params', 'none']),
      spanAt('[1]', ['0']),
      spanAt('7', ['x']),
    ]).toEqual([null, null, null, null]);
    expect(removeAt(text, ['params', '_meta'])).toBe(String.raw`{"a":[{"b":1}],"par\u0061ms":{"x\"":"}"}}`);
    expect(removeAt('{"a" : 1, "b":2}', ['a'])).toBe('{"b":2}');
  });

  it('that stand twice are not told apart', () => {
    expect(spanAt('{"p":{"a":1,"a":2}}', ['p', 'a'])).toBeNull();
  });

  it('are found in linear time, at any depth', () => {
    for (const text of [
      `{"a":${'['.repeat(500_000)}${']'.repeat(500_000)},"b":1}`,
      `{"a":"${'\\\\'.repeat(500_000)}\\"${'\\"'.repeat(500_000)}","b":1}`,
    ]) {
      const begun = performance.now();
      expect(text.slice(spanAt(text, ['b'])!.start)).toBe('1}');
      expect(performance.now() - begun).toBeLessThan(atThisLoad(1_000));
    }
  });
});
