import fc from 'fast-check';

/** White space, numbers, escapes and keys as no serialiser would write them all. */
const space = fc.constantFrom('', '', '', ' ', '\n  ', '\t', '\r\n');
const number = fc.constantFrom('0', '-0', '1.50', '1e3', '1E-2', '12345678901234567890', '-1.0e+2', '0.1000');
const word = fc.constantFrom('true', 'false', 'null');
const character = fc.oneof(
  fc.constantFrom(
    'a',
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    ' ',
    '\\"',
    '\\\\',
    '\\/',
    '\\n',
    '\\u0041',
    '\\u006e',
    '\\ud83c',
    'ü',
    '🌍',
    '\u2028',
    '\u2222',
  ),
  fc.string({ minLength: 1, maxLength: 1, unit: 'grapheme' }).map((one) => JSON.stringify(one).slice(1, -1)),
);
const string = fc.array(character, { maxLength: 8 }).map((parts) => `"${parts.join('')}"`);
/**
 * Parsing an object with a lone backslash for a key breaks JSON.parse for the rest of the process: it then takes
 * every key that is one escape for that backslash (nodejs/node issue 63785). No text with this may come to it where
 * it is the judge.
 */
export const LONE_BACKSLASH = '"\\\\"';

const key = fc
  .oneof(
    string,
    fc.constantFrom('"name"', '"na\\u006de"', '"__proto__"', '"constructor"', '"0"', '"1"', '""', '"_meta"', '"id"'),
  )
  .filter((text) => text !== LONE_BACKSLASH);
const decoded = (text: string) => JSON.parse(text) as string;

/** JSON texts in every spelling, objects without a key that stands twice. */
export const { object, value } = fc.letrec<{ value: string; object: string; array: string }>((tie) => ({
  value: fc.oneof({ depthSize: 'small', withCrossShrink: true }, number, word, string, tie('array'), tie('object')),
  array: fc
    .tuple(space, fc.array(fc.tuple(space, tie('value'), space), { maxLength: 4 }))
    .map(([inside, items]) => `[${items.map((item) => item.join('')).join(',') || inside}]`),
  object: fc
    .tuple(
      space,
      fc.uniqueArray(fc.tuple(space, key, space, space, tie('value'), space), {
        maxLength: 5,
        selector: (member) => decoded(member[1]),
      }),
    )
    .map(
      ([inside, members]) =>
        `{${members.map(([a, name, b, c, item, d]) => `${a}${name}${b}:${c}${item}${d}`).join(',') || inside}}`,
    ),
}));

export { key, space };

/** An object's members as JSON.parse gives them, by key; own members only, so that `__proto__` is one. */
export function entriesOf(text: string): Map<string, unknown> {
  return new Map(Object.entries(JSON.parse(text) as Record<string, unknown>));
}
