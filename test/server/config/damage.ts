import * as fc from 'fast-check';
import { anyCharacter } from '../../support/any-character.ts';

/** What means something in TOML, or to this project's files. */
export const TOML_PIECES = [
  '[',
  ']',
  '[[',
  '"',
  '"""',
  "'",
  '=',
  '.',
  '\n',
  '\\',
  '{',
  '}',
  '#',
  ',',
  '-',
  '\u0000',
  '\ud800',
  '\u202e',
  '__proto__',
  'constructor',
  'models',
  'server',
  'tools',
  'pricing',
  'siwx',
  'command',
  'std::env::',
  'std::env::A',
  '1e400',
  '1e-30',
  '-1',
  'nan',
  'inf',
  '0x',
  'true',
  '2024-01-01',
  '9223372036854775808',
];

/** What means something in JSON, or to a registration. */
export const JSON_PIECES = [
  '{',
  '}',
  '[',
  ']',
  '"',
  ':',
  ',',
  '\\',
  '\\u0000',
  '\\ud800',
  '\\u202e',
  '\u0000',
  '\ud800',
  'null',
  'true',
  '{}',
  '[]',
  '""',
  '"__proto__":{}',
  '"constructor"',
  '"models":[]',
  '"command":"x"',
  '"api_key":"x"',
  '"../x"',
  '"std::env::HOME"',
  '1e400',
  '1e-30',
  '-1',
  '1e30',
  '0.00000001',
  '9223372036854775808',
  '"-1"',
  '"NaN"',
];

/** Right texts with up to four edits: pieces put in, characters taken out. */
export function damaged(texts: readonly string[], pieces: readonly string[]): fc.Arbitrary<string> {
  const piece = fc.oneof(fc.constantFrom(...pieces), fc.string({ unit: anyCharacter, maxLength: 4 }));
  return fc
    .tuple(fc.constantFrom(...texts), fc.array(fc.tuple(fc.nat(), fc.nat({ max: 20 }), piece), { maxLength: 4 }))
    .map(([text, edits]) =>
      edits.reduce((now, [at, cut, put]) => {
        const from = at % (now.length + 1);
        return now.slice(0, from) + put + now.slice(from + cut);
      }, text),
    );
}

/** Pieces and noise in any order. */
export function soup(pieces: readonly string[]): fc.Arbitrary<string> {
  return fc
    .array(fc.oneof(fc.constantFrom(...pieces), fc.string({ unit: anyCharacter, maxLength: 5 })), { maxLength: 60 })
    .map((parts) => parts.join(''));
}
