import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isObject } from '../../../../src/foundation/wire/json/json-guard.ts';
import { RawJsonError } from '../../../../src/foundation/wire/json/json-scan.ts';
import { membersAlong, membersOfParsed } from '../../../../src/foundation/wire/json/raw-json.ts';

const runs = process.env['TOLLGATE_DEEP'] === '1' ? 50_000 : 3_000;
const PATH = ['params', '_meta'];

const space = fc.constantFrom('', '', '', ' ', '\n\t');
/** Few names, some of them escaped, so that many stand twice and many are on the path. */
const key = fc.constantFrom(
  ...['params', '_meta', 'id', '', '1', '__proto__', 'a"b'].map((name) => JSON.stringify(name)),
  String.raw`"\u0070arams"`,
  String.raw`"_met\u0061"`,
  String.raw`"\u0069d"`,
);
const { anyValue } = fc.letrec<{ anyValue: string; object: string }>((tie) => ({
  object: fc
    .array(fc.tuple(space, key, space, tie('anyValue'), space), { maxLength: 4 })
    .map((members) => `{${members.map(([a, name, b, value, c]) => `${a}${name}${b}:${c}${value}${a}`).join(',')}}`),
  anyValue: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom('1', '"}"', 'null', '["params",{"id":1,"id":2}]', '"{\\"id\\":1}"'),
    tie('object'),
    tie('object'),
    fc.array(tie('anyValue'), { maxLength: 3 }).map((values) => `[${values.join(', ')}]`),
  ),
}));

function read(how: () => unknown): unknown {
  try {
    return how();
  } catch (error) {
    if (error instanceof RawJsonError) return error.message;
    throw error;
  }
}

test('members of a parsed object are those of its text, and the same keys stand twice', () => {
  let twice = 0;
  let deep = 0;
  fc.assert(
    fc.property(space, anyValue, (before, text) => {
      const value: unknown = JSON.parse(before + text);
      fc.pre(isObject(value));
      const expected = read(() => [...membersAlong(before + text, PATH)]);
      expect(read(() => [...membersOfParsed(before + text, value, PATH)])).toEqual(expected);
      if (typeof expected === 'string') twice++;
      else if (isObject(value['params']) && isObject(value['params']['_meta'])) deep++;
    }),
    { numRuns: runs },
  );
  expect(twice).toBeGreaterThan(runs / 100);
  expect(deep).toBeGreaterThan(0);
});
