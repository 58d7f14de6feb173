import fc from 'fast-check';
import { expect, test } from 'vitest';
import { JsonProgress } from '../../../src/openai/translated/wire-encoder.ts';

const isWhole = (...pieces: readonly string[]): boolean => {
  const progress = new JsonProgress();
  for (const piece of pieces) progress.push(piece);
  return progress.isWhole;
};

test('an object or an array is complete with its last character, wherever it is cut', () => {
  const text = fc.oneof(fc.string(), fc.constantFrom('"', '\\', '}', ']', '{"', '\\"}'));
  const value = fc.oneof(fc.dictionary(text, fc.oneof(text, fc.json())), fc.array(text));
  fc.assert(
    fc.property(value, fc.nat(), fc.nat(), fc.boolean(), (of, one, other, isSpaced) => {
      const json = JSON.stringify(of, null, isSpaced ? 1 : 0);
      const [first, second] = [one % json.length, other % json.length].sort((a, b) => a - b) as [number, number];
      const pieces = [json.slice(0, first), json.slice(first, second), json.slice(second)];
      expect([isWhole(pieces[0]!), isWhole(pieces[0]!, pieces[1]!), isWhole(...pieces)]).toEqual([false, false, true]);
    }),
  );
});

test.each([
  ['', false],
  ['  ', false],
  [' {} \n', true],
  ['null', false],
  ['"{}"', false],
  ['x{}', false],
  ['{}{', false],
  ['{}{}', false],
  ['{"a":"}', false],
  ['{"a":"\\"}', false],
  ['{"a":"\\\\"}', true],
])('%j: %s', (text, whole) => {
  expect([isWhole(text), isWhole(...text.split(''))]).toEqual([whole, whole]);
});
